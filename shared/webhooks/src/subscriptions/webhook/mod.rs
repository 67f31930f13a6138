//! Webhooks, as stored in the table and as owners see them.

pub mod change;
pub(crate) mod members;
pub(crate) mod pause;
pub mod pausing;
pub mod register;
pub mod remove;
pub(in crate::subscriptions) mod revision;
pub mod show;
pub(in crate::subscriptions) mod status;
pub(crate) mod store;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::subscriptions::{
    attempt_settings::{Retries, TimeoutSeconds},
    endpoint::{
        KeptEndpoint, SealContext,
        key_pair::{PublishedKey, SignatureScheme},
        secret::RevealedSecret,
    },
    filter::EventFilter,
    health::breaker::HealthItem,
    rate_limit::RateLimit,
    webhook::{pause::Pause, status::WebhookStatus},
};
use crate::{
    deliveries::queries::advice::Cause,
    events::{catalogue, payload::Payload},
};
use auth::{EntityId, OwnerView};
use base::{Time, WebhookId};
use problem::Metadata;

/// How a webhook's events reach its subscriber.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivering {
    /// The service calls the webhook's address.
    #[default]
    Push,
    /// The subscriber reads the feed of the webhook, which has no address.
    Pull,
}

impl Delivering {
    /// The name on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
        }
    }
}

/// The order in which a webhook's deliveries are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryOrder {
    /// Each delivery when it is due, regardless of others.
    #[default]
    None,
    /// Deliveries about the same subject one after another, in the order in which their events were accepted.
    Subject,
}

impl DeliveryOrder {
    /// The name on the wire and in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Subject => "subject",
        }
    }

    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// A webhook as stored in the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub(crate) created_date: Time,
    #[serde(default)]
    pub(crate) delivery: Delivering,
    /// When it was disabled; absent while it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_date: Option<Time>,
    /// Why the service disabled it; absent while it is enabled or if its owner disabled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_reason: Option<String>,
    pub(crate) enabled: bool,
    /// The filter on the data of its events; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event_filter: Option<EventFilter>,
    /// The types and groups of types of its events; empty for every type.
    pub(crate) event_list: Vec<String>,
    #[serde(flatten)]
    pub(crate) endpoint: KeptEndpoint,
    pub(crate) id: WebhookId,
    /// When it was last changed, or its signing secret was replaced.
    pub(crate) last_update: Time,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub(crate) metadata: Metadata,
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "DeliveryOrder::is_none")]
    pub(crate) order: DeliveryOrder,
    pub(crate) owner_identifier: EntityId,
    #[serde(default, skip_serializing_if = "Payload::is_full")]
    pub(crate) payload: Payload,
    /// The pause that its owner began. A pause with an end may be over.
    #[serde(flatten)]
    pub(crate) pause: Option<Pause>,
    /// The maximum rate of its attempts; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate_limit: Option<RateLimit>,
    /// When its feed was last read, to within a few minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Retries::is_default")]
    pub(crate) retries: Retries,
    /// Whether it is removed when its feed has not been read for a long time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) temporary: bool,
    #[serde(default, rename = "timeoutSeconds", skip_serializing_if = "TimeoutSeconds::is_default")]
    pub(crate) timeout: TimeoutSeconds,
    /// The end of the previous signing secret, derived from the secrets and not written.
    #[serde(skip)]
    pub(crate) previous_secret_ends: Option<Time>,
    /// The public keys, derived from the secrets and not written.
    #[serde(skip)]
    pub(crate) public_keys: Vec<PublishedKey>,
    /// The end of its mark as slow: see [`super::health::pace`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slow_until: Option<Time>,
    /// The number of its changes, from 1. A new signing secret does not count: see [`super::endpoint::rotate`].
    pub(crate) version: u64,
}

/// How long a delivery may wait in a feed that is being read before the reader counts as missing.
const READER_GRACE: Duration = Duration::from_secs(10 * 60);

/// The prefix of the sort keys of webhooks.
pub(in crate::subscriptions) const PREFIX: &str = "WHK#";

pub(in crate::subscriptions) fn partition(entity: &EntityId) -> String {
    format!("ENT#{entity}")
}

