//! A delivery and its states.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::deliveries::attempt::{Attempt, ErrorCode};
use auth::EntityId;
use base::{DeliveryId, Time, WebhookId};
use problem::Violation;

/// The number of attempts after which a delivery cannot be sent again, since one response shows all attempts with their
/// bodies. A schedule that has begun still completes.
pub const MAX_ATTEMPTS: u32 = 100;

/// The state of a delivery. The first two are open; the others are final until the delivery is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// No attempt was made yet.
    Pending,
    /// The last attempt failed, and another is due.
    Retrying,
    /// An attempt succeeded.
    Delivered,
    /// No attempt succeeded, and none is due.
    Failed,
    /// Its webhook is removed or disabled, the content of its event is erased, or its owner cancelled it.
    Cancelled,
}

impl Status {
    /// The state with this name.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Pending, Self::Retrying, Self::Delivered, Self::Failed, Self::Cancelled];
        all.into_iter().find(|status| status.as_str() == name)
    }

    /// The state's name on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Retrying => "retrying",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The reason why an open delivery waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitingFor {
    /// The circuit breaker of its webhook, until an attempt shows that the endpoint answers again.
    Breaker,
    /// A permit: the delivery is due, but too many attempts are under way.
    Limit,
    /// Its slot: its webhook has a rate limit.
    Rate,
    /// The delivery before it: the webhook gets the events about a subject one after another.
    Order,
    /// The time of its next attempt.
    Schedule,
    /// A reader of its webhook's feed.
    Reader,
}

impl WaitingFor {
    /// The name on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Breaker => "breaker",
            Self::Limit => "limit",
            Self::Rate => "rate",
            Self::Order => "order",
            Self::Schedule => "schedule",
            Self::Reader => "reader",
        }
    }
}

/// Why a delivery was cancelled, if not because its webhook was removed or disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CancelReason {
    /// The content of its event was erased, so that there is nothing to send.
    Erased,
    /// Its owner cancelled this delivery.
    Owner,
}

impl CancelReason {
    /// The name on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Erased => "erased",
            Self::Owner => "owner",
        }
    }
}

/// A delivery, without its event and attempts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The number of attempts over all its schedules.
    pub attempt_count: u32,
    /// Why it was cancelled; `None` if it was not, or if its webhook was removed or disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<CancelReason>,
    /// When its event was published.
    pub created_date: Time,
    /// When the content of its event was erased, along with the responses in its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_date: Option<Time>,
    /// The delivery that must be final before this one is sent; `None` unless this one waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<DeliveryId>,
    /// The delivery's identifier.
    pub id: DeliveryId,
    /// Why the last attempt never completed, or failed in the reader of a feed; `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<ErrorCode>,
    /// The HTTP status of the last attempt; `None` before the first attempt, or if the last one got no response.
    #[serde(default)]
    pub last_http_status: Option<u16>,
    /// When its state last changed.
    pub last_update: Time,
    /// When the next attempt is due, if its time is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_date: Option<Time>,
    /// The managing entity that owns it.
    pub owner_identifier: EntityId,
    /// Its state.
    pub status: Status,
    /// The subject of its event, such as a booking's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whether its event was sent by a test of the webhook.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
    /// The event's type.
    pub r#type: String,
    /// The webhook's URL when the delivery was created, with the values of its query masked. Empty, and not shown, for
    /// a webhook that is pulled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The reason for its wait. The table does not store [`WaitingFor::Limit`] and [`WaitingFor::Schedule`], which are
    /// derived from times and cost no write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// The webhook.
    pub webhook_identifier: WebhookId,
}

impl Delivery {
    /// Whether no request may have been sent: a worker that was interrupted may not have sent its request.
    pub(crate) fn may_be_first(&self) -> bool {
        self.attempt_count == 0 || self.last_error == Some(ErrorCode::Interrupted)
    }
}

/// A delivery with its event and its attempts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WholeDelivery {
    /// The delivery.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// All attempts, the oldest first.
    pub attempts: Vec<Attempt>,
    /// The body, byte for byte as it is sent.
    pub event: Box<RawValue>,
    /// Violations of the type's schema in the event's data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event_warnings: Vec<Violation>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        deliveries::{attempt::SentTo, store::shown},
        events::payload::Payload,
    };
    use base::{EventId, testing::CountingRandom};
    use outbound::HttpResponse;
    use problem::Rule;

    #[test]
    fn the_most_and_largest_attempts_fit_into_one_answer() {
        /// The largest answer of a function
        /// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
        const MAX_ANSWER: usize = 6 * 1024 * 1024;
        /// The longest schedule that can be set, begun just below the limit of attempts.
        const LONGEST_SCHEDULE: u32 = 100;
        let now = Time::from_millis(1_795_167_900_000);
        // The characters that grow most, since the response is a text within JSON: a NUL takes seven bytes there, a
        // quote four.
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
        let random = CountingRandom::default();
        let delivery = Delivery {
            attempt_count: MAX_ATTEMPTS,
            cancel_reason: Some(CancelReason::Erased),
            created_date: now,
            erased_date: Some(now),
            held_by: Some(DeliveryId::of(&EventId::new(now, &random), 1)),
            id: DeliveryId::of(&EventId::new(now, &random), 0),
            last_error: Some(ErrorCode::Timeout),
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
        };
        let attempt = |number| {
            let headers = Some((0..20).map(|header| format!("{}{header:02}", "x".repeat(126))).collect());
            let sent_to = SentTo { url: "x".repeat(2_048), headers, payload: Payload::Thin };
            Attempt::of(number, now, now, &outcome, sent_to, "")
        };
        let attempts = shown((1..MAX_ATTEMPTS + LONGEST_SCHEDULE).map(attempt).collect(), "");
        let event = RawValue::from_string(event).expect("JSON");
        let warning = Violation::body("\"".repeat(120).as_str(), Rule::Invalid, "\"".repeat(80));
        let whole = WholeDelivery { delivery, attempts, event, event_warnings: vec![warning; 5] };
        let answer = serde_json::to_string(&serde_json::to_string(&whole).expect("JSON")).expect("JSON");
        assert!(answer.len() + 4_096 < MAX_ANSWER, "{}", answer.len());
    }
}
