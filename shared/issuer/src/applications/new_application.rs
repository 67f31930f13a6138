//! New applications, requested over HTTP or by the operator: checks and creates them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    application::Application,
    client_key::{self, ClientKey, MAX_KEYS},
    client_secret::{self, ClientSecret},
};
use auth::{Entities, EntityId, NotAnEntity, Scope, Scopes};
use base::{Random, Time, random};
use problem::{JsonBody, Metadata, Pointer, Problem, Rule, Violations, name, near::MAX_COMPARED};
use storage::{SecretBytes, SecretText};

/// How many applications an entity may have: one response lists them all.
pub const MAX_APPLICATIONS: usize = 100;

const MAX_NAME_LENGTH: usize = 100;
const PUBLIC_KEYS: &str = "a list of public keys, each a JSON Web Key";
/// The maximum number of managing entities of an application, and the maximum total number of bytes of their
/// identifiers: every token carries them all.
const MAX_ENTITIES: usize = 100;
const MAX_ENTITY_BYTES: usize = 4 * 1024;
/// The length of a client identifier after `app`. The identifier contains only letters and digits, so that all client
/// libraries encode it alike for HTTP Basic.
const CLIENT_ID_LENGTH: usize = 22;

/// A new application's properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewApplication {
    /// The name shown to people.
    pub name: String,
    /// The managing entity that manages the application over HTTP, if any.
    pub owner: Option<EntityId>,
    /// The scopes that the application may request.
    pub scopes: Scopes,
    /// The managing entities that the application may act for.
    pub entities: Entities,
    /// Whether the application may publish events.
    pub may_publish: bool,
    /// The metadata that the owner stores with the application.
    pub metadata: Metadata,
    /// The keys with which the application can prove its identity.
    pub keys: Vec<ClientKey>,
    /// Whether the application gets a secret.
    pub with_secret: bool,
}

/// A new client identifier.
pub fn fresh_client_id(random: &dyn Random) -> String {
    format!("app{}", random::alphanumeric(random, CLIENT_ID_LENGTH))
}

impl NewApplication {
    /// Sets whether the application may publish events.
    pub fn publishing(self, may_publish: bool) -> Self {
        Self { may_publish, ..self }
    }

    /// The number of credentials that the application gets when it is created.
    pub fn credentials(&self) -> u32 {
        let keys = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        keys.saturating_add(self.with_secret.into())
    }

    /// Parses the request of an owner whose token has these scopes. A published client, whose request has no member for
    /// scopes, gets its token's scopes.
    pub fn read(body: &[u8], owner: &EntityId, of_token: Scopes, now: Time) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let name = body.required("name", "a string with a human-readable name for the application");
        let is_published = take_published_members(&mut body, owner);
        let scopes_are = "a list of scopes";
        let wanted_scopes: Option<Vec<String>> =
            if is_published { body.optional("scopes", scopes_are) } else { body.required("scopes", scopes_are) };
        let wanted_entities = body.optional("managingEntities", "a list of managing entities' identifiers");
        let may_publish = body.optional("mayPublish", "true or false").unwrap_or(false);
        let metadata = Metadata::take(&mut body).unwrap_or_default();
        let keys = body.optional("publicKeys", PUBLIC_KEYS);
        let with_secret = body.optional("withSecret", "true or false");

        let violations = &mut body.violations;
        let name = name.and_then(|text: String| violations.note("name", Rule::InvalidFormat, checked_name(&text)));
        let scopes = match wanted_scopes {
            Some(list) => Some(checked_scopes(&list, violations)),
            None => is_published.then_some(of_token),
        };
        let wanted_entities = wanted_entities.unwrap_or_else(|| vec![owner.to_string()]);
        let entities = entities(wanted_entities, violations);
        let keys = keys.map(|given: Value| public_keys(&given, now, violations)).unwrap_or_default();
        let with_secret = with_secret.unwrap_or(true);
        if !with_secret && keys.is_empty() {
            violations.add("withSecret", Rule::Inconsistent, "may be false only if `publicKeys` has a key");
        }
        body.finish()?;
        let missing = || Problem::internal("a value is missing without a violation");
        let name = name.ok_or_else(missing)?;
        let scopes = scopes.ok_or_else(missing)?;
        Ok(Self { name, owner: Some(owner.clone()), scopes, entities, may_publish, metadata, keys, with_secret })
    }

    /// An application with a secret, as the operator requests it. The first of its managing entities manages it; an
    /// application for every entity is managed only by the operator. The application may not publish events.
    pub fn of_operator(name: String, scopes: Scopes, entities: Entities) -> Self {
        let owner = entities.iter().next().and_then(|entity| EntityId::parse(entity).ok());
        let metadata = Metadata::default();
        Self { name, owner, scopes, entities, may_publish: false, metadata, keys: Vec::new(), with_secret: true }
    }

    /// The application, created at this time, and its secret if it gets one. The secret is shown once.
    pub fn make(self, pepper: &SecretBytes, now: Time, random: &dyn Random) -> (Application, Option<SecretText>) {
        let secret = self.with_secret.then(|| client_secret::fresh(random));
        let kept = secret.as_ref().map(|secret| ClientSecret::of(secret, pepper, now, random));
        (self.with(fresh_client_id(random), kept, now), secret)
    }

    /// The application with a given identifier and secret.
    pub fn with(self, client_id: String, secret: Option<ClientSecret>, now: Time) -> Application {
        Application {
            client_id,
            name: self.name,
            owner: self.owner,
            scopes: self.scopes,
            entities: self.entities,
            may_publish: self.may_publish,
            metadata: self.metadata,
            secrets: secret.into_iter().collect(),
            keys: self.keys,
            last_used: BTreeMap::new(),
            version: 1,
            created_date: now,
            last_update: now,
        }
    }
}