/// The key of a webhook in the table.
pub(in crate::subscriptions) fn key(entity: &EntityId, webhook: &WebhookId) -> (String, String) {
    (partition(entity), format!("{PREFIX}{webhook}"))
}

/// A webhook as its owner sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookView {
    created_date: Time,
    delivery: Delivering,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_date: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_reason: Option<String>,
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_filter: Option<Box<RawValue>>,
    event_list: Vec<String>,
    /// Absent if the webhook has a feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_url: Option<String>,
    headers: BTreeMap<String, &'static str>,
    #[serde(flatten)]
    status: WebhookStatus,
    /// The webhook's identifier.
    pub id: WebhookId,
    /// When its feed was last read, to within a few minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_read_date: Option<Time>,
    last_update: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts_per_second: Option<u32>,
    metadata: Metadata,
    name: String,
    /// When the oldest delivery in its feed was published; shown only for a single webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_unread_date: Option<Time>,
    order: DeliveryOrder,
    #[serde(flatten)]
    owner: OwnerView,
    payload: Payload,
    /// Absent unless a previous secret signs.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_expires_date: Option<Time>,
    /// Empty if the webhook has no key pairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    public_keys: Vec<PublishedKey>,
    /// Absent if the webhook has a feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<Retries>,
    signature: SignatureScheme,
    /// Shown once, when the webhook is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_secret: Option<RevealedSecret>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    temporary: bool,
    /// Absent if the webhook has a feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<TimeoutSeconds>,
    /// The owner again, under the name that published clients read.
    user_identifier: EntityId,
    version: u64,
}

impl Webhook {
    /// Whether it is enabled and subscribes to this type of event.
    pub fn subscribes_to(&self, kind: &str) -> bool {
        self.enabled && catalogue::list_includes(&self.event_list, kind)
    }

    /// The owner's view of the webhook with this health, without a secret.
    pub fn view(&self, health: Option<&HealthItem>, now: Time) -> WebhookView {
        WebhookView {
            created_date: self.created_date,
            delivery: self.delivery,
            disabled_date: self.disabled_date,
            disabled_reason: self.disabled_reason.clone(),
            enabled: self.enabled,
            event_filter: self.event_filter.as_ref().and_then(EventFilter::shown),
            event_list: self.event_list.clone(),
            event_url: (!self.is_pulled()).then(|| self.endpoint.shown_url()),
            headers: self.endpoint.shown_headers(),
            status: WebhookStatus::of(self.enabled, self.pause(now), health),
            id: self.id.clone(),
            last_read_date: self.read_at,
            last_update: self.last_update,
            max_attempts_per_second: self.rate_limit.map(|limit| limit.per_second.get()),
            metadata: self.metadata.clone(),
            name: self.name.clone(),
            oldest_unread_date: None,
            order: self.order,
            owner: OwnerView::of(&self.owner_identifier),
            payload: self.payload,
            previous_secret_expires_date: self.previous_secret_ends.filter(|end| now < *end),
            public_keys: self.live_public_keys(now),
            retries: (!self.is_pulled()).then_some(self.retries),
            signature: self.signature(),
            signing_secret: None,
            temporary: self.temporary,
            timeout_seconds: (!self.is_pulled()).then_some(self.timeout),
            user_identifier: self.owner_identifier.clone(),
            version: self.version,
        }
    }

    /// The pause by its owner, while it lasts.
    pub(crate) fn pause(&self, now: Time) -> Option<Pause> {
        self.pause.filter(|pause| pause.lasts(now))
    }

    /// Whether its subscriber reads its feed.
    pub fn is_pulled(&self) -> bool {
        self.delivery == Delivering::Pull
    }

    /// Whether deliveries about the same subject are sent one after another.
    pub fn is_ordered(&self) -> bool {
        self.order == DeliveryOrder::Subject
    }

    fn live_public_keys(&self, now: Time) -> Vec<PublishedKey> {
        let live = self.public_keys.iter().filter(|key| key.expires_date.is_none_or(|end| now < end));
        live.cloned().collect()
    }

