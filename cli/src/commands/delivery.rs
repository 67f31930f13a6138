//! `waypost show`, `waypost resend` and `waypost cancel`: one delivery.

use clap::Args;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::answer::print_answer;
use crate::{
    failure::Failure,
    output::{BOLD, DIM, Output, colour_of, colour_of_answer, pretty_json, short_time, visible, visible_line},
    service::{Call, Service, segment},
    table::{Cell, members},
};

#[derive(Debug, Args)]
pub struct WhichDelivery {
    /// The delivery's identifier, as `waypost deliveries` shows it.
    #[arg(value_parser = segment)]
    id: String,
}

/// The delivery members that are shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    subject: Option<String>,
    status: String,
    url: Option<String>,
    webhook_identifier: String,
    created_date: String,
    next_attempt_date: Option<String>,
    waiting_for: Option<String>,
    held_by: Option<String>,
    cancel_reason: Option<String>,
    attempts: Vec<Attempt>,
    /// The event exactly as published, preserving number formatting and key order.
    event: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    attempt_number: u64,
    attempt_date: String,
    duration_ms: u64,
    http_status: Option<u64>,
    /// Whether a reader of the webhook's feed confirmed the delivery.
    #[serde(default)]
    confirmed: bool,
    error: Option<String>,
    /// The address that the endpoint redirected to.
    location: Option<String>,
    response_body: Option<String>,
}

impl WhichDelivery {
    pub async fn show(self, service: &Service, output: Output) -> Result<(), Failure> {
        print_answer(service, Call::get(&["webhook", "delivery", &self.id]), output, shown).await
    }

    /// Sends the delivery again, and prints its status at that moment.
    pub async fn resend(self, service: &Service, output: Output) -> Result<(), Failure> {
        self.act(service, "resend", output, |id| format!("`waypost show {id}` shows its next attempt.")).await
    }

    pub async fn cancel(self, service: &Service, output: Output) -> Result<(), Failure> {
        self.act(service, "cancel", output, |id| format!("`waypost resend {id}` sends it anyway.")).await
    }

    async fn act(
        self,
        service: &Service,
        action: &str,
        output: Output,
        next: fn(&str) -> String,
    ) -> Result<(), Failure> {
        let path = ["webhook", "delivery", &self.id, action];
        print_answer(service, Call::post(&path, json!({})), output, |delivery: &Delivery| {
            let colour = colour_of(&delivery.status);
            let [id, status] = [&delivery.id, &delivery.status].map(|text| visible_line(text));
            format!("{id} is {colour}{status}{colour:#}; {}", next(&id))
        })
        .await
    }
}

fn shown(delivery: &Delivery) -> String {
    let optional = |value: &Option<String>| value.as_deref().map(Cell::plain);
    let members = members([
        ("delivery", Some(Cell::plain(&delivery.id))),
        ("type", Some(Cell::plain(&delivery.kind))),
        ("subject", optional(&delivery.subject)),
        ("webhook", Some(Cell::plain(&delivery.webhook_identifier))),
        ("address", optional(&delivery.url)),
        ("created", Some(Cell::plain(&short_time(&delivery.created_date)))),
        ("next", delivery.next_attempt_date.as_deref().map(|date| Cell::plain(&short_time(date)))),
        ("waits for", optional(&delivery.waiting_for)),
        ("held by", optional(&delivery.held_by)),
        ("reason", optional(&delivery.cancel_reason)),
        ("status", Some(Cell::new(&delivery.status, colour_of(&delivery.status)))),
    ]);
    let attempts: String = delivery.attempts.iter().map(shown_attempt).collect();
    let attempts = if attempts.is_empty() { format!("  {DIM}none{DIM:#}\n") } else { attempts };
    format!(
        "{members}\n\n{BOLD}Attempts{BOLD:#}\n{attempts}\n{BOLD}Event{BOLD:#}\n{}",
        indented(&visible(&pretty_json(delivery.event.get())))
    )
}

fn shown_attempt(attempt: &Attempt) -> String {
    let colour = if attempt.confirmed { colour_of("delivered") } else { colour_of_answer(attempt.http_status) };
    let answer = match (attempt.http_status, &attempt.error) {
        (Some(status), _) => {
            let to = attempt.location.as_deref().map(|location| format!(" to {}", visible_line(location)));
            format!("{status}{}", to.unwrap_or_default())
        }
        (None, Some(error)) => visible_line(error),
        (None, None) if attempt.confirmed => "confirmed".to_owned(),
        (None, None) => "no answer".to_owned(),
    };
    let body = attempt.response_body.as_deref().map(|body| indented(&visible(body)) + "\n").unwrap_or_default();
    format!(
        "  {:>2}  {DIM}{}{DIM:#}  {colour}{answer}{colour:#}  {} ms\n{body}",
        attempt.attempt_number,
        short_time(&attempt.attempt_date),
        attempt.duration_ms
    )
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("      {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn a_delivery_is_shown_with_each_attempt_and_the_exact_event() {
        let delivery = r#"{"id":"dlv_1","type":"booking.created","subject":"B-1","status":"retrying","url":"https://a",
            "webhookIdentifier":"whk_1","createdDate":"2026-11-20T09:45:00.123Z","waitingFor":"schedule",
            "nextAttemptDate":"2026-11-20T09:50:21.007Z","attemptCount":2,"attempts":[
            {"attemptNumber":1,"attemptDate":"2026-11-20T09:45:00.158Z","durationMs":5001,"httpStatus":null,
             "error":"timeout: the endpoint did not accept a connection in time"},
            {"attemptNumber":2,"attemptDate":"2026-11-20T09:45:10.412Z","durationMs":87,"httpStatus":500,
             "responseBody":"out of\u001b memory"},
            {"attemptNumber":3,"attemptDate":"2026-11-20T09:45:20.412Z","durationMs":4,"httpStatus":null,
             "confirmed":true},
            {"attemptNumber":4,"attemptDate":"2026-11-20T09:45:30.412Z","durationMs":5,"httpStatus":308,
             "location":"https://a/hooks/"}],"event":{"total":1.10,"a":12345678901234567890123}}"#;
        let delivery: Delivery = serde_json::from_str(delivery).expect("a delivery");
        let text = strip_str(&shown(&delivery)).to_string();
        for line in [
            "delivery   dlv_1",
            "waits for  schedule",
            "status     retrying",
            "   1  2026-11-20 09:45:00Z  timeout: the endpoint did not accept a connection in time  5001 ms",
            "   2  2026-11-20 09:45:10Z  500  87 ms",
            "   3  2026-11-20 09:45:20Z  confirmed  4 ms",
            "   4  2026-11-20 09:45:30Z  308 to https://a/hooks/  5 ms",
            "      out of\u{fffd} memory",
            "        \"total\": 1.10,",
            "        \"a\": 12345678901234567890123",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line:?} in {text}");
        }
    }
}
