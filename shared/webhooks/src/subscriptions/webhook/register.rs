//! Registering a webhook.

use std::slice;

use crate::deliveries::jobs::Jobs;
use crate::subscriptions::{
    endpoint::{
        Kept, KeptEndpoint, SealContext,
        key_pair::SignatureScheme,
        secret::{self, SealedSecret, SigningSecret},
    },
    error::{MAX_WEBHOOKS, WebhookError},
    rate_limit::RateLimit,
    webhook::{
        Delivering, Webhook, WebhookView,
        members::{About, Members},
        store::Webhooks,
    },
};
use auth::{AuthorizedEntity, EntityId};
use base::{SharedClock, SharedRandom, Time, WebhookId};
use outbound::AddressRules;
use problem::{JsonBody, Problem};
use storage::{Answered, IdempotencyStore, IdempotentRequest, KeyRings, SealError};

/// Registers webhooks.
pub struct Registration {
    /// Stores webhooks.
    pub webhooks: Webhooks,
    /// Repeats the response for an idempotency key.
    pub answers: IdempotencyStore,
    /// Seals endpoints and secrets.
    pub rings: KeyRings,
    /// The clock for the webhook's dates.
    pub clock: SharedClock,
    /// The random source for identifiers and secrets.
    pub random: SharedRandom,
}

/// A requested webhook.
pub struct NewWebhook {
    name: String,
    /// Empty for a pull webhook.
    event_url: String,
    event_list: Vec<String>,
    /// The members that have a default.
    members: Members,
}

impl NewWebhook {
    /// Reads and checks a request's body.
    pub fn read(body: &[u8], entity: &EntityId, rules: &AddressRules) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let members = Members::take(&mut body, About::New, entity, rules);
        body.finish_with(Self::of(members))
    }

    /// An internal webhook of the service, for events of every type.
    pub(crate) fn plain(name: &str, event_url: String) -> Self {
        Self { name: name.to_owned(), event_url, event_list: Vec::new(), members: Members::default() }
    }

    /// `None` if a member without a default is missing.
    fn of(mut members: Members) -> Option<Self> {
        let is_pulled = members.delivery == Some(Delivering::Pull);
        let event_url = if is_pulled { String::new() } else { members.event_url.take()? };
        Some(Self { name: members.name.take()?, event_url, event_list: members.event_list.take()?, members })
    }

    fn signature(&self) -> SignatureScheme {
        self.members.signature.unwrap_or_default()
    }

    fn into_webhook(
        self,
        endpoint: KeptEndpoint,
        secret: &SealedSecret,
        owner: EntityId,
        id: WebhookId,
        now: Time,
    ) -> Webhook {
        let Self { name, event_list, members, .. } = self;
        let enabled = members.enabled.unwrap_or(true);
        let rate_limit = members.max_attempts_per_second.flatten();
        Webhook {
            created_date: now,
            delivery: members.delivery.unwrap_or_default(),
            disabled_date: (!enabled).then_some(now),
            disabled_reason: None,
            enabled,
            event_filter: members.event_filter.flatten(),
            event_list,
            endpoint,
            id,
            last_update: now,
            metadata: members.metadata.unwrap_or_default(),
            name,
            order: members.order.unwrap_or_default(),
            owner_identifier: owner,
            pause: None,
            payload: members.payload.unwrap_or_default(),
            rate_limit: rate_limit.map(|per_second| RateLimit { per_second, since: now }),
            read_at: None,
            retries: members.retries.unwrap_or_default(),
            temporary: members.temporary.unwrap_or(false),
            timeout: members.timeout_seconds.unwrap_or_default(),
            previous_secret_ends: None,
            public_keys: secret::public_keys(slice::from_ref(secret)),
            slow_until: None,
            version: 1,
        }
    }
}

impl Registration {
    /// Registers a webhook and returns the owner's view of it. Only this response contains the signing secret.
    pub async fn register(
        &self,
        entity: &AuthorizedEntity,
        new: NewWebhook,
        once: Option<&IdempotentRequest>,
    ) -> Result<Answered<WebhookView>, WebhookError> {
        self.answers.once(once, self.clock.now(), self.make(entity, new, once)).await
    }

