//! Managing entities, and the proof that a caller may act for one.

use serde::{Deserialize, Serialize};

base::text_type! {
    /// A managing entity's identifier. The platform assigns it, and this service does not interpret it. Its length and
    /// characters are limited, so that it is harmless in a key, a path and a log: 1 to 128 of `A–Z a–z 0–9 . _ ~ : @
    /// -`.
    EntityId, Self::parse
}

/// A string that cannot be a managing entity's identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 128 of the characters A–Z, a–z, 0–9, `.`, `_`, `~`, `:`, `@`, `-`")]
pub struct NotAnEntity;

impl EntityId {
    /// Parses an identifier.
    pub fn parse(text: &str) -> Result<Self, NotAnEntity> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:@-".contains(&byte);
        if (1..=128).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAnEntity)
        }
    }
}

/// The type of every owner. Published clients distinguish users, companies and accounts.
const OWNER_TYPE: &str = "COMPANY";

/// A webhook's or an application's owner, as responses show it. Published clients expect a name and a type; the service
/// knows only the identifier.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerView {
    owner_identifier: EntityId,
    owner_name: EntityId,
    owner_type: &'static str,
}

impl OwnerView {
    /// The view of this owner.
    pub fn of(owner: &EntityId) -> Self {
        Self { owner_identifier: owner.clone(), owner_name: owner.clone(), owner_type: OWNER_TYPE }
    }
}

/// A managing entity that the caller may act for. The stores take this type, so code that skips the check does not
/// compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizedEntity(EntityId);

impl AuthorizedEntity {
    /// An entity covered by verified claims.
    pub(crate) fn by_token(entity: EntityId) -> Self {
        Self(entity)
    }

    /// A delivery's owner, for the dispatcher. The credential is the dispatcher's IAM identity.
    pub fn owning_delivery(entity: EntityId) -> Self {
        Self(entity)
    }

    /// The entity of an event in the outbox, for the sweep that publishes it.
    pub fn owning_outbox_event(entity: EntityId) -> Self {
        Self(entity)
    }

    /// The entity that requested a payment provider's permission, for the callback. The credential is the unguessable
    /// state.
    pub fn by_state(entity: EntityId) -> Self {
        Self(entity)
    }

    /// A connection's owner, for a token refresh. The credential is the function's IAM identity.
    pub fn owning_connection(entity: EntityId) -> Self {
        Self(entity)
    }

    /// The entity named by an event from the bus, for publishing. IAM controls who may send to the bus.
    pub fn by_bus(entity: EntityId) -> Self {
        Self(entity)
    }

    /// The canary's entity, for the operator who provisions it. The credential is the operator's IAM identity.
    pub fn of_canary(entity: EntityId) -> Self {
        Self(entity)
    }

    /// Any entity, for the deployment's operator. The credential is the operator's IAM identity.
    pub fn by_operator(entity: EntityId) -> Self {
        Self(entity)
    }

    /// The entity's identifier.
    pub fn id(&self) -> &EntityId {
        &self.0
    }
}

/// The entities that an application may act for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entities(Vec<String>);

impl Entities {
    /// The wildcard of platform-wide applications: every entity.
    pub const EVERY: &'static str = "*";

    /// A list of these entities.
    pub fn new(identifiers: impl IntoIterator<Item = String>) -> Self {
        Self(identifiers.into_iter().collect())
    }

    /// The identifiers, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether the list covers this entity. The identifier may be any string, even a malformed one.
    pub fn cover(&self, entity: &str) -> bool {
        self.0.iter().any(|covered| covered == Self::EVERY || covered == entity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_stays_harmless_in_keys_and_paths() {
        for good in ["demo-hotel", "a", "0193f6d2-1c9e-7cc3-98c4-dc0c0c07398f", "A.b_c~d:e@f", &"x".repeat(128)] {
            assert!(EntityId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a/b", "a#b", "ä", "a\n", "*", "%2F", &"x".repeat(129)] {
            assert_eq!(EntityId::parse(bad), Err(NotAnEntity), "{bad}");
        }
    }

    #[test]
    fn a_token_covers_its_own_entities_or_all() {
        let own = Entities::new(["hotel".to_owned()]);
        assert!(own.cover("hotel") && !own.cover("Hotel") && !own.cover("*") && !own.cover(""));
        assert!(Entities::new([Entities::EVERY.to_owned()]).cover("anything"));
        assert!(!Entities::new([]).cover("hotel"));
    }
}
