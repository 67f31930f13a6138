//! A delivery and its states.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Attempt;
use crate::{
    auth::entity::EntityId,
    clock::Time,
    ids::{DeliveryId, WebhookId},
};

/// Where a delivery stands. The first two are open, the others final until somebody asks for it again.
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
    /// Its webhook is gone or disabled.
    Cancelled,
}

impl Status {
    /// The state of this name.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Pending, Self::Retrying, Self::Delivered, Self::Failed, Self::Cancelled];
        all.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether another attempt may be made without anybody asking.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Retrying)
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

/// A delivery, without its event and attempts.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// How many attempts were made.
    pub attempt_count: u32,
    /// When it was made.
    pub created_date: Time,
    /// Its identifier.
    pub id: DeliveryId,
    /// What the last attempt was answered with; none when none was made or the last one did not complete.
    #[serde(default)]
    pub last_http_status: Option<u16>,
    /// When it last changed.
    pub last_update: Time,
    /// When the next attempt is due; none when none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_date: Option<Time>,
    /// The managing entity that owns it.
    pub owner_identifier: EntityId,
    /// Where it stands.
    pub status: Status,
    /// The event's type.
    pub r#type: String,
    /// Where it goes, as its webhook said when it was made.
    pub url: String,
    /// The webhook that it goes to.
    pub webhook_identifier: WebhookId,
}

/// A delivery with everything that is known of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WholeDelivery {
    /// The delivery.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// Every attempt, the oldest first.
    pub attempts: Vec<Attempt>,
    /// The very body that is sent.
    pub event: Box<RawValue>,
}
