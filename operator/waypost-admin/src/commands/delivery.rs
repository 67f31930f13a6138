//! `waypost-admin delivery`: one delivery, by its identifier alone.

use std::fmt::{self, Display};

use base::DeliveryId;
use clap::{Args, Subcommand};
use operator::deliveries::{self, Advice, Attempt, AttemptView, DeliveryView, Violation, WholeDelivery};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{arguments::Which, failure::Failure, output::Output};

pub const EXAMPLES: &str = "\
Examples:
  waypost-admin delivery show dlv_01m7wh697q3m7qqm482zyh9200 --stack waypost
  waypost-admin delivery show dlv_01m7wh697q3m7qqm482zyh9200 --body --data .local --json
  waypost-admin delivery resend dlv_01m7wh697q3m7qqm482zyh9200 --stack waypost";

/// Shows or resends a delivery of any managing entity.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows a delivery with its attempts.
    Show(Shown),
    /// Resends a delivery now, as its owner can. A final delivery gets a new schedule; a waiting one gets an extra
    /// attempt.
    Resend(Shown),
}

/// The delivery, and how much of it to show.
#[derive(Debug, Args)]
pub struct Shown {
    /// The delivery's identifier, `dlv_…`.
    #[arg(value_name = "ID", value_parser = delivery)]
    id: DeliveryId,
    /// Also shows the bodies of the event and of the responses, which may contain personal data.
    #[arg(long)]
    body: bool,
}

fn delivery(text: &str) -> Result<DeliveryId, &'static str> {
    DeliveryId::parse(text)
        .ok_or("a delivery's identifier is `dlv_` and 26 digits and letters; an event's begins with `evt_`")
}

impl Command {
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let (found, body) = match self {
            Self::Show(Shown { id, body }) => (deliveries::show(&which.open().await?, &id).await?, body),
            Self::Resend(Shown { id, body }) => (deliveries::resend(&which.open().await?, &id).await?, body),
        };
        let view = View::of(found, body);
        output.write(&view, &view)
    }
}

/// A delivery with or without bodies, in the API's JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    #[serde(flatten)]
    delivery: DeliveryView,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<Advice>,
    attempts: Vec<AttemptView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    event_warnings: Vec<Violation>,
}

impl View {
    fn of(WholeDelivery { delivery, advice, mut attempts, event, event_warnings }: WholeDelivery, body: bool) -> Self {
        if !body {
            attempts.iter_mut().for_each(|shown| shown.attempt.response_body = None);
        }
        Self { delivery, advice, attempts, event: Some(event).filter(|_| body), event_warnings }
    }
}

impl Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delivery = &self.delivery;
        writeln!(f, "{}  {}", delivery.id, delivery.status.as_str())?;
        writeln!(f, "  of         {}", delivery.owner_identifier)?;
        let test = if delivery.test { "  (test)" } else { "" };
        writeln!(f, "  event      {}  {}{test}", delivery.event_identifier, delivery.r#type)?;
        if let Some(subject) = &delivery.subject {
            writeln!(f, "  subject    {}", printable(subject))?;
        }
        writeln!(f, "  published  {}", delivery.created_date)?;
        if let Some(erased) = delivery.erased_date {
            writeln!(f, "  erased     {erased}")?;
        }
        writeln!(f, "  webhook    {}", delivery.webhook_identifier)?;
        write!(f, "  endpoint   {}", delivery.url)?;
        if let Some(reason) = delivery.cancel_reason {
            write!(f, "\n  cancelled  {}", reason.as_str())?;
        }
        if let Some(next) = delivery.next_attempt_date {
            let reason = delivery.waiting_for.map(|reason| format!("  (waiting for: {})", reason.as_str()));
            write!(f, "\n  next       {next}{}", reason.unwrap_or_default())?;
        }
        write!(f, "\n  attempts   {}", delivery.attempt_count)?;
        for AttemptView { attempt, .. } in &self.attempts {
            write_attempt(f, attempt)?;
        }
        self.event_warnings.iter().try_for_each(|warning| {
            let warning = format!("{} {}", warning.name(), warning.detail);
            write!(f, "\n  warning    {}", printable(&warning))
        })?;
        match &self.event {
            Some(event) => write!(f, "\n  body       {}", printable(event.get())),
            None => Ok(()),
        }
    }
}

fn write_attempt(f: &mut fmt::Formatter<'_>, attempt: &Attempt) -> fmt::Result {
    let number = attempt.attempt_number;
    write!(f, "\n  {number:>9}  {}  ", attempt.attempt_date)?;
    match (attempt.http_status, &attempt.error) {
        (Some(status), _) => write!(f, "{status}")?,
        // The error may contain a reason that a feed reader gave.
        (None, Some(error)) => write!(f, "{}", printable(error))?,
        (None, None) => write!(f, "no response")?,
    }
    write!(f, "  {} ms", attempt.duration_ms)?;
    attempt
        .response_body
        .iter()
        .flat_map(|body| body.lines())
        .try_for_each(|line| write!(f, "\n             {}", printable(line)))
}

