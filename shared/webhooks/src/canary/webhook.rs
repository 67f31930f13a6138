//! The canary's webhook, which is made with the secret and not over HTTP: its key has to be known to the receiver.

use crate::{
    canary::secret::CanarySecret,
    subscriptions::{
        WebhookError,
        register::{NewWebhook, Registration},
        secret::SigningSecret,
    },
};
use auth::AuthorizedEntity;

/// The path of the receiver.
pub const PATH: &str = "/task/canary";
/// The type of the canary's events: an ordinary one, of the kind that customers publish.
pub(super) const EVENT_TYPE: &str = "booking.created";

/// Makes the canary's webhook, unless it is there and leads to the receiver below this address.
pub async fn provide(registration: &Registration, secret: &CanarySecret, base_url: &str) -> Result<(), WebhookError> {
    let entity = AuthorizedEntity::of_canary(secret.managing_entity_identifier.clone());
    let key = SigningSecret::of(secret.signing_key.clone());
    let new = NewWebhook::plain("Canary", format!("{base_url}{PATH}"), EVENT_TYPE);
    registration.ensure(&entity, (&secret.webhook_identifier, &key), new).await
}
