//! `waypost publish`: publishes an event.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    answer::print_text,
    event_data::{Warning, event_data, warning_lines},
    patience::text_with_key,
};
use crate::{
    failure::Failure,
    output::{Output, visible_line},
    service::{Call, Service},
};

const EXAMPLES: &str = "\
Examples:
  waypost publish --type booking.created --data @booking.json
  jq -n '{bookingIdentifier: \"B-1001\"}' | waypost publish --type booking.created --data -
  waypost publish --type booking.created --data '{\"number\": 1001}' --subject B-1001 --idempotency-key booking-1001-created

Your application needs the right to publish; `waypost trigger` sends test events without it. If there is no response,
the command repeats the request with the same idempotency key, so that the event is published only once.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Publish {
    /// The event type, such as booking.created.
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// The data, sent unchanged: a JSON object, `@FILE` for the content of a file, or `-` for standard input.
    #[arg(long, value_name = "DATA")]
    data: String,
    /// The subject, such as a booking number. Defaults to the one in the data.
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// A string that identifies this event: within 24 hours, repeating the command with it publishes nothing new.
    /// Random by default.
    #[arg(long, value_name = "KEY", value_parser = idempotency_key)]
    idempotency_key: Option<String>,
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    data: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    event_identifier: String,
    kept: bool,
    deliveries: Vec<NewDelivery>,
    #[serde(default)]
    warnings: Vec<Warning>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewDelivery {
    delivery_identifier: String,
    webhook_identifier: String,
}

impl Publish {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let data = event_data(&self.data)?;
        let body = Body { kind: &self.kind, data: &data, subject: self.subject.as_deref() };
        let call = Call { key: self.idempotency_key, ..Call::post(&["webhook", "event"], &body) };
        let advice = |key: &str| {
            format!(
                "The event may have been published. Repeat the command with `--idempotency-key {key}`, and it is \
                 published only once."
            )
        };
        print_text(service, &text_with_key(service, call, advice).await?, output, shown)
    }
}

/// Reads a key that is valid in a header.
pub fn idempotency_key(text: &str) -> Result<String, String> {
    let is_plain = !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_graphic());
    if is_plain { Ok(text.to_owned()) } else { Err("it must have visible ASCII characters only".to_owned()) }
}

fn shown(published: &Published) -> String {
    let event = visible_line(&published.event_identifier);
    let warnings = warning_lines(&published.warnings);
    if !published.kept {
        return format!(
            "Published {event}, but no webhook matched it, so it is not stored.{warnings}\n`waypost webhooks` lists the \
             webhooks; `waypost webhooks show ID` shows the types and the filter of one."
        );
    }
    if published.deliveries.is_empty() {
        return format!("Published {event}, but no webhook matched it.{warnings}\n`waypost why {event}` says why.");
    }
    let lines: String = published.deliveries.iter().map(shown_delivery).collect();
    let count = published.deliveries.len();
    let deliveries = if count == 1 { "delivery" } else { "deliveries" };
    format!(
        "Published {event}: {count} {deliveries}.{lines}{warnings}\n`waypost why {event}` shows what became of them."
    )
}

fn shown_delivery(NewDelivery { delivery_identifier, webhook_identifier }: &NewDelivery) -> String {
    format!("\n  {} to {}", visible_line(delivery_identifier), visible_line(webhook_identifier))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_can_be_sent_in_a_header() {
        assert!(idempotency_key("booking-1001:created").is_ok());
        for wrong in ["", "a b", "ü", "a\n"] {
            assert!(idempotency_key(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_publication_is_shown_with_its_deliveries_or_the_reason_for_none() {
        let text = |published: &str| shown(&serde_json::from_str(published).expect("a publication"));
        let one = text(
            r#"{"eventIdentifier":"evt_1","kept":true,"deliveries":[{"deliveryIdentifier":"dlv_1",
            "webhookIdentifier":"whk_1"}],"warnings":[{"in":"data","pointer":"/status","code":"required",
            "detail":"is missing"}]}"#,
        );
        assert_eq!(
            one,
            "Published evt_1: 1 delivery.\n  dlv_1 to whk_1\n  warning: `/status` is missing\n`waypost why evt_1` shows \
             what became of them."
        );
        let none = text(r#"{"eventIdentifier":"evt_1","kept":false,"deliveries":[]}"#);
        assert!(none.contains("no webhook matched it, so it is not stored"), "{none}");
        let kept = text(r#"{"eventIdentifier":"evt_1","kept":true,"deliveries":[]}"#);
        assert_eq!(kept, "Published evt_1, but no webhook matched it.\n`waypost why evt_1` says why.");
    }
}
