//! A delivery and its states.

use serde::{Deserialize, Serialize};

use crate::{deliveries::state::attempt::ErrorCode, events::catalogue};
use auth::EntityId;
use base::{DeliveryId, Time, WebhookId};

/// The number of attempts after which a delivery cannot be resent, since one response shows all attempts with their
/// bodies. A schedule that has begun still completes.
pub const MAX_ATTEMPTS: u32 = 100;

/// A delivery's state. The first two are open; the others are final until the delivery is resent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// No attempt has been made yet.
    Pending,
    /// The last attempt failed, and another is due.
    Retrying,
    /// An attempt succeeded.
    Delivered,
    /// No attempt succeeded, and none is due.
    Failed,
    /// It ended without success, for a [`CancelReason`].
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

/// Why an open delivery is waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitingFor {
    /// Its webhook's circuit breaker, until an attempt shows that the endpoint is responding again.
    Breaker,
    /// The end of its owner's pause.
    Pause,
    /// A permit: the delivery is due, but too many attempts are under way.
    Limit,
    /// Its slot: its webhook has a rate limit.
    Rate,
    /// The preceding delivery: the webhook receives the events about a subject one after another.
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
            Self::Pause => "pause",
            Self::Limit => "limit",
            Self::Rate => "rate",
            Self::Order => "order",
            Self::Schedule => "schedule",
            Self::Reader => "reader",
        }
    }
}

/// Why a delivery was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CancelReason {
    /// Its event's content was erased, so there is nothing left to send.
    Erased,
    /// Its retention ended, or its event was never stored.
    Expired,
    /// Its owner cancelled it.
    Owner,
    /// Its webhook was disabled.
    WebhookDisabled,
    /// Its webhook was removed.
    WebhookRemoved,
}

impl CancelReason {
    /// The name on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Erased => "erased",
            Self::Expired => "expired",
            Self::Owner => "owner",
            Self::WebhookDisabled => "webhook-disabled",
            Self::WebhookRemoved => "webhook-removed",
        }
    }
}

/// A delivery without its state, event and attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The number of attempts in all its schedules.
    pub attempt_count: u32,
    /// When its event was published.
    pub created_date: Time,
    /// When its event's content was erased, along with the responses in its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased_date: Option<Time>,
    /// The delivery's identifier.
    pub id: DeliveryId,
    /// Why the last attempt never completed, or why it failed at a feed's reader; `None` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<ErrorCode>,
    /// The HTTP status of the last attempt; `None` before the first attempt, or if the last one got no response.
    #[serde(default)]
    pub last_http_status: Option<u16>,
    /// When its state last changed.
    pub last_update: Time,
    /// The managing entity that owns it.
    pub owner_identifier: EntityId,
    /// Its event's subject, such as a booking's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// The webhook.
    pub webhook_identifier: WebhookId,
}

impl Delivery {
    /// Whether it is possible that no request was sent: a worker may have been interrupted before sending one.
    pub(crate) fn may_be_first(&self) -> bool {
        self.attempt_count == 0 || self.last_error == Some(ErrorCode::Interrupted)
    }

    /// Whether it carries an operational event. A test does not count, even with a sample of an operational type
    /// (`health::operational`).
    pub(crate) fn is_operational(&self) -> bool {
        !self.test && catalogue::is_operational(&self.r#type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::state::head::tests::head;

    #[test]
    fn an_operational_event_is_operational_unless_it_is_a_test() {
        let is_operational = |kind: &str, test: bool| {
            let mut delivery = head().delivery;
            delivery.r#type = kind.to_owned();
            delivery.test = test;
            delivery.is_operational()
        };
        let operational = catalogue::all().iter().filter(|kind| is_operational(kind.value, false));
        let operational: Vec<_> = operational.map(|kind| kind.value).collect();
        assert_eq!(operational.len(), 4, "{operational:?}");
        assert!(operational.contains(&"webhook.failing") && !operational.contains(&"webhook.test"));
        assert!(catalogue::all().iter().all(|kind| !is_operational(kind.value, true)));
    }
}
