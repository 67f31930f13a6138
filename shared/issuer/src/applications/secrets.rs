//! The secrets of an application, one after the other, without a moment in which it has none: the
//! new secret is accepted at once, and the previous one beside it for as long as the owner wants.
//!
//! A secret that has ended is kept for as long as tokens that were got with it may be good, so that
//! its removal can end them. An application keeps a few of those; when there is one too many, the
//! secret that ended first is removed with its tokens.

use std::{cmp::Reverse, time::Duration};

use serde::Serialize;

use super::{
    application::Application,
    client_secret::{self, ClientSecret},
    credential_allowance::{self, AllowanceError},
    grants::{Caller, ExceedsCaller},
    left::Left,
    show::{Conflict, FindError},
    store::Applications,
    view::exposed,
};
use crate::oauth::pepper::Pepper;
use base::{audit::Notes, clock::Time, ids::ClientSecretId, random::SharedRandom};
use problem::{JsonBody, Problem, ProblemKind};
use storage::{
    allowance::Allowances,
    secrets::{SecretError, SecretText},
    table::{TableError, Written},
};

/// How many secrets may be accepted at once.
pub const MAX_SECRETS: usize = 2;
/// How many that have ended are kept when a new one is added, so that the item of an application
/// stays small.
const MAX_ENDED: usize = 6;
/// For how long the old secret is accepted beside the new one, unless its owner says otherwise.
const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest that may be said, in seconds: seven days.
const MAX_OVERLAP: u32 = 7 * 24 * 60 * 60;

/// Adds secrets to applications.
pub struct SecretAddition {
    /// Where applications are kept.
    pub applications: Applications,
    /// Counts what is made in an hour.
    pub allowances: Allowances,
    /// The key of the hashes of secrets.
    pub pepper: Pepper,
    /// Draws secrets and their identifiers.
    pub random: SharedRandom,
}

/// A new secret, which is shown this once.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddedSecret {
    /// The application.
    pub client_id: String,
    /// The secret's identifier.
    pub secret_id: ClientSecretId,
    /// The secret.
    #[serde(serialize_with = "exposed")]
    pub client_secret: SecretText,
    /// When the secret ends that was accepted until now, if one was.
    #[serde(rename = "previousSecretExpiresDate", skip_serializing_if = "Option::is_none")]
    pub previous_ends: Option<Time>,
}

/// The credentials of an application with a new secret.
#[derive(Debug, PartialEq, Eq)]
pub struct Rotated {
    /// The credentials, the new secret first.
    pub left: Left,
    /// When the secret ends that was accepted until now, if one was.
    pub previous_ends: Option<Time>,
}

/// The application has as many live secrets as it may have; the first of them ends at this time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the application has {MAX_SECRETS} live secrets, and the first of them ends at {0}")]
pub struct TooMany(pub Time);

