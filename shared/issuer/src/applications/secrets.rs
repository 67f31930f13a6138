//! The secrets of an application, one after the other, without a moment in which it has none: the new one is accepted at
//! once, and the one that it replaces beside it for as long as its owner wants.

use std::time::Duration;

use http::header::CACHE_CONTROL;
use serde::Serialize;

use super::{
    Application, Applications, ClientSecret, client_secret, credential_removal::Left, grants,
    register::spend_on_credentials, store::Changed,
};
use crate::oauth::pepper::Pepper;
use base::{
    clock::{SharedClock, Time},
    ids::ClientSecretId,
    random::SharedRandom,
};
use gate::{Call, Reply};
use problem::{JsonBody, Problem};
use storage::allowance::Allowances;

/// How many secrets may be accepted at once.
pub const MAX_SECRETS: usize = 2;
/// For how long the old secret is accepted beside the new one, unless its owner says otherwise.
const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest that may be said, in seconds: seven days.
const MAX_OVERLAP: u32 = 7 * 24 * 60 * 60;

/// Everything that adding a secret needs.
pub struct SecretAddition {
    /// Where applications are kept.
    pub applications: Applications,
    /// How many may be made.
    pub allowances: Allowances,
    /// What secrets are hashed with.
    pub pepper: Pepper,
    /// The clock.
    pub clock: SharedClock,
    /// The dice.
    pub random: SharedRandom,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Added<'a> {
    client_id: &'a str,
    secret_id: &'a ClientSecretId,
    client_secret: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret_expires_date: Option<Time>,
}

/// As many secrets are accepted as may be; the first of them ends then.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany(pub Time);

impl SecretAddition {
    /// Answers a request for a new secret.
    pub async fn add(&self, call: &Call) -> Result<Reply, Problem> {
        let overlap = overlap(&call.body)?;
        let application = self.applications.of_path(call).await?;
        grants::check_of(call, &application)?;
        let (now, secret) = (self.clock.now(), client_secret::fresh(&*self.random));
        let new = ClientSecret::of(&secret, &*self.pepper.get().await?, now, &*self.random);
        call.notes.subject(&format!("{}/{}", application.client_id, new.id));
        let secrets = with_new(&application, new, overlap, now)
            .map_err(|TooMany(oldest_ends)| Problem::too_many_client_secrets(MAX_SECRETS, oldest_ends))?;
        spend_on_credentials(&self.allowances, call.entity(), 1, now).await?;
        match self.applications.change_credentials(&application, &secrets, &application.keys, now).await? {
            Changed::Lost => Err(self.applications.lost(call).await),
            Changed::Yes => {
                let added = Added {
                    client_id: &application.client_id,
                    secret_id: &secrets[0].id,
                    client_secret: secret.expose(),
                    previous_secret_expires_date: secrets.get(1).and_then(|previous| previous.expires_date),
                };
                Ok(Reply::ok(&added)?.with_header(CACHE_CONTROL, "no-store"))
            }
        }
    }
}

