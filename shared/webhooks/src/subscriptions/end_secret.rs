//! Ending the signing secret that was replaced before its overlap is over, for an owner who knows that it got into
//! wrong hands, or that the endpoint has the new one.

use crate::subscriptions::{error::WebhookError, revision, rotate::TRIES, store::Webhooks};
use auth::AuthorizedEntity;
use base::{Time, WebhookId};

/// Whether there was a secret to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviousSecret {
    /// It signed until now.
    Ended,
    /// There was none, or its end had come.
    Absent,
}

impl Webhooks {
    /// Ends the signing secrets of a webhook that the present one has replaced. Attempts that begin from now on carry a
    /// signature of the present secret alone.
    pub async fn end_previous_secret(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        now: Time,
    ) -> Result<PreviousSecret, WebhookError> {
        for _ in 0..TRIES {
            let found = self.find(entity, id).await?.ok_or(WebhookError::NotFound)?;
            let present: Vec<_> =
                found.secrets.iter().filter(|secret| secret.expires_date.is_none()).cloned().collect();
            if !found.secrets.iter().any(|secret| secret.expires_date.is_some() && secret.is_live(now)) {
                return Ok(PreviousSecret::Absent);
            }
            if self.change(entity, id, revision::secrets(&found, &present, now)?).await?.is_done() {
                tracing::info!(webhookId = %id, entity = %entity.id(), "ended the previous signing secret");
                return Ok(PreviousSecret::Ended);
            }
        }
        Err(WebhookError::NeverStill)
    }
}