/// Why a secret was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddSecretError {
    /// The entity has no such application, or it could not be read.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The application can do more than the caller.
    #[error(transparent)]
    Exceeds(#[from] ExceedsCaller),
    /// The pepper could not be read.
    #[error(transparent)]
    Pepper(#[from] SecretError),
    /// The application has as many live secrets as it may have.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// Too many were made in this hour.
    #[error(transparent)]
    Allowance(#[from] AllowanceError),
    /// Another change of the application came first.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The table could not be written.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl SecretAddition {
    /// Adds a secret to an application. The previous secret is accepted for as long as the overlap.
    pub async fn add(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        overlap: Duration,
        notes: &Notes,
        now: Time,
    ) -> Result<AddedSecret, AddSecretError> {
        let application = self.applications.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        let client_secret = client_secret::fresh(&*self.random);
        let new = ClientSecret::of(&client_secret, &*self.pepper.get().await?, now, &*self.random);
        let secret_id = new.id.clone();
        notes.subject(&format!("{}/{secret_id}", application.client_id));
        let Rotated { left, previous_ends } = with_new(&application, new, overlap, now)?;
        credential_allowance::spend(&self.allowances, caller, 1, now).await?;
        match self.applications.leave(&application, &left, now).await? {
            Written::Lost(_) => Err(self.applications.lost(caller, client_id, notes).await.into()),
            Written::Done(()) => {
                Ok(AddedSecret { client_id: application.client_id, secret_id, client_secret, previous_ends })
            }
        }
    }
}

/// Reads for how long the previous secret is to be accepted beside the new one.
pub fn overlap(body: &[u8]) -> Result<Duration, Problem> {
    if body.trim_ascii().is_empty() {
        return Ok(OVERLAP);
    }
    let mut body = JsonBody::read(body)?;
    let wanted = format!("a number of seconds, an integer from 0 to {MAX_OVERLAP}");
    let seconds = body.optional::<u32>("overlapSeconds", &wanted);
    if seconds.is_some_and(|seconds| seconds > MAX_OVERLAP) {
        body.violations.add("overlapSeconds", format!("must be {wanted}"));
    }
    body.finish()?;
    Ok(seconds.map_or(OVERLAP, |seconds| Duration::from_secs(seconds.into())))
}

/// The credentials with a new secret in the first place. The previous one ends after the overlap,
/// or earlier if it has an earlier end. Secrets that have ended stay while their tokens may be
/// good; when they are too many, the first that ended go with their tokens, since a secret that is
/// not known any more could not be removed.
pub fn with_new(
    application: &Application,
    new: ClientSecret,
    overlap: Duration,
    now: Time,
) -> Result<Rotated, TooMany> {
    let (live, mut ended): (Vec<_>, Vec<_>) =
        application.kept_secrets(now).cloned().partition(|secret| secret.is_live(now));
    if live.len() >= MAX_SECRETS {
        let ends = live.iter().filter_map(|secret| secret.expires_date).min();
        return Err(TooMany(ends.unwrap_or(now))); // the older of two has an end, always
    }
    let end = now + overlap;
    let previous = live.into_iter().map(|secret| {
        let end = secret.expires_date.map_or(end, |before| before.min(end));
        ClientSecret { expires_date: Some(end), ..secret }
    });
    let mut secrets: Vec<_> = [new].into_iter().chain(previous).collect();
    let previous_ends = secrets.get(1).and_then(|previous| previous.expires_date);
    ended.sort_by_key(|secret| Reverse(secret.expires_date));
    let gone = ended.split_off(ended.len().min(MAX_ENDED)).into_iter().map(|secret| secret.id.to_string()).collect();
    secrets.extend(ended);
    Ok(Rotated { left: Left { secrets, keys: application.keys.clone(), gone }, previous_ends })
}

/// The credentials that remain without this secret; `None` when the application has no such secret.
/// A secret that has ended can be removed as well, since its tokens may still be good.
pub fn without(application: &Application, id: &ClientSecretId, now: Time) -> Option<Left> {
    let (mut gone, left): (Vec<_>, Vec<_>) =
        application.kept_secrets(now).cloned().partition(|secret| secret.id == *id);
    let gone = vec![gone.pop()?.id.to_string()];
    Some(Left { secrets: left, keys: application.keys.clone(), gone })
}

impl From<AddSecretError> for Problem {
    fn from(error: AddSecretError) -> Self {
        match error {
            AddSecretError::Find(error) => error.into(),
            AddSecretError::Exceeds(error) => error.into(),
            AddSecretError::Pepper(error) => error.into(),
            AddSecretError::TooMany(TooMany(oldest_ends)) => {
                let detail = format!(
                    "The application has {MAX_SECRETS} live secrets; the older ends at {oldest_ends}. Wait until then, or remove \
                     one."
                );
                Self::new(ProblemKind::ClientSecretLimit, detail)
                    .with_property("limit", MAX_SECRETS)
                    .with_property("oldestEndsDate", oldest_ends.to_string())
            }
            AddSecretError::Allowance(error) => error.into(),
            AddSecretError::Conflict(error) => error.into(),
            AddSecretError::Table(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::applications::new_application::NewApplication;
    use auth::{entity::Entities, scope::Scopes};
    use base::random::SystemRandom;
    use proptest::prelude::*;
    use storage::secrets::SecretBytes;

    fn after(hours: u64) -> Time {
        Time::from_millis(1_795_167_900_123) + hour(hours)
    }

    fn hour(hours: u64) -> Duration {
        Duration::from_secs(hours * 60 * 60)
    }

    fn secret(text: &str, now: Time) -> ClientSecret {
        ClientSecret::of(&SecretText::new(text), &SecretBytes::new(vec![1; 32]), now, &SystemRandom)
    }

    fn application(secrets: Vec<ClientSecret>) -> Application {
        let new = NewApplication::of_operator("n".into(), Scopes::ALL, Entities::new([]));
        Application { secrets, ..new.with("app".into(), None, after(0)) }
    }

    #[test]
    fn an_overlap_is_a_day_unless_its_owner_says_otherwise() {
        for (body, seconds) in [
            ("", 86_400),
            (" ", 86_400),
            ("{}", 86_400),
            (r#"{"overlapSeconds":0}"#, 0),
            (r#"{"overlapSeconds":604800}"#, 604_800),
        ] {
            assert_eq!(overlap(body.as_bytes()).expect(body).as_secs(), seconds, "{body}");
        }
        for bad in ["604801", "-1", "1.5", "1e3", "null", "\"1\"", "99999999999"] {
            let body = format!(r#"{{"overlapSeconds":{bad}}}"#);
            let problem = overlap(body.as_bytes()).expect_err(bad);
            assert_eq!(problem.properties["violations"][0]["field"], "overlapSeconds", "{bad}");
        }
        for bad in ["[]", "null", r#"{"overlap":1}"#] {
            assert!(overlap(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    /// The secrets once a new one was added, which there is room for.
    fn added(secrets: &[ClientSecret], text: &str, overlap: Duration, now: Time) -> Vec<ClientSecret> {
        rotated(secrets, text, overlap, now).expect("room").left.secrets
    }

    fn rotated(secrets: &[ClientSecret], text: &str, overlap: Duration, now: Time) -> Result<Rotated, TooMany> {
        with_new(&application(secrets.to_vec()), secret(text, now), overlap, now)
    }

    #[test]
    fn the_old_secret_ends_after_the_overlap_or_when_it_would_have() {
        let first = secret("a", after(0));
        let both = rotated(slice::from_ref(&first), "b", hour(2), after(1)).expect("room");
        assert_eq!(both.left.secrets[1], ClientSecret { expires_date: Some(after(3)), ..first.clone() });
        assert_eq!((both.left.secrets[0].expires_date, both.previous_ends), (None, Some(after(3))));

        let both = rotated(&[ClientSecret { expires_date: Some(after(2)), ..first }], "b", hour(24), after(1));
        assert_eq!(both.expect("room").previous_ends, Some(after(2)));
    }

    #[test]
    fn without_an_overlap_the_old_secret_ends_at_that_very_moment() {
        let both = added(&[secret("a", after(0))], "b", hour(0), after(1));
        assert!(both[0].is_live(after(1)) && !both[1].is_live(after(1)));
    }

    #[test]
    fn a_secret_too_many_is_told_when_there_is_room() {
        let both = added(&[secret("a", after(0))], "b", hour(24), after(0));
        assert_eq!(rotated(&both, "c", hour(1), after(1)), Err(TooMany(after(24))));
        assert_eq!(added(&both, "c", hour(1), after(24)).len(), 3, "the first has ended, and is kept");
    }

    #[test]
    fn a_secret_can_go_for_as_long_as_it_is_kept() {
        let (first, other) = (secret("a", after(0)), secret("c", after(9)));
        let both = added(slice::from_ref(&first), "b", hour(2), after(1));
        let new = both[0].clone();
        let both = application(both);
        let left = |id: &ClientSecretId, now| without(&both, id, now).map(|left| (left.secrets, left.gone));
        let gone = |id: &ClientSecretId| vec![id.to_string()];
        assert_eq!(left(&first.id, after(2)), Some((vec![new.clone()], gone(&first.id))));
        assert_eq!(left(&first.id, after(3)), Some((vec![new.clone()], gone(&first.id))), "although it has ended");
        assert_eq!(
            left(&first.id, after(27)),
            Some((vec![new.clone()], gone(&first.id))),
            "for as long as tokens live"
        );
        assert_eq!(left(&first.id, after(28)), None);
        assert_eq!(left(&new.id, after(3)), Some((vec![both.secrets[1].clone()], gone(&new.id))));
        assert_eq!(left(&new.id, after(28)), Some((Vec::new(), gone(&new.id))));
        assert_eq!(left(&other.id, after(2)), None);
        assert!(without(&both, &new.id, after(3)).is_some_and(|left| left.is_nothing(after(3))));
        assert!(without(&both, &new.id, after(2)).is_some_and(|left| !left.is_nothing(after(2))));
    }

    #[test]
    fn a_secret_that_has_ended_is_kept_while_its_tokens_may_be_good() {
        let first = secret("a", after(0));
        let second = added(slice::from_ref(&first), "b", hour(0), after(1));
        let is_there = |secrets: &[ClientSecret]| secrets.iter().any(|secret| secret.id == first.id);
        let third = added(&second, "c", hour(30), after(25));
        assert!(is_there(&third), "tokens that were got with it live for a day and five minutes");
        let removed = without(&application(third.clone()), &second[0].id, after(25)).expect("it is there");
        assert!(is_there(&removed.secrets), "another's removal is not its own");
        let fourth = rotated(&second, "c", hour(0), after(26)).expect("room").left;
        assert!(!is_there(&fourth.secrets) && fourth.gone.is_empty(), "none of its tokens is left");
    }

    #[test]
    fn the_secret_that_ended_first_goes_with_its_tokens_where_too_many_are_kept() {
        let (mut secrets, start) = (vec![secret("a", after(0))], after(1));
        let first = secrets[0].id.clone();
        for _ in 0..=MAX_ENDED {
            let Rotated { left, .. } = rotated(&secrets, "b", hour(0), start).expect("room");
            assert!(left.gone.is_empty(), "each can be removed by its owner");
            secrets = left.secrets;
        }
        let Rotated { left, .. } = rotated(&secrets, "b", hour(0), start + Duration::from_millis(1)).expect("room");
        assert_eq!(left.gone, [first.to_string()]);
        assert_eq!(left.secrets.len(), MAX_SECRETS + MAX_ENDED);
    }

    #[test]
    fn only_a_secret_that_was_accepted_until_now_is_one_that_is_replaced() {
        let both = added(&[secret("a", after(0))], "b", hour(1), after(1));
        let ended = without(&application(both.clone()), &both[0].id, after(3)).expect("it is there").secrets;
        assert_eq!(rotated(&ended, "c", hour(1), after(4)).expect("room").previous_ends, None);
    }

    #[test]
    fn a_secret_that_will_end_is_no_access_that_stays() {
        let first = secret("a", after(0));
        let both = added(slice::from_ref(&first), "b", hour(2), after(1));
        let new = both[0].id.clone();
        let both = application(both);
        assert!(
            without(&both, &new, after(2)).is_some_and(|left| left.will_be_nothing()),
            "the older one ends at three"
        );
        assert!(without(&both, &first.id, after(2)).is_some_and(|left| !left.will_be_nothing()));
    }

    proptest! {
        #[test]
        fn however_often_secrets_come_and_go_two_are_accepted_at_most_and_none_is_forgotten_with_its_tokens(
            steps in proptest::collection::vec((0u64..40, 0u64..168, proptest::option::of(0usize..9)), 1..40)
        ) {
            let (mut secrets, mut hours) = (vec![secret("first", after(0))], 0);
            for (pause, overlap, removed) in steps {
                // Many at the same hour, and now and then a long pause.
                hours += pause.saturating_sub(30);
                let now = after(hours);
                let id = removed.and_then(|place| secrets.get(place)).map(|secret| secret.id.clone());
                let left = match id {
                    Some(id) => without(&application(secrets.clone()), &id, now),
                    None => match rotated(&secrets, "x", hour(overlap), now) {
                        Ok(Rotated { left, .. }) => {
                            prop_assert!(left.secrets[0].expires_date.is_none());
                            Some(left)
                        }
                        Err(TooMany(end)) => {
                            prop_assert!(end > now && end <= now + hour(168));
                            None
                        }
                    },
                };
                let Some(left) = left else { continue };
                for known in secrets.iter().filter(|secret| secret.is_kept(now)) {
                    let stays = left.secrets.iter().any(|secret| secret.id == known.id);
                    let goes = left.gone.contains(&known.id.to_string());
                    prop_assert!(stays != goes, "each is kept, or its tokens end");
                }
                secrets = left.secrets;
                prop_assert!(secrets.len() <= MAX_SECRETS + MAX_ENDED);
                prop_assert!(secrets.iter().filter(|secret| secret.is_live(now)).count() <= MAX_SECRETS);
                prop_assert!(secrets.iter().skip(1).all(|old| old.expires_date.is_some()));
            }
        }
    }
}
