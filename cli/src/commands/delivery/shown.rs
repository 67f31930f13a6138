//! A delivery with its attempts and its event, for people.

use super::view::{Attempt, Delivery, DeliveryWebhook};
use crate::{
    output::{BOLD, DIM, colour_of, pretty_json, short_time, visible},
    table::{Cell, members},
};

/// Shows a delivery to a webhook, if the webhook still exists.
pub fn shown(delivery: &Delivery, webhook: Option<&DeliveryWebhook>) -> String {
    let optional = |value: &Option<String>| value.as_deref().map(Cell::plain);
    let id = &delivery.webhook_identifier;
    let to = webhook.map_or_else(|| id.clone(), |webhook| format!("{} ({id})", webhook.name));
    let pause = webhook.map(DeliveryWebhook::pause).unwrap_or_default();
    let members = members([
        ("delivery", Some(Cell::plain(&delivery.id))),
        ("type", Some(Cell::plain(&delivery.kind))),
        ("subject", optional(&delivery.subject)),
        ("webhook", Some(Cell::plain(&to))),
        ("address", optional(&delivery.url)),
        ("created", Some(Cell::plain(&short_time(&delivery.created_date)))),
        ("waits", delivery.wait().words(pause).map(|words| Cell::plain(&words))),
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
    let colour = attempt.colour();
    let body = attempt.response_body.as_deref().map(|body| indented(&visible(body)) + "\n").unwrap_or_default();
    format!(
        "  {:>2}  {DIM}{}{DIM:#}  {colour}{}{colour:#}  {} ms\n{body}",
        attempt.attempt_number,
        short_time(&attempt.attempt_date),
        attempt.answer(),
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
        let text = strip_str(&shown(&delivery, None)).to_string();
        for line in [
            "delivery  dlv_1",
            "webhook   whk_1",
            "waits     for its next attempt on the retry schedule, at 2026-11-20 09:50:21Z",
            "status    retrying",
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

    #[test]
    fn a_delivery_to_a_paused_webhook_is_shown_with_its_name_and_check() {
        let delivery = r#"{"id":"dlv_1","type":"booking.created","status":"pending","webhookIdentifier":"whk_1",
            "createdDate":"2026-11-20T09:45:00.123Z","nextAttemptDate":"2026-11-20T09:51:00.000Z",
            "waitingFor":"breaker","attempts":[],"event":{}}"#;
        let delivery: Delivery = serde_json::from_str(delivery).expect("a delivery");
        let webhook = r#"{"name":"Door\u001b locks","pausedBy":"service","pausedUntil":"2026-11-20T09:50:00.000Z"}"#;
        let webhook: DeliveryWebhook = serde_json::from_str(webhook).expect("a webhook");
        let text = strip_str(&shown(&delivery, Some(&webhook))).to_string();
        assert!(text.contains("webhook   Door\u{fffd} locks (whk_1)\n"), "{text}");
        assert!(text.contains("checks it at 2026-11-20 09:50:00Z\n") && !text.contains("next"), "{text}");
    }
}