/// Third-party text without control characters, which could affect the terminal or change the text's direction.
fn printable(text: &str) -> String {
    const DIRECTIONS: &str =
        "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
    let hidden = |letter: char| letter.is_control() || DIRECTIONS.contains(letter);
    text.chars().map(|letter| if hidden(letter) { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found() -> WholeDelivery {
        let delivery = json!({
            "attemptCount": 2, "createdDate": "2026-11-20T09:45:00.000Z",
            "eventIdentifier": "evt_01m7wh697q3m7qqm482zyh9200", "id": "dlv_01m7wh697q3m7qqm482zyh9200",
            "lastErrorCode": "timeout", "lastUpdate": "2026-11-20T09:45:15.000Z",
            "nextAttemptDate": "2026-11-20T09:50:15.000Z", "ownerIdentifier": "hotel", "status": "retrying",
            "subject": "B-1001", "type": "booking.created", "url": "https://example.com/hook", "waitingFor": "schedule",
            "webhookIdentifier": "whk_01m74zy5eva3kj3s4w04zg1hhc",
        });
        let attempts = json!([
            {
                "attemptDate": "2026-11-20T09:45:00.100Z", "attemptNumber": 1, "durationMs": 12, "httpStatus": 500,
                "responseBody": "first line\nsecond \u{1b}[2Jline\n",
            },
            {
                "attemptDate": "2026-11-20T09:45:05.100Z", "attemptNumber": 2, "durationMs": 10_000,
                "error": "timeout: the endpoint did not answer in time",
            },
        ]);
        let attempts: Vec<Attempt> = serde_json::from_value(attempts).expect("attempts");
        WholeDelivery::of(
            serde_json::from_value(delivery).expect("a delivery"),
            attempts.into_iter().map(AttemptView::of).collect(),
            RawValue::from_string(r#"{"price":10.50}"#.to_owned()).expect("JSON"),
            Vec::new(),
        )
    }

    #[test]
    fn a_delivery_is_shown_line_by_line_without_bodies() {
        let expected = "\
dlv_01m7wh697q3m7qqm482zyh9200  retrying
  of         hotel
  event      evt_01m7wh697q3m7qqm482zyh9200  booking.created
  subject    B-1001
  published  2026-11-20T09:45:00.000Z
  webhook    whk_01m74zy5eva3kj3s4w04zg1hhc
  endpoint   https://example.com/hook
  next       2026-11-20T09:50:15.000Z  (waiting for: schedule)
  attempts   2
          1  2026-11-20T09:45:00.100Z  500  12 ms
          2  2026-11-20T09:45:05.100Z  timeout: the endpoint did not answer in time  10000 ms";
        assert_eq!(View::of(found(), false).to_string(), expected);
        let mut test = found();
        test.delivery.test = true;
        assert!(View::of(test, false).to_string().contains("booking.created  (test)\n"));
    }

    #[test]
    fn bodies_are_shown_on_request_only_and_as_they_are() {
        let without = serde_json::to_value(View::of(found(), false)).expect("JSON");
        assert_eq!((without.get("event"), without["attempts"][0].get("responseBody")), (None, None));
        assert_eq!((&without["status"], &without["lastErrorCode"]), (&json!("retrying"), &json!("timeout")));
        assert_eq!(without["attempts"][1]["errorCode"], "timeout");
        let with = View::of(found(), true);
        let json = serde_json::to_string(&with).expect("JSON");
        assert!(json.contains(r#""event":{"price":10.50}"#), "{json}");
        let json: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["attempts"][0]["responseBody"], "first line\nsecond \u{1b}[2Jline\n");
        let text = with.to_string();
        assert!(
            text.contains("\n             second \u{fffd}[2Jline\n  ") && text.ends_with(r#"{"price":10.50}"#),
            "{text}"
        );
    }

    #[test]
    fn the_reason_of_a_reader_does_not_reach_the_terminal_as_it_is() {
        let mut found = found();
        found.attempts[1].attempt.error = Some("reported: \u{1b}[2J\nx\u{202e}".into());
        let text = View::of(found, false).to_string();
        assert!(text.ends_with("  reported: \u{fffd}[2J\u{fffd}x\u{fffd}  10000 ms"), "{text}");
    }

    #[test]
    fn an_identifier_of_another_kind_is_refused() {
        assert!(delivery("dlv_01m7wh697q3m7qqm482zyh9200").is_ok());
        for text in ["evt_01m7wh697q3m7qqm482zyh9200", "dlv_", ""] {
            assert!(delivery(text).is_err(), "{text}");
        }
    }
}
