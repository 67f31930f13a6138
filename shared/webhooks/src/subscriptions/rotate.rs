//! Replacing a signing secret, without a moment in which a receiver cannot verify what it is sent.
//!
//! The new secret signs at once. The one that it replaces goes on signing beside it for a day, so that an endpoint which has
//! been told of the new one and an endpoint which has not both find their signature. The webhook's version stays: it
//! guards what a change sets, and nobody's change is made obsolete by another secret.

use std::time::Duration;

use http::header::CACHE_CONTROL;
use serde::Serialize;

use super::{
    Webhooks,
    revision::Revision,
    secret::{SealedSecret, SigningSecret},
};
use base::{
    clock::{SharedClock, Time},
    random::SharedRandom,
};
use gate::{EntityCall, Reply};
use problem::{Problem, nothing_said};
use storage::sealing::KeyRings;

/// For how long a secret signs after it was replaced.
pub const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);
/// How many secrets may sign at once: each makes every delivery longer.
pub const MAX_LIVE: usize = 5;
/// How often it is tried. Whoever loses has lost to another secret or to the keys that seal; after so many of the former, no
/// further one is allowed.
const TRIES: usize = 2 * MAX_LIVE;

/// Everything that replacing a secret needs.
pub struct Rotation {
    /// Where webhooks are kept.
    pub webhooks: Webhooks,
    /// What seals their secrets.
    pub rings: KeyRings,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rotated<'a> {
    signing_secret: &'a str,
    previous_secret_expires_date: Time,
}

/// As many secrets sign as may; the first of them ends then.
#[derive(Debug, PartialEq, Eq)]
struct TooMany(Time);

/// A rotation was lost again and again to others.
#[derive(Debug, thiserror::Error)]
#[error("the webhook's secrets changed again and again while one was to be replaced")]
struct NeverStill;

impl Rotation {
    /// Answers a request for a new secret.
    pub async fn rotate(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let entity = &call.entity;
        nothing_said(&call.body)?;
        let id = call.webhook_id()?;
        for _ in 0..TRIES {
            let found = self.webhooks.find(entity, &id).await?.ok_or_else(Problem::webhook_not_found)?;
            let now = self.clock.now();
            let secret = SigningSecret::new(&*self.random);
            let sealed = secret.seal(&*self.rings.get().await?, &*self.random, entity.id(), &id);
            let secrets = replaced(&found.secrets, sealed, now)
                .map_err(|TooMany(oldest_ends)| Problem::too_many_signing_secrets(MAX_LIVE, oldest_ends))?;
            let revision = Revision::secrets(&found.secrets, &secrets, now)?;
            if self.webhooks.change(entity, &id, revision).await?.is_some() {
                tracing::info!(webhookId = %id, entity = %entity.id(), live = secrets.len(), "replaced a signing secret");
                let rotated = Rotated { signing_secret: &secret.reveal(), previous_secret_expires_date: now + OVERLAP };
                return Ok(Reply::ok(&rotated)?.with_header(CACHE_CONTROL, "no-store"));
            }
        }
        Err(Problem::unavailable(NeverStill))
    }
}

/// The secrets once a new one has taken the first place. The others end a day from now, or earlier if they did so before;
/// those that have ended go.
fn replaced(old: &[SealedSecret], sealed: String, now: Time) -> Result<Vec<SealedSecret>, TooMany> {
    let live = old.iter().filter(|secret| secret.is_live(now)).map(|secret| {
        let end = secret.expires_date.map_or(now + OVERLAP, |end| end.min(now + OVERLAP));
        SealedSecret { sealed: secret.sealed.clone(), expires_date: Some(end) }
    });
    let secrets: Vec<_> = [SealedSecret { sealed, expires_date: None }].into_iter().chain(live).collect();
    match secrets.iter().filter_map(|secret| secret.expires_date).min() {
        Some(oldest_ends) if secrets.len() > MAX_LIVE => Err(TooMany(oldest_ends)),
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
    fn a_secret_too_many_is_told_when_there_is_room() {
        let mut secrets = vec![secret("0", None)];
        for hour in 1..MAX_LIVE as u64 {
            secrets = replaced(&secrets, hour.to_string(), after(hour)).expect("room");
        }
        assert_eq!(secrets.len(), MAX_LIVE);
        assert_eq!(replaced(&secrets, "x".into(), after(6)), Err(TooMany(after(25))));
        assert!(replaced(&secrets, "x".into(), after(25)).is_ok());
    }

    proptest! {
        #[test]
        fn however_often_it_is_replaced_a_secret_signs_for_a_day_more_and_never_more_than_five_do(
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
                    Err(TooMany(end)) => prop_assert!(end > after(hour) && end <= after(hour + 24)),
                }
            }
        }
    }
}
