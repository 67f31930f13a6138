//! Making a webhook.

use http::{
    StatusCode,
    header::{CACHE_CONTROL, LOCATION},
};

use super::{
    Webhook, Webhooks,
    breaker::Health,
    endpoint::{Kept, KeptEndpoint, Place},
    members::{About, Members},
    secret::SigningSecret,
};
use auth::entity::{AuthorizedEntity, EntityId};
use base::{
    clock::{SharedClock, Time},
    ids::WebhookId,
    random::SharedRandom,
};
use gate::{EntityCall, Reply};
use outbound::addresses::AddressRules;
use problem::{JsonBody, Problem};
use storage::sealing::{KeyRings, SealError};

/// How many webhooks an entity may have: every publish reads them all, and one answer lists them.
pub const MAX_WEBHOOKS: usize = 200;

/// Everything that making a webhook needs.
pub struct Registration {
    /// Where webhooks are kept.
    pub webhooks: Webhooks,
    /// Where endpoints may be.
    pub rules: AddressRules,
    /// What seals their secrets.
    pub rings: KeyRings,
    /// The API's address, for `Location`.
    pub base_url: String,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

impl Registration {
    /// Answers a request for a new webhook.
    pub async fn create(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let entity = &call.entity;
        let members = self.read(&call.body, entity.id())?;
        // Two at once may pass together: the limit keeps publishing fast, and one more does no harm.
        if self.webhooks.of(entity).await?.len() >= MAX_WEBHOOKS {
            return Err(Problem::too_many_webhooks(MAX_WEBHOOKS));
        }
        let now = self.clock.now();
        let id = WebhookId::new(now, &*self.random);
        let endpoint = self.endpoint(&members, Place { owner: entity.id(), webhook: &id }).await?;
        let webhook = made_of(members, endpoint, entity.id().clone(), id, now)
            .ok_or_else(|| Problem::internal("a value is missing without a violation"))?;
        let secret = SigningSecret::new(&*self.random);
        let sealed = secret.seal(&*self.rings.get().await?, &*self.random, entity.id(), &webhook.id);
        self.webhooks.add(entity, &webhook, sealed).await?;
        tracing::info!(webhookId = %webhook.id, entity = %entity.id(), "made a webhook");
        let location = self.location(entity, &webhook);
        Reply::json(StatusCode::CREATED, &webhook.view(Health::Healthy, Some(&secret.reveal())))?
            .with_header(CACHE_CONTROL, "no-store")
            .with_computed_header(LOCATION, &location)
    }

    fn read(&self, body: &[u8], entity: &EntityId) -> Result<Members, Problem> {
        let mut body = JsonBody::read(body)?;
        let members = Members::take(&mut body, About::New, entity, &self.rules);
        body.finish().map(|()| members)
    }

    /// The endpoint as it is to be kept.
    async fn endpoint(&self, members: &Members, place: Place<'_>) -> Result<KeptEndpoint, SealError> {
        let url = members.event_url.clone().unwrap_or_default();
        let headers = members.headers.clone().unwrap_or_default();
        let url = Kept::of(&url, &self.rings, &*self.random, place).await?;
        Ok(KeptEndpoint::new(url, Kept::of(&headers, &self.rings, &*self.random, place).await?))
    }

    fn location(&self, entity: &AuthorizedEntity, webhook: &Webhook) -> String {
        format!("{}/api/managing-entity/{}/webhook/{}", self.base_url, entity.id(), webhook.id)
    }
}

/// The webhook that was asked for, with the contract's defaults; none, when something is missing that has no default.
fn made_of(
    members: Members,
    endpoint: KeptEndpoint,
    owner_identifier: EntityId,
    id: WebhookId,
    now: Time,
) -> Option<Webhook> {
    members.event_url?;
    Some(Webhook {
        created_date: now,
        disabled_reason: None,
        enabled: members.enabled.unwrap_or(true),
        event_list: members.event_list?,
        endpoint,
        id,
        last_update: now,
        name: members.name?,
        owner_identifier,
        slow_until: None,
        version: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{events::catalogue, subscriptions::masked::Headers};
    use base::testing::CountingRandom;

    fn kept(url: &str, headers: Headers) -> KeptEndpoint {
        KeptEndpoint::new(Kept { shown: url.to_owned(), sealed: None }, Kept { shown: headers, sealed: None })
    }

    #[test]
    fn a_webhook_has_the_defaults_of_the_contract() {
        let members = Members {
            name: Some("n".into()),
            event_url: Some("https://example.com/".into()),
            event_list: Some(Vec::new()),
            ..Members::default()
        };
        let (entity, now) = (EntityId::parse("demo-hotel").expect("an entity"), Time::from_millis(0));
        let id = WebhookId::new(now, &CountingRandom::default());
        let endpoint = kept("https://example.com/", Headers::new());
        let webhook = made_of(members, endpoint.clone(), entity.clone(), id.clone(), now).expect("complete");
        assert!(webhook.enabled && webhook.disabled_reason.is_none());
        assert_eq!(webhook.version, 1);
        assert!(made_of(Members::default(), endpoint, entity, id, now).is_none());
    }

    #[test]
    fn as_many_webhooks_as_may_be_fit_into_one_answer_however_large() {
        /// What a function may answer (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
        const MAX_ANSWER: usize = 6 * 1024 * 1024;
        let (now, random) = (Time::from_millis(0), CountingRandom::default());
        let entity = EntityId::parse(&"e".repeat(64)).expect("an entity");
        // Nothing grows more on its way, since the answer is a text within JSON: a quote takes four bytes there.
        let quotes = |count| "\"".repeat(count);
        let value = quotes(1_019);
        let headers: std::collections::BTreeMap<_, _> =
            ["X-1", "X-2", "X-3"].map(|name| (name.to_owned(), value.clone())).into();
        let mut violations = problem::Violations::default();
        super::super::headers::check(&headers, &mut violations);
        assert!(violations.check().is_ok());
        assert!(serde_json::to_string(&headers).expect("JSON").len() > 6 * 1024 - 100, "hardly more may be set");
        let members = Members {
            name: Some(quotes(200)),
            enabled: Some(true),
            event_url: Some(quotes(2_048)),
            event_list: Some(catalogue::all().iter().map(|kind| kind.value.to_owned()).collect()),
            headers: Some(headers.clone()),
        };
        let webhook = made_of(members, kept(&quotes(2_048), headers), entity, WebhookId::new(now, &random), now)
            .expect("complete");
        let webhook = Webhook { disabled_reason: Some("x".repeat(100)), ..webhook };
        let list: Vec<_> = (0..MAX_WEBHOOKS + 5).map(|_| webhook.view(Health::Healthy, None)).collect();
        let answer = serde_json::to_string(&serde_json::to_string(&list).expect("JSON")).expect("JSON");
        assert!(answer.len() < MAX_ANSWER, "{}", answer.len());
    }
}