    async fn make(
        &self,
        entity: &AuthorizedEntity,
        new: NewWebhook,
        once: Option<&IdempotentRequest>,
    ) -> Result<WebhookView, WebhookError> {
        // Two concurrent registrations may exceed the limit by one. That is harmless: the limit only keeps publishing
        // fast.
        if self.webhooks.of(entity).await?.len() >= MAX_WEBHOOKS {
            return Err(WebhookError::TooMany);
        }
        let now = self.clock.now();
        let id = WebhookId::new(now, &*self.random);
        let secret = SigningSecret::new(&*self.random, new.signature());
        let (webhook, sealed) = self.sealed(new, entity.id(), (id, &secret), now).await?;
        let view = webhook.view(None, now).with_secret(secret.reveal());
        let record = self.answers.record(once, &view, &webhook.id, now).await?;
        let along = if webhook.temporary {
            Jobs::new(self.webhooks.table().clone()).expiry(entity, &webhook.id, now)?.into()
        } else {
            Vec::new()
        };
        self.webhooks.add(entity, &webhook, sealed, along, record).await?;
        tracing::info!(webhookId = %webhook.id, entity = %entity.id(), "created a webhook");
        Ok(view)
    }

    /// Registers an internal webhook of the service with this identifier and secret, unless it exists, is enabled, and
    /// has this address, these types, and this secret under a key of the ring. A different webhook with this identifier
    /// is replaced.
    pub(crate) async fn ensure(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        secret: &SigningSecret,
        new: NewWebhook,
    ) -> Result<(), WebhookError> {
        let now = self.clock.now();
        if let Some(known) = self.webhooks.find(entity, id).await?
            && known.webhook.enabled
            && known.webhook.endpoint.shown_url() == new.event_url
            && known.webhook.event_list == new.event_list
            && known
                .live_secrets(&self.rings, now)
                .await
                .is_ok_and(|live| live.iter().any(|one| one.key() == secret.key()))
        {
            return Ok(());
        }
        let (webhook, sealed) = self.sealed(new, entity.id(), (id.clone(), secret), now).await?;
        Ok(self.webhooks.add(entity, &webhook, sealed, Vec::new(), None).await?)
    }

