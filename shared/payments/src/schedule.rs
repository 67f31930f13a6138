//! The due times of connections. Pure functions: time and randomness are arguments.

use std::time::Duration;

use base::Time;

/// The wait after the first failure; it doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// The shortest wait, for a token that is about to expire.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// The longest wait after a failure, even if the provider requests a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// When new tokens are refreshed; `None` for never.
///
/// The time is between half and three quarters of the tokens' lifetime, depending on `dice` (0 to 1), so that
/// connections created together are not refreshed together. This leaves enough time for retries. The time is earlier if
/// the provider requires it. Tokens that cannot be refreshed are due when they expire.
pub fn refresh_at(
    now: Time,
    expires: Option<Time>,
    at_most_after: Option<Duration>,
    refreshable: bool,
    dice: f64,
) -> Option<Time> {
    if !refreshable {
        return expires;
    }
    let in_life = expires.map(|end| end.since(now).mul_f64(0.5 + 0.25 * dice));
    let wait = in_life.into_iter().chain(at_most_after).min()?;
    Some(now + wait)
}

/// When tokens refreshed at `now` expire, if the provider does not say: they live as long as the previous tokens, which
/// were issued at `given_before`.
pub fn expiry_as_before(now: Time, end_before: Option<Time>, given_before: Time) -> Option<Time> {
    let life = end_before?.since(given_before);
    (!life.is_zero()).then(|| now + life)
}

/// When a refresh that failed at `now` is retried, after `failures_before` consecutive earlier failures.
///
/// The pause is a minute, then doubles each time, up to an hour. While the token is valid, it is at most half of the
/// remaining lifetime, so that a long pause does not cost the connection. `Retry-After`, up to an hour, takes
/// precedence if it is longer.
pub fn retry_at(failures_before: u32, now: Time, expires: Option<Time>, retry_after: Option<Duration>) -> Time {
    let doubled = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(failures_before.min(16))).min(LONGEST_PAUSE);
    let left = expires.map(|end| end.since(now)).filter(|left| !left.is_zero());
    let pause = left.map_or(doubled, |left| doubled.min((left / 2).max(SHORTEST_PAUSE)));
    now + pause.max(retry_after.unwrap_or_default().min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Time = Time::from_millis(1_795_167_900_123);
    const HOUR: Duration = Duration::from_secs(60 * 60);
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn wait(at: Option<Time>) -> Duration {
        at.expect("a time").since(NOW)
    }

    #[test]
    fn tokens_are_refreshed_between_half_and_three_quarters_of_their_life() {
        let at = |dice| wait(refresh_at(NOW, Some(NOW + HOUR), None, true, dice)).as_secs();
        assert_eq!([at(0.0), at(0.5), at(1.0)], [1800, 2250, 2700]);
    }

    #[test]
    fn a_provider_that_requires_it_is_asked_more_often() {
        let at = |life| wait(refresh_at(NOW, life, Some(7 * DAY), true, 0.0));
        assert_eq!(at(Some(NOW + 30 * DAY)), 7 * DAY);
        assert_eq!(at(Some(NOW + 10 * DAY)), 5 * DAY);
        assert_eq!(at(None), 7 * DAY);
    }

    #[test]
    fn without_an_end_or_a_providers_rule_tokens_are_never_refreshed() {
        assert_eq!(refresh_at(NOW, None, None, true, 0.5), None);
        assert_eq!(refresh_at(NOW, None, Some(DAY), false, 0.5), None);
        // Without a refresh token, they are due when they expire.
        assert_eq!(refresh_at(NOW, Some(NOW + HOUR), Some(DAY), false, 0.5), Some(NOW + HOUR));
    }

    #[test]
    fn without_a_new_end_tokens_live_as_long_as_before() {
        assert_eq!(expiry_as_before(NOW + DAY, Some(NOW + HOUR), NOW), Some(NOW + DAY + HOUR));
        assert_eq!(expiry_as_before(NOW, None, NOW), None);
        assert_eq!(expiry_as_before(NOW, Some(NOW), NOW + HOUR), None);
    }

    #[test]
    fn after_failures_the_pause_doubles_up_to_an_hour() {
        let pauses: Vec<_> =
            (0..8).map(|failures| retry_at(failures, NOW, None, None).since(NOW).as_secs() / 60).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(retry_at(u32::MAX, NOW, None, None).since(NOW), HOUR);
    }

    #[test]
    fn a_pause_leaves_half_of_the_remaining_life_of_the_token() {
        let pause = |left: u64, failures| {
            let end = NOW + Duration::from_secs(left);
            retry_at(failures, NOW, Some(end), None).since(NOW).as_secs()
        };
        assert_eq!(pause(600, 6), 300);
        assert_eq!(pause(600, 0), 60);
        assert_eq!(pause(30, 6), 15, "a short life is not waited out");
        assert_eq!(pause(1, 6), 1, "at most once a second");
        assert_eq!(pause(0, 6), 3600, "an expired token waits like the others");
        assert_eq!(retry_at(6, NOW + HOUR, Some(NOW), None).since(NOW + HOUR), HOUR);
    }

    #[test]
    fn a_retry_after_of_the_provider_is_limited_to_an_hour() {
        let pause = |seconds| retry_at(0, NOW, None, Some(Duration::from_secs(seconds))).since(NOW).as_secs();
        assert_eq!([pause(5), pause(600), pause(100_000)], [60, 600, 3600]);
        let close = retry_at(0, NOW, Some(NOW + 2 * FIRST_PAUSE), Some(10 * FIRST_PAUSE));
        assert_eq!(close.since(NOW), 10 * FIRST_PAUSE);
    }

    proptest! {
        #[test]
        fn a_refresh_is_never_late_and_never_at_once(life in 1u64..400_000_000, cap in proptest::option::of(1u64..10_000_000), dice in 0.0..1.0f64) {
            let life = Duration::from_secs(life);
            let cap = cap.map(Duration::from_secs);
            let wait = wait(refresh_at(NOW, Some(NOW + life), cap, true, dice));
            prop_assert!(wait <= life.mul_f64(0.75) && cap.is_none_or(|cap| wait <= cap));
            prop_assert!(!wait.is_zero());
        }
    }
}