/// Checks a string as an application's name. The error ends a sentence that begins with the name.
pub fn checked_name(text: &str) -> Result<String, String> {
    name::checked(text, MAX_NAME_LENGTH)
}

/// Checks a string as an application's managing entity: an identifier, or `*` for every one.
pub fn checked_entity(text: &str) -> Result<String, NotAnEntity> {
    if text == Entities::EVERY { Ok(text.to_owned()) } else { EntityId::parse(text).map(|entity| entity.to_string()) }
}

/// An application's managing entities, each listed once. The error ends a sentence that begins with the list.
pub fn checked_entities(list: Vec<String>) -> Result<Entities, String> {
    let mut distinct = Vec::<String>::new();
    for entity in list {
        if !distinct.contains(&entity) {
            distinct.push(entity);
        }
        if distinct.len() > MAX_ENTITIES {
            break;
        }
    }
    if !(1..=MAX_ENTITIES).contains(&distinct.len()) {
        return Err(format!("must have 1 to {MAX_ENTITIES} elements"));
    }
    if distinct.iter().map(String::len).sum::<usize>() > MAX_ENTITY_BYTES {
        return Err(format!("must have at most {MAX_ENTITY_BYTES} bytes across all identifiers"));
    }
    Ok(Entities::new(distinct))
}

fn entities(list: Vec<String>, violations: &mut Violations) -> Entities {
    for (position, text) in list.iter().enumerate() {
        if let Err(error) = checked_entity(text) {
            let pointer = Pointer::from("managingEntities").at(position);
            violations.add(pointer, Rule::InvalidFormat, format!("{error}, or `{}`", Entities::EVERY));
        }
    }
    let rule = if list.is_empty() { Rule::Required } else { Rule::TooLong };
    violations.note("managingEntities", rule, checked_entities(list)).unwrap_or_else(|| Entities::new([]))
}

/// Parses strings as scopes and adds each fault at its index in the `scopes` list.
pub fn checked_scopes(list: &[String], violations: &mut Violations) -> Scopes {
    if list.is_empty() {
        violations.add("scopes", Rule::Required, "must have at least one element");
    }
    let mut known = Vec::new();
    let mut compared = 0;
    for (position, name) in list.iter().enumerate() {
        let pointer = Pointer::from("scopes").at(position);
        match Scope::parse(name) {
            Some(scope) => known.push(scope),
            None if compared < MAX_COMPARED => {
                compared += 1;
                violations.add(pointer, Rule::UnknownValue, Scope::none_is(name));
            }
            None => violations.add(pointer, Rule::UnknownValue, "must be one of the service's scopes"),
        }
    }
    known.into_iter().collect()
}

fn public_keys(given: &Value, now: Time, violations: &mut Violations) -> Vec<ClientKey> {
    let Some(list) = given.as_array() else {
        // Some clients send a JWK Set, and some of these sets contain private keys.
        let fault = given.as_object().and_then(client_key::private_fault);
        violations.add("publicKeys", Rule::InvalidType, fault.unwrap_or_else(|| format!("must be {PUBLIC_KEYS}")));
        return Vec::new();
    };
    if list.len() > MAX_KEYS {
        violations.add("publicKeys", Rule::TooLong, format!("must have at most {MAX_KEYS} elements"));
        return Vec::new();
    }
    let mut keys = Vec::<ClientKey>::new();
    for (position, jwk) in list.iter().enumerate() {
        let pointer = Pointer::from("publicKeys").at(position);
        let key = violations.note(pointer.clone(), Rule::InvalidFormat, ClientKey::parse(jwk, now));
        let Some(key) = key else { continue };
        if keys.iter().any(|known| known.kid == key.kid) {
            violations.add(pointer, Rule::Duplicate, "must not have the same `kid` as another key in the list");
        } else {
            keys.push(key);
        }
    }
    keys
}

/// Takes the members that published clients of a similar platform send with an application: the owner (identifier, name
/// and type) and redirect addresses. None of this service's grants uses redirect addresses. Their requests have no
/// member for scopes. Returns whether such a client sent the body, which redirect addresses reveal. An owner in the
/// body must be this entity.
pub(super) fn take_published_members(body: &mut JsonBody<'_>, owner: &EntityId) -> bool {
    let identifier: Option<String> = body.optional("ownerIdentifier", "the path's managing entity");
    for name in ["ownerName", "ownerType"] {
        body.optional::<String>(name, "a string");
    }
    let redirects: Option<Vec<String>> = body.optional("redirectUris", "a list of addresses");
    if identifier.is_some_and(|identifier| identifier != owner.as_str()) {
        body.violations.add("ownerIdentifier", Rule::Inconsistent, "must be the path's managing entity, or be omitted");
    }
    redirects.is_some()
}