    /// A new webhook with its endpoint and its signing secret, both sealed.
    async fn sealed(
        &self,
        new: NewWebhook,
        owner: &EntityId,
        (id, secret): (WebhookId, &SigningSecret),
        now: Time,
    ) -> Result<(Webhook, SealedSecret), SealError> {
        let context = SealContext { owner, webhook: &id };
        let headers = new.members.headers.clone().unwrap_or_default();
        let url = Kept::of(&new.event_url, &self.rings, &*self.random, context).await?;
        let headers = Kept::of(&headers, &self.rings, &*self.random, context).await?;
        let sealed = secret.seal(&*self.rings.get().await?, &*self.random, owner, &id);
        let webhook = new.into_webhook(KeptEndpoint::new(url, headers), &sealed, owner.clone(), id, now);
        Ok((webhook, sealed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::catalogue,
        subscriptions::{
            endpoint::{key_pair::PublishedKey, masked::Headers},
            filter::{self, EventFilter},
            health::breaker::HealthItem,
        },
    };
    use base::testing::CountingRandom;
    use storage::sealing::ring;

    fn kept(url: &str, headers: Headers) -> KeptEndpoint {
        KeptEndpoint::new(Kept { shown: url.to_owned(), sealed: None }, Kept { shown: headers, sealed: None })
    }

    fn made(members: Members, endpoint: KeptEndpoint, owner: EntityId, id: WebhookId, now: Time) -> Webhook {
        let random = CountingRandom::default();
        let new = NewWebhook::of(members).expect("complete");
        let sealed = SigningSecret::new(&random, new.signature()).seal(&ring("a"), &random, &owner, &id);
        new.into_webhook(endpoint, &sealed, owner, id, now)
    }

    #[test]
    fn a_webhook_has_the_defaults_of_the_contract() {
        let members = Members {
            name: Some("n".into()),
            event_url: Some("https://example.com/".into()),
            event_list: Some(Vec::new()),
            ..Members::default()
        };
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let now = Time::from_millis(0);
        let id = WebhookId::new(now, &CountingRandom::default());
        let endpoint = kept("https://example.com/", Headers::new());
        let webhook = made(members, endpoint, entity, id, now);
        assert!(webhook.enabled && webhook.disabled_reason.is_none());
        assert_eq!(webhook.version, 1);
        let view = serde_json::to_value(webhook.view(None, now)).expect("JSON");
        assert!(view["signature"] == "hmac" && view["order"] == "none" && view.get("publicKeys").is_none(), "{view}");
        assert!(view["timeoutSeconds"] == 15 && view["retries"] == "default", "{view}");
        let stored = serde_json::to_value(&webhook).expect("JSON");
        assert!(stored.get("timeoutSeconds").is_none() && stored.get("retries").is_none(), "as by release 1.0.0");
        assert!(NewWebhook::of(Members::default()).is_none());
    }

    /// The filter that takes the most bytes in a response.
    fn largest_filter() -> EventFilter {
        let around = r#"{"a":[""]}"#.len();
        let quotes = "\\\"".repeat((filter::MAX_BYTES - around) / 2);
        EventFilter::read(&format!(r#"{{"a":["{quotes}"]}}"#)).expect("a filter")
    }

    #[test]
    fn the_most_and_largest_webhooks_fit_into_one_answer() {
        /// The largest response that a function may return
        /// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
        const MAX_ANSWER: usize = 6 * 1024 * 1024;
        let now = Time::from_millis(0);
        let random = CountingRandom::default();
        let entity = EntityId::parse(&"e".repeat(64)).expect("an entity");
        // Quotes grow most, to four bytes each, since the response is a string inside JSON.
        let quotes = |count| "\"".repeat(count);
        let value = quotes(1_019);
        let headers: std::collections::BTreeMap<_, _> =
            ["X-1", "X-2", "X-3"].map(|name| (name.to_owned(), value.clone())).into();
        let mut violations = problem::Violations::default();
        crate::subscriptions::endpoint::headers::check(&headers, &mut violations);
        assert!(violations.check().is_ok());
        assert!(serde_json::to_string(&headers).expect("JSON").len() > 6 * 1024 - 100, "hardly more may be set");
        let members = Members {
            name: Some(quotes(200)),
            enabled: Some(true),
            event_url: Some(quotes(2_048)),
            event_filter: Some(Some(largest_filter())),
            event_list: Some(catalogue::all().iter().map(|kind| kind.value.to_owned()).collect()),
            headers: Some(headers.clone()),
            metadata: serde_json::from_value(serde_json::json!({ "a": quotes(500), "b": quotes(500) }))
                .expect("metadata"),
            signature: Some(SignatureScheme::Ed25519),
            ..Members::default()
        };
        let endpoint = kept(&quotes(2_048), headers);
        let id = WebhookId::new(now, &random);
        let webhook = made(members, endpoint, entity, id, now);
        let previous = PublishedKey { expires_date: Some(Time::from_millis(1)), ..webhook.public_keys[0].clone() };
        let webhook = Webhook {
            enabled: false,
            disabled_date: Some(now),
            disabled_reason: Some("x".repeat(100)),
            previous_secret_ends: Some(Time::from_millis(1)),
            public_keys: vec![webhook.public_keys[0].clone(), previous],
            ..webhook
        };
        let health = HealthItem { failures_in_row: u32::MAX, failing_since: Some(now), ..HealthItem::default() };
        let list: Vec<_> = (0..MAX_WEBHOOKS + 5).map(|_| webhook.view(Some(&health), now)).collect();
        let answer = serde_json::to_string(&serde_json::to_string(&list).expect("JSON")).expect("JSON");
        assert!(answer.len() < MAX_ANSWER, "{}", answer.len());
    }
}
