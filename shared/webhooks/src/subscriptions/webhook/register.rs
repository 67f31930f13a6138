//! Registering a webhook.

use std::slice;

use crate::subscriptions::{
    attempt_settings::{Retries, TimeoutSeconds},
    endpoint::{
        Kept, KeptEndpoint, SealContext,
        key_pair::SignatureScheme,
        masked::Headers,
        secret::{self, SealedSecret, SigningSecret},
    },
    error::{MAX_WEBHOOKS, WebhookError},
    filter::EventFilter,
    rate_limit::{PerSecond, RateLimit},
    webhook::{
        Delivering, DeliveryOrder, Webhook, WebhookView,
        members::{About, Members},
        store::Webhooks,
    },
};
use crate::{deliveries::jobs::Jobs, events::payload::Payload};
use auth::{AuthorizedEntity, EntityId};
use base::{SharedClock, SharedRandom, Time, WebhookId};
use outbound::AddressRules;
use problem::{JsonBody, Metadata, Problem};
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
    /// Random source of identifiers and secrets.
    pub random: SharedRandom,
}

/// A requested webhook, with the contract's defaults.
pub struct NewWebhook {
    name: String,
    delivery: Delivering,
    temporary: bool,
    enabled: bool,
    /// Empty if it is pulled.
    event_url: String,
    event_filter: Option<EventFilter>,
    event_list: Vec<String>,
    headers: Headers,
    max_attempts_per_second: Option<PerSecond>,
    metadata: Metadata,
    payload: Payload,
    order: DeliveryOrder,
    retries: Retries,
    signature: SignatureScheme,
    timeout: TimeoutSeconds,
}

impl NewWebhook {
    /// Reads and checks a request's body.
    pub fn read(body: &[u8], entity: &EntityId, rules: &AddressRules) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let members = Members::take(&mut body, About::New, entity, rules);
        body.finish_with(Self::of(members))
    }

    /// An internal webhook of the service for events of every type.
    pub(crate) fn plain(name: &str, event_url: String) -> Self {
        Self {
            name: name.to_owned(),
            delivery: Delivering::Push,
            temporary: false,
            enabled: true,
            event_url,
            event_filter: None,
            event_list: Vec::new(),
            headers: Headers::new(),
            max_attempts_per_second: None,
            metadata: Metadata::default(),
            payload: Payload::Full,
            order: DeliveryOrder::None,
            retries: Retries::default(),
            signature: SignatureScheme::default(),
            timeout: TimeoutSeconds::default(),
        }
    }

    /// `None` when a member without a default is missing.
    fn of(members: Members) -> Option<Self> {
        let delivery = members.delivery.unwrap_or_default();
        Some(Self {
            name: members.name?,
            delivery,
            temporary: members.temporary.unwrap_or(false),
            enabled: members.enabled.unwrap_or(true),
            event_url: if delivery == Delivering::Pull { String::new() } else { members.event_url? },
            event_filter: members.event_filter.flatten(),
            event_list: members.event_list?,
            headers: members.headers.unwrap_or_default(),
            max_attempts_per_second: members.max_attempts_per_second.flatten(),
            metadata: members.metadata.unwrap_or_default(),
            payload: members.payload.unwrap_or_default(),
            order: members.order.unwrap_or_default(),
            retries: members.retries.unwrap_or_default(),
            signature: members.signature.unwrap_or_default(),
            timeout: members.timeout_seconds.unwrap_or_default(),
        })
    }

    fn into_webhook(
        self,
        endpoint: KeptEndpoint,
        secret: &SealedSecret,
        owner: EntityId,
        id: WebhookId,
        now: Time,
    ) -> Webhook {
        Webhook {
            created_date: now,
            delivery: self.delivery,
            disabled_date: (!self.enabled).then_some(now),
            disabled_reason: None,
            enabled: self.enabled,
            event_filter: self.event_filter,
            event_list: self.event_list,
            endpoint,
            id,
            last_update: now,
            metadata: self.metadata,
            name: self.name,
            order: self.order,
            owner_identifier: owner,
            pause: None,
            payload: self.payload,
            rate_limit: self.max_attempts_per_second.map(|per_second| RateLimit { per_second, since: now }),
            read_at: None,
            retries: self.retries,
            temporary: self.temporary,
            timeout: self.timeout,
            previous_secret_ends: None,
            public_keys: secret::public_keys(slice::from_ref(secret)),
            slow_until: None,
            version: 1,
        }
    }
}

impl Registration {
    /// Registers a webhook, and returns the owner's view of it. Only this response has the signing secret.
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
        // Two concurrent registrations may exceed the limit by one, which is harmless: the limit keeps publishing fast.
        if self.webhooks.of(entity).await?.len() >= MAX_WEBHOOKS {
            return Err(WebhookError::TooMany);
        }
        let now = self.clock.now();
        let id = WebhookId::new(now, &*self.random);
        let endpoint = self.endpoint(&new, SealContext { owner: entity.id(), webhook: &id }).await?;
        let secret = SigningSecret::new(&*self.random, new.signature);
        let sealed = secret.seal(&*self.rings.get().await?, &*self.random, entity.id(), &id);
        let webhook = new.into_webhook(endpoint, &sealed, entity.id().clone(), id, now);
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
        let endpoint = self.endpoint(&new, SealContext { owner: entity.id(), webhook: id }).await?;
        let sealed = secret.seal(&*self.rings.get().await?, &*self.random, entity.id(), id);
        let webhook = new.into_webhook(endpoint, &sealed, entity.id().clone(), id.clone(), now);
        Ok(self.webhooks.add(entity, &webhook, sealed, Vec::new(), None).await?)
    }

    async fn endpoint(&self, new: &NewWebhook, context: SealContext<'_>) -> Result<KeptEndpoint, SealError> {
        let url = Kept::of(&new.event_url, &self.rings, &*self.random, context).await?;
        let headers = Kept::of(&new.headers, &self.rings, &*self.random, context).await?;
        Ok(KeptEndpoint::new(url, headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::catalogue,
        subscriptions::{endpoint::key_pair::PublishedKey, filter, health::breaker::HealthItem},
    };
    use base::testing::CountingRandom;
    use storage::sealing::ring;

    fn kept(url: &str, headers: Headers) -> KeptEndpoint {
        KeptEndpoint::new(Kept { shown: url.to_owned(), sealed: None }, Kept { shown: headers, sealed: None })
    }

    fn made(members: Members, endpoint: KeptEndpoint, owner: EntityId, id: WebhookId, now: Time) -> Webhook {
        let random = CountingRandom::default();
        let new = NewWebhook::of(members).expect("complete");
        let sealed = SigningSecret::new(&random, new.signature).seal(&ring("a"), &random, &owner, &id);
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

    /// The filter that takes most bytes in a response.
    fn largest_filter() -> EventFilter {
        let around = r#"{"a":[""]}"#.len();
        let quotes = "\\\"".repeat((filter::MAX_BYTES - around) / 2);
        EventFilter::read(&format!(r#"{{"a":["{quotes}"]}}"#)).expect("a filter")
    }

    #[test]
    fn the_most_and_largest_webhooks_fit_into_one_answer() {
        /// The largest answer of a function
        /// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
        const MAX_ANSWER: usize = 6 * 1024 * 1024;
        let now = Time::from_millis(0);
        let random = CountingRandom::default();
        let entity = EntityId::parse(&"e".repeat(64)).expect("an entity");
        // A quote grows most: it takes four bytes, since the response is a string within JSON.
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
