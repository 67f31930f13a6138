//! Rotates a signing secret, so that a receiver can verify every delivery throughout.
//!
//! The new secret signs immediately. The previous secret continues to sign for the overlap that the owner chooses, so
//! that an endpoint can verify a signature with either one. At most two secrets sign at once. While two do, a rotation
//! is refused unless the owner ends the older one, which would otherwise end earlier than promised. The webhook's
//! version does not change: it guards the members that a change sets, and a new secret makes no change obsolete. If a
//! webhook signs with Ed25519, its key pair is replaced and expires with its secret.

use std::time::Duration;

use serde::Serialize;

use crate::subscriptions::{
    endpoint::{
        key_pair::PublishedKey,
        secret::{self, RevealedSecret, SealedSecret, SigningSecret},
    },
    error::WebhookError,
    webhook::{revision, store::Webhooks},
};
use auth::AuthorizedEntity;
use base::{SharedClock, SharedRandom, Time, WebhookId};
use problem::{JsonBody, Problem, Removed, overlap};
use storage::{Answered, IdempotencyStore, IdempotentRequest, KeyRings, Once};

/// How many times a change to the secrets is tried. A change is lost only if another change is made concurrently, or if
/// the secrets are resealed with a new key.
const TRIES: usize = 10;

/// Rotates signing secrets.
pub struct Rotation {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// Repeats the response for an idempotency key.
    pub answers: IdempotencyStore,
    /// Seals the secrets.
    pub rings: KeyRings,
    /// The clock for the beginning of the overlap.
    pub clock: SharedClock,
    /// The random source for the secrets.
    pub random: SharedRandom,
}

/// A new secret, and the end of the previous secret.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotated {
    signing_secret: RevealedSecret,
    /// The moment of the rotation, if there is no overlap.
    previous_secret_expires_date: Time,
    /// Empty if the webhook has no key pairs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    public_keys: Vec<PublishedKey>,
}

/// A request for a new secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotationRequest {
    /// How long the previous secret continues to sign.
    pub overlap: Duration,
    /// Whether a secret that was replaced earlier and is still active ends immediately.
    pub ends_previous: bool,
}

impl RotationRequest {
    /// Reads the request from a body. An empty body means the defaults.
    ///
    /// # Errors
    /// A `Problem` if the body has unknown members or invalid values.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
        let mut body = JsonBody::read(body)?;
        let overlap = overlap::take(&mut body);
        let ends_previous = body.optional("endPrevious", "true or false").unwrap_or_default();
        body.finish()?;
        Ok(Self { overlap, ends_previous })
    }

    /// Fails while an earlier overlap lasts, unless the request ends it.
    fn may_replace(self, secrets: &[SealedSecret], now: Time) -> Result<(), WebhookError> {
        let live = secrets.iter().filter(|secret| secret.is_live(now));
        match live.filter_map(|secret| secret.expires_date).max() {
            Some(end) if !self.ends_previous => Err(WebhookError::PreviousSecretLive(end)),
            _ => Ok(()),
        }
    }
}

impl Rotation {
    /// Replaces a webhook's signing secret, once per idempotency key. The previous secret continues to sign for the
    /// overlap.
    ///
    /// # Errors
    /// [`WebhookError::PreviousSecretLive`] if a secret that was replaced earlier still signs and the request does not
    /// end it.
    pub async fn rotate(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        request: RotationRequest,
        once: Option<&IdempotentRequest>,
    ) -> Result<Answered<Rotated>, WebhookError> {
        self.answers.once(once, self.clock.now(), self.replace(entity, id, request, once)).await
    }

