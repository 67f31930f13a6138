//! Test helpers for the list in the table and the list in memory.

use crate::{entity::Entities, resource::Resource, scope::Scopes, token::Claims};
use base::Time;
use std::time::Duration;

pub(super) const START: Time = Time::from_millis(1_795_167_900_000);

pub(super) fn after(seconds: u64) -> Time {
    START + Duration::from_secs(seconds)
}

/// The claims of the token with this identifier: issued at [`START`] to `app` for its secret `sec_1`, valid for an
/// hour.
pub(super) fn claims(token_id: impl Into<String>) -> Claims {
    Claims {
        client_id: "app".into(),
        credential_id: Some("sec_1".into()),
        session_id: None,
        token_id: token_id.into(),
        key_id: "kid".into(),
        resource: Resource::Api,
        scopes: Scopes::ALL,
        entities: Entities::new([]),
        may_publish: false,
        issued: START,
        expires: after(3600),
    }
}
