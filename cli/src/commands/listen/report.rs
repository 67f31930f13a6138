//! The output of `listen`: lines for people, or JSON values with a `kind` member.

use std::{fmt::Display, io, time::Duration};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    feed::FeedDelivery,
    forward::{Answer, Answered, Target, failure_of},
};
use crate::{
    commands::settings::EventList,
    output::{BOLD, DIM, Output, colour_of_answer, visible, visible_line},
};

#[derive(Clone, Copy)]
pub struct Report {
    pub output: Output,
    pub prints_bodies: bool,
}

/// A delivery that has been handled.
pub struct Arrival<'a> {
    pub at: Timestamp,
    pub delivery: &'a FeedDelivery,
    /// The response from the address to which it was forwarded.
    pub answer: Option<&'a Answered>,
    pub took: Duration,
}

/// The members of an event shown in its line. All may be absent, since a webhook may receive only identifiers.
#[derive(Default, Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    subject: Option<String>,
}

impl Report {
    /// Prints the start, with the signing secret.
    pub fn begun(
        self,
        webhook: &str,
        secret: &str,
        types: &EventList,
        target: Option<&Target>,
        entity: &str,
    ) -> io::Result<()> {
        if self.output.json {
            let target = target.map(ToString::to_string);
            return self.output.raw(json!({
                "kind": "listening", "webhookIdentifier": webhook, "signingSecret": secret, "types": types, "forward": target,
            }));
        }
        let target = target.map(|target| format!(", forwarded to {target}")).unwrap_or_default();
        self.remark(format!("Listening for events of {entity}: {types}{target}. Press Ctrl-C to stop."));
        self.remark(format!("Signing secret of this webhook, {webhook}: {BOLD}{secret}{BOLD:#}"));
        Ok(())
    }

    /// Prints a delivery's line, and its body if requested.
    pub fn arrived(self, arrival: &Arrival<'_>) -> io::Result<()> {
        if self.output.json {
            return self.output.raw(self.value(arrival));
        }
        self.output.text(line(arrival))?;
        if self.prints_bodies { self.output.text(visible(&arrival.delivery.body)) } else { Ok(()) }
    }

    fn value(self, arrival: &Arrival<'_>) -> Value {
        let FeedDelivery { delivery_identifier, attempt_number, body, .. } = arrival.delivery;
        let Envelope { id, kind, subject } = envelope(body);
        let mut value = json!({
            "kind": "delivery", "time": arrival.at.to_string(), "deliveryIdentifier": delivery_identifier,
            "attemptNumber": attempt_number, "eventIdentifier": id, "type": kind, "subject": subject,
        });
        if let Some(answer) = arrival.answer {
            value["httpStatus"] = json!(answer.as_ref().ok().map(|answer| answer.status));
            value["durationMs"] = json!(arrival.took.as_millis());
            value["failure"] = json!(failure_of(answer));
        }
        if self.prints_bodies {
            value["body"] = json!(body);
        }
        value
    }

    /// Prints the end, and whether the webhook was removed.
    pub fn ended(self, webhook: &str, removed: bool) -> io::Result<()> {
        if self.output.json {
            return self.output.raw(json!({ "kind": "ended", "webhookIdentifier": webhook, "removed": removed }));
        }
        if removed {
            self.remark(format!("Stopped; the webhook {webhook} is removed."));
        }
        Ok(())
    }

    /// Writes a notice to standard error.
    pub fn remark(self, text: impl Display) {
        self.output.remark(text);
    }
}

fn envelope(body: &str) -> Envelope {
    serde_json::from_str(body).unwrap_or_default()
}

fn line(arrival: &Arrival<'_>) -> String {
    let FeedDelivery { delivery_identifier, attempt_number, body, .. } = arrival.delivery;
    let Envelope { id, kind, subject } = envelope(body);
    let clock = arrival.at.to_string().get(11..19).map(|clock| format!("{clock}Z")).unwrap_or_default();
    let kind = visible_line(kind.as_deref().unwrap_or("event"));
    let about = visible_line(subject.or(id).as_deref().unwrap_or("-"));
    let attempt = if *attempt_number > 1 { format!("  attempt {attempt_number}") } else { String::new() };
    let answer = match arrival.answer {
        None => String::new(),
        Some(answer) => {
            let colour = colour_of_answer(answer.as_ref().ok().map(|answer| answer.status.into()));
            let text = match answer {
                Ok(Answer { status: status @ 200..=299, .. }) => status.to_string(),
                Ok(Answer { status, body }) => format!("{status} {body}").trim_end().to_owned(),
                Err(reason) => visible_line(reason),
            };
            format!("  {colour}{text}{colour:#}  {} ms", arrival.took.as_millis())
        }
    };
    format!("{DIM}{clock}{DIM:#}  {kind}  {about}  {DIM}{}{DIM:#}{attempt}{answer}", visible_line(delivery_identifier))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use anstream::adapter::strip_str;

    use super::*;

    fn delivery(body: &str) -> FeedDelivery {
        FeedDelivery {
            delivery_identifier: "dlv_1".to_owned(),
            attempt_number: 2,
            receipt: "r".to_owned(),
            headers: BTreeMap::new(),
            body: body.to_owned(),
        }
    }

    fn shown(body: &str, answer: Option<&Answered>) -> String {
        let at = "2026-11-20T09:45:00.123Z".parse().expect("a time");
        let delivery = delivery(body);
        strip_str(&line(&Arrival { at, delivery: &delivery, answer, took: Duration::from_millis(12) })).to_string()
    }

    #[test]
    fn an_event_and_its_answer_are_one_line() {
        let body = r#"{"id":"evt_1","type":"booking.created","subject":"B-1\u001b","data":{}}"#;
        assert_eq!(
            shown(body, Some(&Ok(Answer { status: 500, body: "no database".to_owned() }))),
            "09:45:00Z  booking.created  B-1\u{fffd}  dlv_1  attempt 2  500 no database  12 ms"
        );
        let refused = Err("Connection refused".to_owned());
        assert!(shown(body, Some(&refused)).ends_with("  Connection refused  12 ms"));
    }

    #[test]
    fn a_body_without_subject_or_type_has_a_line_as_well() {
        assert_eq!(shown(r#"{"id":"evt_1"}"#, None), "09:45:00Z  event  evt_1  dlv_1  attempt 2");
        assert_eq!(shown("no JSON", None), "09:45:00Z  event  -  dlv_1  attempt 2");
    }
}