    async fn replace(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        request: RotationRequest,
        once: Option<&IdempotentRequest>,
    ) -> Result<Rotated, WebhookError> {
        let mut last_try: Option<(SealedSecret, Rotated)> = None;
        for _ in 0..TRIES {
            let found = self.webhooks.find(entity, id).await?.ok_or(WebhookError::NotFound)?;
            // The response to the previous write was lost, and the AWS client repeated the write. Another rotation
            // would end the only secret that the receiver has.
            if let Some((sealed, rotated)) = last_try.take()
                && found.secrets.first() == Some(&sealed)
            {
                return Ok(rotated);
            }
            let now = self.clock.now();
            request.may_replace(&found.secrets, now)?;
            let secret = SigningSecret::new(&*self.random, secret::scheme(&found.secrets));
            let sealed = secret.seal(&*self.rings.get().await?, &*self.random, entity.id(), id);
            let end = now + request.overlap;
            let secrets = replaced(&found.secrets, sealed.clone(), end, now);
            let change = revision::secrets(&found, &secrets, now)?;
            let rotated = Rotated {
                signing_secret: secret.reveal(),
                previous_secret_expires_date: end,
                public_keys: secret::public_keys(&secrets),
            };
            let record = self.answers.record(once, &rotated, id, now).await?;
            if self.webhooks.change_once(change, record).await?.is_done() {
                tracing::info!(
                    webhookId = %id,
                    entity = %entity.id(),
                    live = secrets.len(),
                    "replaced a signing secret"
                );
                return Ok(rotated);
            }
            last_try = Some((sealed, rotated));
        }
        Err(WebhookError::NeverStill)
    }
}

/// The secrets after a rotation: the new one first, then the previous one if it continues to sign.
fn replaced(old: &[SealedSecret], new: SealedSecret, end: Time, now: Time) -> Vec<SealedSecret> {
    let former = old.first().map(|former| SealedSecret { expires_date: Some(end), ..former.clone() });
    [new].into_iter().chain(former.filter(|former| former.is_live(now))).collect()
}

/// The outcome of ending the previous secret.
#[derive(Debug, Clone, Copy)]
enum PreviousSecret {
    /// A previous secret signed until now.
    Ended,
    /// No previous secret signed.
    Absent,
}

impl PreviousSecret {
    /// The response for a webhook.
    fn response(self, id: &WebhookId) -> Removed {
        Removed::new(
            id,
            match self {
                Self::Ended => "The previous signing secret is revoked. Only the current one is valid.",
                Self::Absent => "There was no previous signing secret. Only the current one is valid.",
            },
        )
    }
}

impl Webhooks {
    /// Ends a webhook's previous signing secrets, once per idempotency key. Later attempts are signed only with the
    /// current secret.
    pub async fn end_previous_secret(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        once: Once<'_>,
        now: Time,
    ) -> Result<Answered<Removed>, WebhookError> {
        once.carry_out(now, self.end_previous_secret_now(entity, id, once, now)).await
    }

