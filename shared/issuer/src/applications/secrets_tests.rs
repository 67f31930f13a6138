//! An application's secrets: overlaps, ends, limits, and removals.

use std::slice;

use super::*;
use crate::applications::new_application::NewApplication;
use auth::{Entities, Scopes};
use base::SystemRandom;
use proptest::prelude::*;
use storage::SecretBytes;

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

/// The secrets after adding a new one, when there is room for it.
fn added(secrets: &[ClientSecret], text: &str, overlap: Duration, now: Time) -> Vec<ClientSecret> {
    rotated(secrets, text, overlap, now).expect("room").left.secrets
}

fn rotated(secrets: &[ClientSecret], text: &str, overlap: Duration, now: Time) -> Result<Rotated, ApplicationError> {
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
fn the_refusal_of_a_third_secret_says_when_there_is_room() {
    let both = added(&[secret("a", after(0))], "b", hour(24), after(0));
    let refused = rotated(&both, "c", hour(1), after(1));
    assert!(matches!(refused, Err(ApplicationError::TooManySecrets(end)) if end == after(24)), "{refused:?}");
    assert_eq!(added(&both, "c", hour(1), after(24)).len(), 3, "the first has ended, and is kept");
}

#[test]
fn a_secret_can_be_removed_for_as_long_as_it_is_kept() {
    let first = secret("a", after(0));
    let other = secret("c", after(9));
    let both = added(slice::from_ref(&first), "b", hour(2), after(1));
    let new = both[0].clone();
    let both = application(both);
    let left = |id: &ClientSecretId, now| without(&both, id, now).map(|left| (left.secrets, left.gone));
    let gone = |id: &ClientSecretId| vec![id.to_string()];
    assert_eq!(left(&first.id, after(2)), Some((vec![new.clone()], gone(&first.id))));
    assert_eq!(left(&first.id, after(3)), Some((vec![new.clone()], gone(&first.id))), "although it has ended");
    assert_eq!(left(&first.id, after(4)), Some((vec![new.clone()], gone(&first.id))), "for as long as tokens live");
    assert_eq!(left(&first.id, after(5)), None);
    assert_eq!(left(&new.id, after(3)), Some((vec![both.secrets[1].clone()], gone(&new.id))));
    assert_eq!(left(&new.id, after(5)), Some((Vec::new(), gone(&new.id))));
    assert_eq!(left(&other.id, after(2)), None);
    assert!(without(&both, &new.id, after(3)).is_some_and(|left| left.gives_no_tokens(after(3))));
    assert!(without(&both, &new.id, after(2)).is_some_and(|left| !left.gives_no_tokens(after(2))));
}

#[test]
fn an_ended_secret_is_kept_while_its_tokens_may_be_valid() {
    let first = secret("a", after(0));
    let second = added(slice::from_ref(&first), "b", hour(0), after(1));
    let is_there = |secrets: &[ClientSecret]| secrets.iter().any(|secret| secret.id == first.id);
    let third = added(&second, "c", hour(30), after(2));
    assert!(is_there(&third), "tokens issued with it live for an hour and five minutes");
    let removed = without(&application(third.clone()), &second[0].id, after(2)).expect("it is there");
    assert!(is_there(&removed.secrets), "another's removal is not its own");
    let fourth = rotated(&second, "c", hour(0), after(3)).expect("room").left;
    assert!(!is_there(&fourth.secrets) && fourth.gone.is_empty(), "none of its tokens is left");
}

#[test]
fn the_secret_that_ended_first_is_removed_with_its_tokens_at_the_limit() {
    let mut secrets = vec![secret("a", after(0))];
    let start = after(1);
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
fn an_ended_secret_is_not_reported_as_replaced() {
    let both = added(&[secret("a", after(0))], "b", hour(1), after(1));
    let ended = without(&application(both.clone()), &both[0].id, after(3)).expect("it is there").secrets;
    assert_eq!(rotated(&ended, "c", hour(1), after(4)).expect("room").previous_ends, None);
}

#[test]
fn a_secret_with_an_end_is_not_permanent_access() {
    let first = secret("a", after(0));
    let both = added(slice::from_ref(&first), "b", hour(2), after(1));
    let new = both[0].id.clone();
    let both = application(both);
    assert!(
        without(&both, &new, after(2)).is_some_and(|left| left.will_give_no_tokens()),
        "the older one ends at three"
    );
    assert!(without(&both, &first.id, after(2)).is_some_and(|left| !left.will_give_no_tokens()));
}

proptest! {
    #[test]
    fn at_most_two_secrets_are_live_and_none_is_dropped_with_live_tokens(
        steps in proptest::collection::vec((0u64..40, 0u64..168, proptest::option::of(0usize..9)), 1..40)
    ) {
        let mut secrets = vec![secret("first", after(0))];
        let mut hours = 0;
        for (pause, overlap, removed) in steps {
            // Many additions fall in the same hour, with an occasional long pause.
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
                    Err(ApplicationError::TooManySecrets(end)) => {
                        prop_assert!(end > now && end <= now + hour(168));
                        None
                    }
                    Err(other) => panic!("{other}"),
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
