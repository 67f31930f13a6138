//! Rotating a signing secret, without a moment in which a receiver cannot verify a delivery.
//!
//! The new secret signs at once. The former secret goes on signing beside it for a day, so that an endpoint finds a
//! signature that it can verify with either. The webhook's version stays: it guards the members that a change sets, and
//! a new secret makes no change obsolete.

use std::time::Duration;

use serde::Serialize;

use super::{
    error::{MAX_LIVE, WebhookError},
    revision,
    secret::{RevealedSecret, SealedSecret, SigningSecret},
    store::Webhooks,
};
use auth::AuthorizedEntity;
use base::{SharedClock, SharedRandom, Time, WebhookId};
use storage::{Answered, Answers, KeyRings, Once};

/// How long a secret signs after it was replaced.
pub const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a rotation is tried. It loses only to another rotation, of which no more than [`MAX_LIVE`] succeed, or to
/// the sealing of the secrets with a new key.
const TRIES: usize = 2 * MAX_LIVE;

/// Rotates signing secrets.
pub struct Rotation {
    /// The webhooks that exist.
    pub webhooks: Webhooks,
    /// Repeats the answer for an idempotency key.
    pub answers: Answers,
    /// Seals the secrets.
    pub rings: KeyRings,
    /// Gives the beginning of the overlap.
    pub clock: SharedClock,
    /// Makes the secrets.
    pub random: SharedRandom,
}

/// A new secret, and the end of the secret that it replaces.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotated {
    signing_secret: RevealedSecret,
    previous_secret_expires_date: Time,
}

impl Rotation {
    /// Replaces a webhook's signing secret, once for an idempotency key.
    pub async fn rotate(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        once: Option<&Once>,
    ) -> Result<Answered<Rotated>, WebhookError> {
        self.answers.once(once, self.clock.now(), self.replace(entity, id, once)).await
    }

    async fn replace(
        &self,
        entity: &AuthorizedEntity,
        id: &WebhookId,
        once: Option<&Once>,
    ) -> Result<Rotated, WebhookError> {
        for _ in 0..TRIES {
            let found = self.webhooks.find(entity, id).await?.ok_or(WebhookError::NotFound)?;
            let now = self.clock.now();
            let secret = SigningSecret::new(&*self.random);
            let sealed = secret.seal(&*self.rings.get().await?, &*self.random, entity.id(), id);
            let secrets = replaced(&found.secrets, sealed, now)?;
            let change = revision::secrets(&found, &secrets, now)?;
            let rotated = Rotated { signing_secret: secret.reveal(), previous_secret_expires_date: now + OVERLAP };
            let record = self.answers.record(once, &rotated, id, now).await?;
            if self.webhooks.change_once(change, record).await?.is_done() {
                tracing::info!(webhookId = %id, entity = %entity.id(), live = secrets.len(), "replaced a signing secret");
                return Ok(rotated);
            }
        }
        Err(WebhookError::NeverStill)
    }
}

/// The secrets with a new one in the first place. The others end a day from now or at their earlier end; secrets that
/// have ended are left out.
fn replaced(old: &[SealedSecret], sealed: String, now: Time) -> Result<Vec<SealedSecret>, WebhookError> {
    let live = old.iter().filter(|secret| secret.is_live(now)).map(|secret| {
        let end = secret.expires_date.map_or(now + OVERLAP, |end| end.min(now + OVERLAP));
        SealedSecret { sealed: secret.sealed.clone(), expires_date: Some(end) }
    });
    let secrets: Vec<_> = [SealedSecret { sealed, expires_date: None }].into_iter().chain(live).collect();
    match secrets.iter().filter_map(|secret| secret.expires_date).min() {
        Some(oldest_ends) if secrets.len() > MAX_LIVE => Err(WebhookError::TooManySecrets(oldest_ends)),
        _ => Ok(secrets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(hours: u64) -> Time {
        Time::from_millis(1_795_167_900_123) + Duration::from_secs(hours * 60 * 60)
    }

    fn secret(name: &str, end: Option<Time>) -> SealedSecret {
        SealedSecret { sealed: name.into(), expires_date: end }
    }

    #[test]
    fn the_new_secret_comes_first_and_the_old_ones_end_a_day_later_or_when_they_would_have() {
        let once = replaced(&[secret("a", None)], "b".into(), after(0)).expect("room");
        assert_eq!(once, [secret("b", None), secret("a", Some(after(24)))]);
        let twice = replaced(&once, "c".into(), after(1)).expect("room");
        assert_eq!(twice, [secret("c", None), secret("b", Some(after(25))), secret("a", Some(after(24)))]);
    }

    #[test]
    fn a_secret_that_has_ended_is_gone_at_that_very_moment() {
        let old = [secret("b", None), secret("a", Some(after(24)))];
        assert_eq!(replaced(&old, "c".into(), after(24)).expect("room").len(), 2);
    }

    #[test]
    fn a_secret_too_many_is_refused_with_the_time_at_which_there_is_room() {
        let mut secrets = vec![secret("0", None)];
        for hour in 1..MAX_LIVE as u64 {
            secrets = replaced(&secrets, hour.to_string(), after(hour)).expect("room");
        }
        assert_eq!(secrets.len(), MAX_LIVE);
        let refused = replaced(&secrets, "x".into(), after(6));
        assert!(matches!(refused, Err(WebhookError::TooManySecrets(end)) if end == after(25)), "{refused:?}");
        assert!(replaced(&secrets, "x".into(), after(25)).is_ok());
    }

    proptest! {
        #[test]
        fn a_replaced_secret_signs_for_a_day_more_and_never_more_than_five_sign(
            pauses in proptest::collection::vec(0u64..40, 1..30)
        ) {
            let (mut secrets, mut hour) = (vec![secret("0", None)], 0);
            for (number, pause) in pauses.into_iter().enumerate() {
                hour += pause;
                let former = secrets[0].sealed.clone();
                match replaced(&secrets, format!("{}", number + 1), after(hour)) {
                    Ok(now_on) => {
                        prop_assert!(now_on.len() <= MAX_LIVE && now_on[0].expires_date.is_none());
                        prop_assert!(now_on[1..].iter().all(|old| old.is_live(after(hour))));
                        let former = now_on.iter().find(|secret| secret.sealed == former).expect("it still signs");
                        prop_assert_eq!(former.expires_date, Some(after(hour + 24)));
                        secrets = now_on;
                    }
                    Err(WebhookError::TooManySecrets(end)) => prop_assert!(end > after(hour) && end <= after(hour + 24)),
                    Err(other) => panic!("{other}"),
                }
            }
        }
    }
}