    async fn end_previous_secret_now(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        once: Once<'_>,
        now: Time,
    ) -> Result<Removed, WebhookError> {
        let absent = PreviousSecret::Absent.response(id);
        let ended = PreviousSecret::Ended.response(id);
        let mut last_try = None;
        for _ in 0..TRIES {
            let found = self.find(entity, id).await?.ok_or(WebhookError::NotFound)?;
            let current: Vec<_> =
                found.secrets.iter().filter(|secret| secret.expires_date.is_none()).cloned().collect();
            // The response to the previous write was lost, and the AWS client repeated the write.
            let is_done = last_try.as_ref() == Some(&found.secrets);
            if !is_done && !found.secrets.iter().any(|secret| secret.expires_date.is_some() && secret.is_live(now)) {
                self.change_nothing(once.record(&absent, id, now).await?).await?;
                return Ok(absent);
            }
            let record = once.record(&ended, id, now).await?;
            let is_ended = if is_done {
                self.change_nothing(record).await?;
                true
            } else {
                self.change_once(revision::secrets(&found, &current, now)?, record).await?.is_done()
            };
            if is_ended {
                tracing::info!(webhookId = %id, entity = %entity.id(), "ended the previous signing secret");
                return Ok(ended);
            }
            last_try = Some(current);
        }
        Err(WebhookError::NeverStill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::endpoint::key_pair::{SignatureScheme, SigningKeyPair};
    use auth::EntityId;
    use base::{SystemRandom, testing::CountingRandom};
    use proptest::prelude::*;
    use storage::sealing::ring;

    fn id() -> WebhookId {
        WebhookId::new(after(0), &CountingRandom::default())
    }

    fn after(hours: u64) -> Time {
        Time::from_millis(1_795_167_900_123) + Duration::from_secs(hours * 60 * 60)
    }

    fn secret(name: &str, end: Option<Time>) -> SealedSecret {
        SealedSecret { sealed: name.into(), expires_date: end, key_pair: None }
    }

    fn rotated(old: &[SealedSecret], name: &str, overlap: u64, hour: u64) -> Vec<SealedSecret> {
        replaced(old, secret(name, None), after(hour + overlap), after(hour))
    }

    #[test]
    fn the_new_secret_is_first_and_the_previous_one_ends_after_the_overlap() {
        let once = rotated(&[secret("a", None)], "b", 24, 0);
        assert_eq!(once, [secret("b", None), secret("a", Some(after(24)))]);
        let later = rotated(&once, "c", 168, 30);
        assert_eq!(later, [secret("c", None), secret("b", Some(after(198)))]);
    }

    #[test]
    fn a_rotation_waits_for_an_earlier_overlap_unless_it_ends_it() {
        let request = |body: &str| RotationRequest::read(body.as_bytes()).expect("a request");
        let two = [secret("b", None), secret("a", Some(after(24)))];
        for body in ["", "{}", r#"{"endPrevious":false}"#, r#"{"overlapSeconds":0}"#] {
            let refused = request(body).may_replace(&two, after(1));
            assert!(matches!(refused, Err(WebhookError::PreviousSecretLive(end)) if end == after(24)), "{body}");
            assert!(request(body).may_replace(&two, after(24)).is_ok(), "it has ended");
            assert!(request(body).may_replace(&two[..1], after(1)).is_ok(), "it was the first rotation");
        }
        assert!(request(r#"{"endPrevious":true}"#).may_replace(&two, after(1)).is_ok());
        for bad in [r#"{"endPrevious":1}"#, r#"{"endPrevious":null}"#, r#"{"endprevious":true}"#] {
            assert!(RotationRequest::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rotation_while_two_sign_ends_the_older_one_at_once() {
        let two = [secret("b", None), secret("a", Some(after(24)))];
        assert_eq!(rotated(&two, "c", 24, 1), [secret("c", None), secret("b", Some(after(25)))]);
    }

    #[test]
    fn a_key_pair_ends_with_the_secret_beside_it() {
        let paired = |name: &str| {
            let pair = SigningKeyPair::new(&SystemRandom);
            let pair = pair.seal(&ring("a"), &SystemRandom, &EntityId::parse("h").expect("an entity"), &id());
            SealedSecret { key_pair: Some(pair), ..secret(name, None) }
        };
        let first = paired("a");
        let second = paired("b");
        let both = replaced(std::slice::from_ref(&first), second.clone(), after(24), after(0));
        let keys = secret::public_keys(&both);
        let public = |secret: &SealedSecret| secret.key_pair.as_ref().expect("it has one").public.clone();
        let expected = [(public(&second), None), (public(&first), Some(after(24)))];
        assert_eq!(keys.into_iter().map(|key| (key.key, key.expires_date)).collect::<Vec<_>>(), expected);
        assert_eq!(secret::scheme(&both), SignatureScheme::Ed25519);
        // A secret created before the webhook had key pairs has none.
        let mixed = replaced(&[secret("a", None)], second, after(24), after(0));
        assert_eq!((secret::public_keys(&mixed).len(), secret::scheme(&mixed)), (1, SignatureScheme::Ed25519));
        assert_eq!(secret::scheme(&[secret("a", None)]), SignatureScheme::Hmac);
    }

    #[test]
    fn without_an_overlap_the_previous_secret_ends_at_once() {
        let two = [secret("b", None), secret("a", Some(after(24)))];
        assert_eq!(rotated(&two, "c", 0, 1), [secret("c", None)]);
    }

    proptest! {
        #[test]
        fn at_most_two_secrets_sign_and_the_previous_one_for_the_overlap(
            steps in proptest::collection::vec((0u64..40, 0u64..168), 1..30)
        ) {
            let mut secrets = vec![secret("0", None)];
            let mut hour = 0;
            for (number, (pause, overlap)) in steps.into_iter().enumerate() {
                hour += pause;
                let former = secrets[0].sealed.clone();
                secrets = rotated(&secrets, &format!("{}", number + 1), overlap, hour);
                prop_assert!(secrets.len() <= 2 && secrets[0].expires_date.is_none());
                let kept = secrets.get(1).map(|kept| (kept.sealed.clone(), kept.expires_date));
                prop_assert_eq!(kept, (overlap > 0).then(|| (former, Some(after(hour + overlap)))));
            }
        }
    }
}