    /// The signatures that its deliveries carry, derived from its keys so that the two cannot differ.
    fn signature(&self) -> SignatureScheme {
        let has_current = self.public_keys.iter().any(|key| key.expires_date.is_none());
        if has_current { SignatureScheme::Ed25519 } else { SignatureScheme::Hmac }
    }

    /// The context that its endpoint is sealed for.
    pub fn seal_context(&self) -> SealContext<'_> {
        SealContext { owner: &self.owner_identifier, webhook: &self.id }
    }
}

impl WebhookView {
    /// The cause that blocks the whole webhook, if any.
    pub fn held_up_by(&self) -> Option<Cause> {
        self.status.held_up_by()
    }

    /// Its filter and its types; `None` without a filter.
    pub(crate) fn filter(&self) -> Option<(EventFilter, &[String])> {
        let filter = EventFilter::read(self.event_filter.as_ref()?.get()).ok()?;
        Some((filter, &self.event_list))
    }

    /// When the oldest delivery in its feed was published, if the feed has not been read since.
    pub(crate) fn without_reader_since(&self, now: Time) -> Option<Time> {
        let oldest = self.oldest_unread_date?;
        // A frequent reader may have read up to a few minutes after the recorded time.
        let has_reader = |read: Time| oldest <= read || now.since(oldest) < READER_GRACE;
        (!self.last_read_date.is_some_and(has_reader)).then_some(oldest)
    }

    /// When its feed was last read, to within a few minutes.
    pub(crate) const fn last_read(&self) -> Option<Time> {
        self.last_read_date
    }

    /// Why its last attempt failed; `None` if it succeeded, or there was none.
    pub fn last_failure(&self) -> Option<Cause> {
        self.status.last_failure()
    }

    /// The view with the time of the oldest delivery in the feed.
    pub(in crate::subscriptions) fn with_oldest_unread(self, oldest: Option<Time>) -> Self {
        Self { oldest_unread_date: oldest, ..self }
    }

    /// The view with a signing secret.
    pub(in crate::subscriptions) fn with_secret(self, secret: RevealedSecret) -> Self {
        Self { signing_secret: Some(secret), ..self }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::subscriptions::endpoint::{Kept, masked::Headers};
    use base::testing::CountingRandom;

    pub(crate) fn webhook() -> Webhook {
        let now = Time::from_millis(1_795_167_900_123);
        Webhook {
            created_date: now,
            delivery: Delivering::Push,
            disabled_date: Some(now),
            disabled_reason: Some("The endpoint answered 410 Gone.".into()),
            enabled: false,
            event_filter: None,
            event_list: Vec::new(),
            endpoint: KeptEndpoint::new(
                Kept { shown: "https://example.com/".into(), sealed: None },
                Kept { shown: Headers::new(), sealed: None },
            ),
            id: WebhookId::new(now, &CountingRandom::default()),
            last_update: now,
            metadata: Metadata::default(),
            name: "n".into(),
            order: DeliveryOrder::None,
            owner_identifier: EntityId::parse("demo-hotel").expect("an entity"),
            pause: None,
            payload: Payload::Full,
            rate_limit: None,
            read_at: None,
            retries: Retries::default(),
            temporary: false,
            timeout: TimeoutSeconds::default(),
            previous_secret_ends: None,
            public_keys: Vec::new(),
            slow_until: None,
            version: 7,
        }
    }

    #[test]
    fn a_feed_lacks_a_reader_if_none_came_for_its_oldest_delivery() {
        let now = Time::from_millis(1_795_167_900_123);
        let ago = |minutes: u64| now - Duration::from_secs(60 * minutes);
        let lacks = |read: Option<u64>, oldest: Option<u64>| {
            let feed = Webhook { delivery: Delivering::Pull, read_at: read.map(ago), ..webhook() };
            feed.view(None, now).with_oldest_unread(oldest.map(ago)).without_reader_since(now).is_some()
        };
        assert!(lacks(None, Some(0)), "a feed that was never read has no reader");
        assert!(lacks(Some(60), Some(30)));
        assert!(!lacks(Some(7), Some(5)), "the noted time may be some minutes old");
        assert!(!lacks(Some(1), Some(30)), "the reader came, and has not confirmed");
        assert!(!lacks(None, None) && !lacks(Some(60), None), "the feed is empty");
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