/// For how long the old secret is to be accepted beside the new one.
fn overlap(body: &[u8]) -> Result<Duration, Problem> {
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

/// The secrets once a new one has taken the first place. The one that it replaces ends after the overlap, or earlier if it did
/// so before; those that have ended go.
pub fn with_new(
    application: &Application,
    new: ClientSecret,
    overlap: Duration,
    now: Time,
) -> Result<Vec<ClientSecret>, TooMany> {
    let live: Vec<_> = application.live_secrets(now).collect();
    if live.len() >= MAX_SECRETS {
        let ends = live.iter().filter_map(|secret| secret.expires_date).min();
        return Err(TooMany(ends.unwrap_or(now))); // the older of two has an end, always
    }
    let previous = live.into_iter().map(|secret| {
        let end = secret.expires_date.map_or(now + overlap, |end| end.min(now + overlap));
        ClientSecret { expires_date: Some(end), ..secret.clone() }
    });
    Ok([new].into_iter().chain(previous).collect())
}

/// The credentials that remain without this secret and without secrets that have ended; `None` when the application has no such
/// secret. A secret that has ended can be removed for as long as it is kept, since its tokens may still be valid.
pub fn without(application: &Application, id: &ClientSecretId, now: Time) -> Option<Left> {
    let (mut gone, left): (Vec<_>, Vec<_>) = application.secrets.iter().cloned().partition(|secret| secret.id == *id);
    let gone = gone.pop()?.id.to_string();
    let secrets = left.into_iter().filter(|secret| secret.is_live(now)).collect();
    Some(Left { secrets, keys: application.keys.clone(), gone })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applications::new_application::NewApplication;
    use auth::{entity::Entities, scope::Scopes};
    use base::testing::CountingRandom;
    use proptest::prelude::*;
    use storage::secrets::{SecretBytes, SecretText};

    fn after(hours: u64) -> Time {
        Time::from_millis(1_795_167_900_123) + hour(hours)
    }

    fn hour(hours: u64) -> Duration {
        Duration::from_secs(hours * 60 * 60)
    }

    fn secret(text: &str, now: Time) -> ClientSecret {
        ClientSecret::of(&SecretText::new(text), &SecretBytes::new(vec![1; 32]), now, &CountingRandom::default())
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

    #[test]
    fn the_old_secret_ends_after_the_overlap_or_when_it_would_have() {
        let first = secret("a", after(0));
        let both = with_new(&application(vec![first.clone()]), secret("b", after(1)), hour(2), after(1)).expect("room");
        assert_eq!(both[1], ClientSecret { expires_date: Some(after(3)), ..first.clone() });
        assert!(both[0].expires_date.is_none());

        let ending = application(vec![ClientSecret { expires_date: Some(after(2)), ..first }]);
        let both = with_new(&ending, secret("b", after(1)), hour(24), after(1)).expect("room");
        assert_eq!(both[1].expires_date, Some(after(2)));
    }

    #[test]
    fn without_an_overlap_the_old_secret_ends_at_that_very_moment() {
        let both = with_new(&application(vec![secret("a", after(0))]), secret("b", after(1)), hour(0), after(1));
        let both = both.expect("room");
        assert!(both[0].is_live(after(1)) && !both[1].is_live(after(1)));
    }

    #[test]
    fn a_secret_too_many_is_told_when_there_is_room() {
        let both = with_new(&application(vec![secret("a", after(0))]), secret("b", after(0)), hour(24), after(0));
        let both = application(both.expect("room"));
        assert_eq!(with_new(&both, secret("c", after(1)), hour(1), after(1)), Err(TooMany(after(24))));
        assert_eq!(with_new(&both, secret("c", after(24)), hour(1), after(24)).expect("room").len(), 2);
    }

    #[test]
    fn a_secret_can_go_for_as_long_as_it_is_kept() {
        let (first, other) = (secret("a", after(0)), secret("c", after(9)));
        let both = with_new(&application(vec![first.clone()]), secret("b", after(1)), hour(2), after(1)).expect("room");
        let new = both[0].clone();
        let both = application(both);
        let left = |id: &ClientSecretId, now| without(&both, id, now).map(|left| (left.secrets, left.gone));
        let text = |id: &ClientSecretId| id.to_string();
        assert_eq!(left(&first.id, after(2)), Some((vec![new.clone()], text(&first.id))));
        assert_eq!(left(&first.id, after(3)), Some((vec![new.clone()], text(&first.id))), "although it has ended");
        assert_eq!(left(&new.id, after(3)), Some((Vec::new(), text(&new.id))));
        assert_eq!(left(&other.id, after(2)), None);
        assert!(without(&both, &new.id, after(3)).is_some_and(|left| left.is_nothing(after(3))));
        assert!(without(&both, &new.id, after(2)).is_some_and(|left| !left.is_nothing(after(2))));
    }

    #[test]
    fn a_secret_that_will_end_is_no_access_that_stays() {
        let first = secret("a", after(0));
        let both = with_new(&application(vec![first.clone()]), secret("b", after(1)), hour(2), after(1)).expect("room");
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
        fn however_often_one_is_added_two_are_accepted_at_most_and_the_newest_has_no_end(
            steps in proptest::collection::vec((0u64..40, 0u64..168), 1..30)
        ) {
            let (mut secrets, mut hours) = (Vec::new(), 0);
            for (pause, overlap) in steps {
                hours += pause;
                let now = after(hours);
                match with_new(&application(secrets.clone()), secret("x", now), hour(overlap), now) {
                    Ok(now_on) => {
                        prop_assert!(now_on.iter().filter(|secret| secret.is_live(now)).count() <= MAX_SECRETS);
                        prop_assert!(now_on[0].expires_date.is_none());
                        prop_assert!(now_on[1..].iter().all(|old| old.expires_date.is_some()));
                        secrets = now_on;
                    }
                    Err(TooMany(end)) => prop_assert!(end > now && end <= now + hour(168)),
                }
            }
        }
    }
}
