//! Deliveries and attempts as their owner sees them.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::deliveries::{
    queries::advice::{Advice, Cause},
    state::{
        attempt::{Attempt, ErrorCode},
        delivery::{CancelReason, Status, WaitingFor},
    },
};
use auth::EntityId;
use base::{DeliveryId, EventId, Time, WebhookId};
use problem::Violation;

/// A delivery as its owner sees it, without its event and attempts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    /// The number of attempts in all its schedules.
    pub attempt_count: u32,
    /// Why it was cancelled; `None` if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<CancelReason>,
    /// When its event was published.
    pub created_date: Time,
    /// When its event's content was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased_date: Option<Time>,
    /// Its event's identifier.
    pub event_identifier: EventId,
    /// The delivery that must be final before this one is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<DeliveryId>,
    /// The delivery's identifier.
    pub id: DeliveryId,
    /// Why the last attempt never completed, or why it failed at a feed's reader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_code: Option<ErrorCode>,
    /// The HTTP status of the last attempt; null before the first attempt, or if the last one got no response.
    pub last_http_status: Option<u16>,
    /// When its state last changed.
    pub last_update: Time,
    /// When the next attempt is due, if its time is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_date: Option<Time>,
    /// The managing entity that owns it.
    pub owner_identifier: EntityId,
    /// Its state.
    pub status: Status,
    /// Its event's subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whether its event was sent by a test of the webhook.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
    /// The event's type.
    pub r#type: String,
    /// The webhook's URL when the delivery was created, with its query values masked. Empty, and not shown, for a pull
    /// webhook.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Why it is waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// The webhook.
    pub webhook_identifier: WebhookId,
}

impl DeliveryView {
    /// Why it has not arrived, according to its last attempt; `None` if it has arrived, was cancelled on purpose, or is
    /// waiting for something that its owner cannot change.
    fn cause(&self, last_attempt: Option<&Attempt>) -> Option<Cause> {
        match (self.status, self.waiting_for) {
            (Status::Delivered, _) => None,
            (Status::Cancelled, _) => {
                (self.cancel_reason == Some(CancelReason::WebhookDisabled)).then_some(Cause::Disabled)
            }
            (_, Some(WaitingFor::Breaker)) => Some(Cause::Paused),
            (_, Some(WaitingFor::Pause)) => Some(Cause::PausedByOwner),
            (_, Some(WaitingFor::Order)) => Some(Cause::Held),
            (_, Some(WaitingFor::Rate)) => Some(Cause::RateLimited),
            // The last attempt belongs to an earlier schedule.
            (Status::Pending, _) => None,
            (Status::Retrying | Status::Failed, _) => last_attempt.and_then(Cause::of_attempt),
        }
    }
}

/// An attempt as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    /// The attempt, with the parts that the table leaves out.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The code at the beginning of the attempt's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// The sentence after the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_detail: Option<String>,
}

impl AttemptView {
    /// The view of a complete attempt.
    pub fn of(attempt: Attempt) -> Self {
        let error = attempt.error.as_deref().and_then(ErrorCode::split);
        let (error_code, error_detail) = error.map(|(code, detail)| (code, detail.to_owned())).unzip();
        Self { attempt, error_code, error_detail }
    }
}

/// A delivery with its event and its attempts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WholeDelivery {
    /// The delivery.
    #[serde(flatten)]
    pub delivery: DeliveryView,
    /// Why it has not arrived, and the remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// All attempts, oldest first.
    pub attempts: Vec<AttemptView>,
    /// The event, byte for byte as a webhook with `payload` `full` receives it.
    pub event: Box<RawValue>,
    /// Where the event's data violates the type's schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event_warnings: Vec<Violation>,
}

