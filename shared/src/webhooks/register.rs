//! Making a webhook.

use std::collections::BTreeMap;

use http::{
    StatusCode,
    header::{CACHE_CONTROL, LOCATION},
};
use serde::Deserialize;

use super::{Webhook, Webhooks, endpoint_url::EndpointUrl, headers, secret::SigningSecret};
use crate::{
    auth::entity::{AuthorizedEntity, EntityId},
    clock::SharedClock,
    events::catalogue,
    http::{Call, JsonBody, Problem, Reply, Violations},
    ids::WebhookId,
    outbound::addresses::AddressRules,
    random::SharedRandom,
    sealing::KeyRings,
};

const MAX_NAME_LENGTH: usize = 200;
/// How many webhooks an entity may have: every publish reads them all.
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

/// A webhook as it is asked for.
#[derive(Debug)]
struct WebhookRequest {
    name: String,
    enabled: bool,
    event_url: String,
    event_list: Vec<String>,
    headers: BTreeMap<String, String>,
}

/// What published clients send along. Read by way of a map, since serde would take an array for a struct as well.
#[derive(Debug, Deserialize)]
#[serde(try_from = "serde_json::Map<String, serde_json::Value>")]
struct Reference(EntityReference);

impl TryFrom<serde_json::Map<String, serde_json::Value>> for Reference {
    type Error = serde_json::Error;

    fn try_from(members: serde_json::Map<String, serde_json::Value>) -> Result<Self, Self::Error> {
        serde_json::from_value(members.into()).map(Self)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntityReference {
    identifier: String,
    #[expect(dead_code, reason = "clients send it, and nothing depends on it")]
    name: Option<String>,
}

impl Registration {
    /// Answers a request for a new webhook.
    pub async fn create(&self, call: &Call) -> Result<Reply, Problem> {
        let entity = call.entity();
        let request = WebhookRequest::read(&call.body, entity.id(), &self.rules)?;
        // Two at once may pass together: the limit keeps publishing fast, and one more does no harm.
        if self.webhooks.of(entity).await?.len() >= MAX_WEBHOOKS {
            return Err(Problem::too_many_webhooks(MAX_WEBHOOKS));
        }
        let now = self.clock.now();
        let webhook = Webhook {
            created_date: now,
            disabled_reason: None,
            enabled: request.enabled,
            event_list: request.event_list,
            event_url: request.event_url,
            headers: request.headers,
            id: WebhookId::new(now, &*self.random),
            last_update: now,
            name: request.name,
            owner_identifier: entity.id().clone(),
            version: 1,
            failures_in_row: 0,
        };
        let secret = SigningSecret::new(&*self.random);
        let sealed = secret.seal(&*self.rings.get().await?, &*self.random, entity.id(), &webhook.id);
        self.webhooks.add(entity, &webhook, sealed).await?;
        tracing::info!(webhookId = %webhook.id, entity = %entity.id(), "made a webhook");
        let location = self.location(entity, &webhook);
        Reply::json(StatusCode::CREATED, &webhook.view(Some(&secret.reveal())))?
            .with_header(CACHE_CONTROL, "no-store")
            .with_computed_header(LOCATION, &location)
    }

    fn location(&self, entity: &AuthorizedEntity, webhook: &Webhook) -> String {
        format!("{}/api/managing-entity/{}/webhook/{}", self.base_url, entity.id(), webhook.id)
    }
}

impl WebhookRequest {
    fn read(body: &[u8], entity: &EntityId, rules: &AddressRules) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let name = body.required::<String>("name", "a text that people know the webhook by");
        let enabled = body.optional("enabled", "true or false").unwrap_or(true);
        let event_url = body.required::<String>("eventUrl", "the address of the endpoint");
        let event_list =
            body.required::<Vec<String>>("eventList", "a list of event types; an empty one means every type");
        let headers = body.optional_texts("headers", "an object of texts by header name");
        let reference: Option<Reference> = body.optional("entity", "an object with identifier and name");

        let violations = &mut body.violations;
        if name.as_ref().is_some_and(|name| {
            name.trim().is_empty() || name.chars().count() > MAX_NAME_LENGTH || name.chars().any(char::is_control)
        }) {
            violations.add("name", format!("must have 1 to {MAX_NAME_LENGTH} characters and no control characters"));
        }
        if let Some(url) = &event_url {
            violations.note("eventUrl", EndpointUrl::parse(url, rules));
        }
        let event_list = event_list.map(|list| known_types(list, violations));
        headers::check(&headers, violations);
        if reference.is_some_and(|Reference(reference)| reference.identifier != entity.as_str()) {
            violations.add("entity.identifier", "must be the managing entity of the path, or be left out");
        }
        body.finish()?;
        match (name, event_url, event_list) {
            (Some(name), Some(event_url), Some(event_list)) => {
                Ok(Self { name, enabled, event_url, event_list, headers })
            }
            _ => Err(Problem::internal("a value is missing without a violation")),
        }
    }
}

/// The types of the list, each once; those that do not exist are violations.
fn known_types(list: Vec<String>, violations: &mut Violations) -> Vec<String> {
    let mut known = Vec::<String>::new();
    if list.len() > catalogue::all().len() {
        violations.add("eventList", "must not be longer than the catalogue; an empty list means every type");
        return known;
    }
    for (position, value) in list.into_iter().enumerate() {
        if catalogue::find(&value).is_none() {
            violations.add(format!("eventList[{position}]"), "must be the key of an event type of the catalogue");
        } else if !known.contains(&value) {
            known.push(value);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<WebhookRequest, Problem> {
        WebhookRequest::read(
            body.as_bytes(),
            &EntityId::parse("demo-hotel").expect("an entity"),
            &AddressRules::default(),
        )
    }

    #[test]
    fn a_webhook_has_the_defaults_of_the_contract() {
        let request =
            read(r#"{"name":"n","eventUrl":"https://example.com/","eventList":["booking.created","booking.created"]}"#)
                .expect("read");
        assert!(request.enabled && request.headers.is_empty());
        assert_eq!(request.event_list, ["booking.created"]);
        let with_entity = r#"{"name":"n","eventUrl":"https://example.com/","eventList":[],"entity":{"identifier":"demo-hotel","name":"Demo"}}"#;
        assert!(read(with_entity).is_ok());
    }

    #[test]
    fn every_violation_is_told_at_once() {
        let body = r#"{"name":" ","enabled":"yes","eventUrl":"http://x","eventList":["nope"],"headers":{"Host":"x"},
                       "entity":{"identifier":"other"},"secret":"x"}"#;
        let problem = read(body).expect_err("refused");
        let fields: Vec<_> = problem.properties["violations"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|violation| violation["field"].clone())
            .collect();
        assert_eq!(
            fields,
            ["enabled", "name", "eventUrl", "eventList[0]", "headers.Host", "entity.identifier", "secret"]
        );
    }
}
