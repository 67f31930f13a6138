//! Webhooks, as stored in the table and as owners see them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    breaker::HealthItem,
    endpoint::{KeptEndpoint, SealContext},
    secret::RevealedSecret,
    webhook_status::WebhookStatus,
};
use crate::{deliveries::queries::advice::Cause, events::catalogue};
use auth::{EntityId, OwnerView};
use base::{Time, WebhookId};

/// A webhook as stored in the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub(crate) created_date: Time,
    /// When it was disabled; absent while it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_date: Option<Time>,
    /// Why the service disabled it; absent while it is enabled or when its owner disabled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_reason: Option<String>,
    pub(crate) enabled: bool,
    /// The wanted types and groups of types; empty for every type.
    pub(crate) event_list: Vec<String>,
    #[serde(flatten)]
    pub(crate) endpoint: KeptEndpoint,
    pub(crate) id: WebhookId,
    /// When it was last changed, or its signing secret was replaced.
    pub(crate) last_update: Time,
    pub(crate) name: String,
    pub(crate) owner_identifier: EntityId,
    /// The end of the previous signing secret, derived from the secrets and not written.
    #[serde(skip)]
    pub(crate) previous_secret_ends: Option<Time>,
    /// The end of its mark as slow: see [`super::pace`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slow_until: Option<Time>,
    /// The number of its changes, from 1. A new signing secret does not count: see [`super::rotate`].
    pub(crate) version: u64,
}

/// The prefix of the sort keys of webhooks.
pub(super) const PREFIX: &str = "WHK#";

pub(super) fn partition(entity: &EntityId) -> String {
    format!("ENT#{entity}")
}

/// The key of a webhook in the table.
pub(super) fn key(entity: &EntityId, webhook: &WebhookId) -> (String, String) {
    (partition(entity), format!("{PREFIX}{webhook}"))
}

/// A webhook as its owner sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView {
    created_date: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_date: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_reason: Option<String>,
    enabled: bool,
    event_list: Vec<String>,
    event_url: String,
    headers: BTreeMap<String, &'static str>,
    #[serde(flatten)]
    status: WebhookStatus,
    /// The webhook's identifier.
    pub id: WebhookId,
    last_update: Time,
    name: String,
    #[serde(flatten)]
    owner: OwnerView,
    /// Absent unless a previous secret signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_expires_date: Option<Time>,
    /// Shown once, when the webhook is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_secret: Option<RevealedSecret>,
    /// The owner again, under the name that published clients read.
    user_identifier: EntityId,
    version: u64,
}

impl Webhook {
    /// Whether it is enabled and subscribes to this type of event.
    pub fn subscribes_to(&self, kind: &str) -> bool {
        self.enabled
            && (self.event_list.is_empty()
                || self.event_list.iter().any(|wanted| wanted == kind || catalogue::is_in_group(wanted, kind)))
    }

    /// The owner's view of the webhook with this health, without a secret.
    pub fn view(&self, health: Option<&HealthItem>, now: Time) -> WebhookView {
        WebhookView {
            created_date: self.created_date,
            disabled_date: self.disabled_date,
            disabled_reason: self.disabled_reason.clone(),
            enabled: self.enabled,
            event_list: self.event_list.clone(),
            event_url: self.endpoint.shown_url(),
            headers: self.endpoint.shown_headers(),
            status: WebhookStatus::of(self.enabled, health),
            id: self.id.clone(),
            last_update: self.last_update,
            name: self.name.clone(),
            owner: OwnerView::of(&self.owner_identifier),
            previous_secret_expires_date: self.previous_secret_ends.filter(|end| now < *end),
            signing_secret: None,
            user_identifier: self.owner_identifier.clone(),
            version: self.version,
        }
    }

    /// The context that its endpoint is sealed for.
    pub fn seal_context(&self) -> SealContext<'_> {
        SealContext { owner: &self.owner_identifier, webhook: &self.id }
    }
}

impl WebhookView {
    /// The cause that holds up the whole webhook, if any.
    pub fn held_up_by(&self) -> Option<Cause> {
        self.status.held_up_by()
    }

    /// Why its last attempt failed; `None` when it succeeded, or there was none.
    pub fn last_failure(&self) -> Option<Cause> {
        self.status.last_failure()
    }

    /// The view with a signing secret.
    pub(super) fn with_secret(self, secret: RevealedSecret) -> Self {
        Self { signing_secret: Some(secret), ..self }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::subscriptions::{endpoint::Kept, masked::Headers};
    use base::testing::CountingRandom;

    /// A webhook for tests.
    pub(in crate::subscriptions) fn webhook() -> Webhook {
        let now = Time::from_millis(1_795_167_900_123);
        Webhook {
            created_date: now,
            disabled_date: Some(now),
            disabled_reason: Some("The endpoint answered 410 Gone.".into()),
            enabled: false,
            event_list: Vec::new(),
            endpoint: KeptEndpoint::new(
                Kept { shown: "https://example.com/".into(), sealed: None },
                Kept { shown: Headers::new(), sealed: None },
            ),
            id: WebhookId::new(now, &CountingRandom::default()),
            last_update: now,
            name: "n".into(),
            owner_identifier: EntityId::parse("demo-hotel").expect("an entity"),
            previous_secret_ends: None,
            slow_until: None,
            version: 7,
        }
    }

    #[test]
    fn a_webhook_wants_its_types_and_all_types_of_its_groups() {
        let wanting = |list: &[&str]| Webhook {
            enabled: true,
            event_list: list.iter().copied().map(str::to_owned).collect(),
            ..webhook()
        };
        let some = wanting(&["payment.received", "booking.*"]);
        for (kind, wanted) in [
            ("payment.received", true),
            ("booking.created", true),
            ("booking.note.added", true),
            ("booking.added_to_the_catalogue_later", true),
            ("payment.refunded", false),
            ("bookings.created", false),
        ] {
            assert_eq!(some.subscribes_to(kind), wanted, "{kind}");
            assert!(wanting(&[]).subscribes_to(kind));
            assert!(
                !Webhook { enabled: false, ..wanting(&["booking.*"]) }.subscribes_to(kind),
                "a disabled webhook wants nothing"
            );
        }
    }
}