impl WholeDelivery {
    /// The delivery with its event and all of its attempts, oldest first.
    pub fn of(
        delivery: DeliveryView,
        attempts: Vec<AttemptView>,
        event: Box<RawValue>,
        event_warnings: Vec<Violation>,
    ) -> Self {
        let advice = delivery.cause(attempts.last().map(|last| &last.attempt)).map(Cause::advice);
        Self { delivery, advice, attempts, event, event_warnings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        deliveries::{
            state::{attempt::SentTo, delivery::MAX_ATTEMPTS},
            store::shown,
        },
        events::payload::Payload,
    };
    use base::testing::CountingRandom;
    use outbound::HttpResponse;
    use problem::Rule;

    fn delivery(now: Time) -> DeliveryView {
        let random = CountingRandom::default();
        DeliveryView {
            attempt_count: MAX_ATTEMPTS,
            cancel_reason: Some(CancelReason::Erased),
            created_date: now,
            erased_date: Some(now),
            event_identifier: EventId::new(now, &random),
            held_by: Some(DeliveryId::of(&EventId::new(now, &random), 1)),
            id: DeliveryId::of(&EventId::new(now, &random), 0),
            last_error_code: Some(ErrorCode::Timeout),
            last_http_status: None,
            last_update: now,
            next_attempt_date: Some(now),
            owner_identifier: EntityId::parse(&"e".repeat(64)).expect("an entity"),
            status: Status::Failed,
            subject: Some("\"".repeat(256)),
            test: true,
            r#type: "booking.created".to_owned(),
            url: "\"".repeat(2_048),
            waiting_for: Some(WaitingFor::Schedule),
            webhook_identifier: WebhookId::new(now, &random),
        }
    }

    #[test]
    fn the_most_and_largest_attempts_fit_into_one_answer() {
        /// The largest response that a function may return
        /// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
        const MAX_ANSWER: usize = 6 * 1024 * 1024;
        /// The longest possible schedule, begun just below the limit on attempts.
        const LONGEST_SCHEDULE: u32 = 100;
        let now = Time::from_millis(1_795_167_900_000);
        // The characters that grow most, since the response is a string inside JSON: there, a NUL takes seven bytes,
        // and a quote four.
        let answer = HttpResponse {
            status: http::StatusCode::OK,
            location: None,
            retry_after: None,
            media_type: None,
            body: vec![0; 4_096],
            truncated: true,
        };
        let outcome = Ok(answer);
        let event = format!("[{}]", vec!["\"\""; 256 * 1024 / 3].join(","));
        let delivery = delivery(now);
        let attempt = |number| {
            let headers = Some((0..20).map(|header| format!("{}{header:02}", "x".repeat(126))).collect());
            let sent_to = SentTo { url: "x".repeat(2_048), headers, payload: Payload::Thin };
            Attempt::of(number, now, now, &outcome, sent_to, "")
        };
        let attempts = shown((1..MAX_ATTEMPTS + LONGEST_SCHEDULE).map(attempt).collect(), "");
        let event = RawValue::from_string(event).expect("JSON");
        let warning = Violation::body("\"".repeat(120).as_str(), Rule::Invalid, "\"".repeat(80));
        let whole = WholeDelivery::of(delivery, attempts, event, vec![warning; 5]);
        let answer = serde_json::to_string(&serde_json::to_string(&whole).expect("JSON")).expect("JSON");
        assert!(answer.len() + 4_096 < MAX_ANSWER, "{}", answer.len());
    }

    #[test]
    fn an_error_is_shown_whole_and_in_its_two_parts() {
        let now = Time::from_millis(1_795_167_900_000);
        let shown = |error: Option<&str>| {
            let attempt = Attempt::of_reader(1, now, now, error.map(str::to_owned));
            serde_json::to_value(AttemptView::of(attempt)).expect("JSON")
        };
        let failed = shown(Some("reported: no room: 7"));
        let members = ["error", "errorCode", "errorDetail"].map(|name| failed[name].clone());
        assert_eq!(members, ["reported: no room: 7", "reported", "no room: 7"]);
        assert!(shown(None).get("errorCode").is_none() && shown(None).get("errorDetail").is_none());
    }

    #[test]
    fn the_cause_is_that_of_the_wait_or_else_of_the_last_attempt() {
        let now = Time::from_millis(1_795_167_900_000);
        let last = Attempt::of_reader(1, now, now, Some("reported: no room".to_owned()));
        let cause = |status, waiting_for, cancel_reason| {
            let delivery = DeliveryView { status, waiting_for, cancel_reason, ..delivery(now) };
            delivery.cause(Some(&last))
        };
        assert_eq!(cause(Status::Delivered, None, None), None);
        assert_eq!(cause(Status::Failed, None, None), Some(Cause::Reported));
        assert_eq!(cause(Status::Retrying, Some(WaitingFor::Schedule), None), Some(Cause::Reported));
        for (waiting_for, expected) in [
            (WaitingFor::Breaker, Some(Cause::Paused)),
            (WaitingFor::Pause, Some(Cause::PausedByOwner)),
            (WaitingFor::Order, Some(Cause::Held)),
            (WaitingFor::Rate, Some(Cause::RateLimited)),
            (WaitingFor::Reader, None),
            (WaitingFor::Limit, None),
        ] {
            assert_eq!(cause(Status::Pending, Some(waiting_for), None), expected, "{waiting_for:?}");
        }
        assert_eq!(cause(Status::Cancelled, None, Some(CancelReason::WebhookDisabled)), Some(Cause::Disabled));
        assert_eq!(cause(Status::Cancelled, None, Some(CancelReason::Owner)), None);
    }
}
