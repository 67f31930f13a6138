//! The time of the next attempt, if any: pure functions of outcome, time and a random number.

use std::{str::FromStr, time::Duration};

use http::StatusCode;

use crate::subscriptions::attempt_settings::Retries;
use base::{Environment, FromEnvironment, Time, wait, wait::Wait};
use outbound::{AttemptError, HttpResponse};

/// The longest schedule, and the longest single wait.
const LONGEST: Duration = Duration::from_secs(45 * 24 * 60 * 60);

/// The length of a short schedule, without jitter and without the duration of the attempts.
const SHORT: Duration = Duration::from_secs(60 * 60);

/// The maximum jitter, as a share of the wait, so that attempts do not all reach an endpoint at once.
const JITTER: f64 = 0.1;

/// The wait before each attempt, counted from the previous one; the first wait counts from the publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySchedule(Vec<Duration>);

/// The step after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The endpoint accepted the event.
    Delivered,
    /// The next attempt is due at this time.
    RetryAt(Time),
    /// The webhook's feed offers the delivery again from this time on.
    ReadFrom(Time),
    /// The attempt was the last.
    Exhausted,
    /// The endpoint responded with 410: it is gone for good and wants no more events.
    Gone,
    /// The event was erased during the attempt.
    Cancelled,
}

impl Next {
    /// The step's name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::RetryAt(_) | Self::ReadFrom(_) => "retry",
            Self::Exhausted => "exhausted",
            Self::Gone => "gone",
            Self::Cancelled => "cancelled",
        }
    }

    /// The time of the next attempt, if there is one.
    pub fn retry_at(self) -> Option<Time> {
        match self {
            Self::RetryAt(time) | Self::ReadFrom(time) => Some(time),
            _ => None,
        }
    }
}

impl Default for RetrySchedule {
    /// The contract's schedule: 10 attempts over about 75 hours.
    fn default() -> Self {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        let waits = [0, 5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];
        Self(waits.map(Duration::from_secs).to_vec())
    }
}

impl RetrySchedule {
    /// The part of this schedule that a webhook with this `retries` setting uses: at least the first attempt.
    pub fn of_webhook(&self, retries: Retries) -> Self {
        let mut total = Duration::ZERO;
        let is_within_short = |wait: &&Duration| {
            total += **wait;
            total <= SHORT
        };
        let attempts = match retries {
            Retries::Default => self.0.len(),
            Retries::Short => self.0.iter().take_while(is_within_short).count().max(1),
            Retries::None => 1,
        };
        Self(self.0.iter().take(attempts).copied().collect())
    }

    /// The maximum number of attempts.
    pub fn attempts(&self) -> usize {
        self.0.len()
    }

    /// The longest duration of a delivery whose endpoint does not ask for pauses.
    pub fn whole(&self) -> Duration {
        jittered(self.0.iter().sum(), 1.0)
    }

    /// The wait before the first attempt. `dice` is at least 0 and less than 1.
    pub fn first_wait(&self, dice: f64) -> Duration {
        self.0.first().map(|wait| jittered(*wait, dice)).unwrap_or_default()
    }

    /// The step after an attempt's outcome. `made` counts this schedule's attempts, including this one.
    pub fn next(&self, made: u32, outcome: &Result<HttpResponse, AttemptError>, now: Time, dice: f64) -> Next {
        let answer = outcome.as_ref().ok();
        match answer.map(|answer| answer.status) {
            Some(status) if status.is_success() => return Next::Delivered,
            Some(StatusCode::GONE) => return Next::Gone,
            _ => {}
        }
        let asked = answer.and_then(|answer| answer.pause_asked_for(now)).unwrap_or_default();
        self.after_failure(made, asked, now, dice)
    }

    /// The step after a failed attempt, whose endpoint asked for this pause.
    pub(crate) fn after_failure(&self, made: u32, asked: Duration, now: Time, dice: f64) -> Next {
        let wait = usize::try_from(made).ok().and_then(|made| self.0.get(made));
        wait.map_or(Next::Exhausted, |wait| Next::RetryAt(now + jittered(*wait, dice).max(asked)))
    }
}

fn jittered(wait: Duration, dice: f64) -> Duration {
    wait + wait.mul_f64(JITTER * dice)
}

/// The string is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a list of 1 to 100 waits, at most 45 days in total, such as `0s,5s,5m,2h`")]
pub struct ScheduleError;

impl FromStr for RetrySchedule {
    type Err = ScheduleError;

    /// Reads waits with a unit (`ms`, `s`, `m`, `h`, `d`), separated by commas.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let waits = text
            .split(',')
            .map(|wait| wait::parse(wait.trim()).filter(|wait| *wait <= LONGEST))
            .collect::<Option<Vec<_>>>()
            .ok_or(ScheduleError)?;
        let in_time = waits.iter().sum::<Duration>() <= LONGEST;
        if (1..=100).contains(&waits.len()) && in_time { Ok(Self(waits)) } else { Err(ScheduleError) }
    }
}

/// Retry schedule and retention of deliveries: `RETRY_SCHEDULE` and `DELIVERY_RETENTION`.
#[derive(Debug, Clone)]
pub struct ScheduleSettings {
    /// The wait before each attempt.
    pub schedule: RetrySchedule,
    /// How long a delivery is kept, with its event and its attempts; 90 days by default.
    pub retention: Duration,
}

impl FromEnvironment for ScheduleSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        const RETENTION: Wait = Wait(Duration::from_secs(90 * 24 * 60 * 60));
        let schedule = environment.parsed("RETRY_SCHEDULE", RetrySchedule::default());
        let retention = environment.parsed("DELIVERY_RETENTION", RETENTION);
        let schedule = schedule?;
        let Wait(retention) = retention?;
        // Twice the schedule leaves room for some pauses, but not for all. With a day's pause before each attempt, the
        // default schedule takes nine days; a shorter retention removes the delivery before its schedule ends.
        let least = schedule.whole() * 2;
        if retention < least {
            let value = environment.optional("DELIVERY_RETENTION").unwrap_or_default();
            let error =
                format!("less than twice the total of RETRY_SCHEDULE: it must be at least {}s", least.as_secs());
            environment.fault("DELIVERY_RETENTION", &value, &error);
            return None;
        }
        Some(Self { schedule, retention })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Time = Time::from_millis(1_795_167_900_000); // 2026-11-20T09:45:00Z, a Friday

    fn answer(status: u16, retry_after: Option<&str>) -> Result<HttpResponse, AttemptError> {
        let status = StatusCode::from_u16(status).expect("a status");
        let retry_after = retry_after.map(str::to_owned);
        Ok(HttpResponse { status, location: None, retry_after, media_type: None, body: Vec::new(), truncated: false })
    }

    fn wait(made: u32, outcome: &Result<HttpResponse, AttemptError>, dice: f64) -> Duration {
        match RetrySchedule::default().next(made, outcome, NOW, dice) {
            Next::RetryAt(time) => time.since(NOW),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_schedule_is_the_contracts() {
        let expected = [0, 5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
        assert_eq!(RetrySchedule::default(), "0s,5s,5m,30m,2h,5h,10h,14h,20h,24h".parse().expect("a schedule"));
        for (made, seconds) in expected.into_iter().enumerate().skip(1) {
            let made = u32::try_from(made).expect("small");
            assert_eq!(wait(made, &answer(500, None), 0.0), Duration::from_secs(seconds));
        }
        assert_eq!(RetrySchedule::default().next(10, &answer(500, None), NOW, 0.0), Next::Exhausted);
        let total: u64 = expected.iter().sum();
        assert_eq!(total / 3600, 75);
    }

    #[test]
    fn a_short_schedule_has_the_attempts_of_the_first_hour() {
        for (schedule, attempts) in
            [("0s,5s,5m,30m,2h,5h", 4), ("0s,30m,30m,1ms", 3), ("0s,2h", 1), ("2h,1s", 1), ("0s,200ms,1s", 3)]
        {
            let whole: RetrySchedule = schedule.parse().expect("a schedule");
            let short = whole.of_webhook(Retries::Short);
            assert_eq!((short.attempts(), &short.0[..]), (attempts, &whole.0[..attempts]), "{schedule}");
        }
        let default = RetrySchedule::default();
        assert_eq!(default.of_webhook(Retries::Default), default);
    }

    #[test]
    fn without_retries_the_first_failure_is_the_last_even_if_the_endpoint_asks_for_a_pause() {
        let none = RetrySchedule::default().of_webhook(Retries::None);
        for outcome in [answer(500, None), answer(503, Some("120")), Err(AttemptError::Timeout("x"))] {
            assert_eq!(none.next(1, &outcome, NOW, 0.0), Next::Exhausted);
        }
        assert_eq!(none.next(1, &answer(200, None), NOW, 0.0), Next::Delivered);
        assert_eq!(none.next(1, &answer(410, None), NOW, 0.0), Next::Gone);
        assert_eq!(none.next(3, &answer(500, None), NOW, 0.0), Next::Exhausted, "changed while retries waited");
    }

    #[test]
    fn only_2xx_is_a_success_and_only_410_the_end() {
        let next = |status| RetrySchedule::default().next(1, &answer(status, None), NOW, 0.0);
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(next(status), Next::Delivered, "{status}");
        }
        assert_eq!(next(410), Next::Gone);
        for status in [300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 409, 422, 429, 500, 503, 599] {
            assert!(matches!(next(status), Next::RetryAt(_)), "{status}");
        }
        assert!(matches!(RetrySchedule::default().next(1, &Err(AttemptError::Dns("x")), NOW, 0.0), Next::RetryAt(_)));
    }

    #[test]
    fn retry_after_can_only_lengthen_a_wait_and_by_a_day_at_most() {
        for (header, seconds) in [
            ("120", 120),
            (" 120 ", 120),
            ("1", 5),
            ("0", 5),
            ("-3", 5),
            ("garbage", 5),
            ("1.5", 5),
            ("121.0", 121),
            ("2026-11-20T09:47:00Z", 120),
            ("", 5),
            ("999999", 86_400),
            ("99999999999999999999999999", 5),
            ("1795168020", 5), // seconds since 1970
            ("Fri, 20 Nov 2026 09:47:00 GMT", 120),
            ("Fri, 20 Nov 2020 09:47:00 GMT", 5),
            ("Fri, 20 Nov 2099 09:47:00 GMT", 86_400),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
            ("Friday, 20-Nov-26 09:47:00 GMT", 120), // RFC 850's format, which recipients must accept too
        ] {
            for status in [429, 503] {
                assert_eq!(
                    wait(1, &answer(status, Some(header)), 0.0),
                    Duration::from_secs(seconds),
                    "{status} {header}"
                );
            }
        }
        assert_eq!(wait(1, &answer(500, Some("120")), 0.0), Duration::from_secs(5));
    }

    #[test]
    fn a_schedule_is_read_or_refused() {
        let schedule: RetrySchedule = "0s, 200ms,1m".parse().expect("a schedule");
        assert_eq!(schedule.attempts(), 3);
        assert_eq!(schedule.first_wait(0.5), Duration::ZERO);
        for bad in [
            "",
            ",",
            "5",
            "s",
            "-5s",
            "5 s",
            "5s,",
            "5w",
            "46d",
            "23d,23d",
            "99999999999999999999h",
            "1.5s",
            &["1s"; 101].join(","),
        ] {
            assert_eq!(bad.parse::<RetrySchedule>(), Err(ScheduleError), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn jitter_never_shortens_a_wait_nor_adds_more_than_a_tenth(made in 1u32..10, dice in 0.0f64..1.0) {
            let outcome = Err(AttemptError::Timeout("x"));
            let exact = wait(made, &outcome, 0.0);
            let jittered = wait(made, &outcome, dice);
            prop_assert!(jittered >= exact && jittered <= exact + exact / 10);
        }

        #[test]
        fn no_header_makes_the_reader_panic(text in "\\PC{0,40}") {
            let _ = wait(1, &answer(429, Some(&text)), 0.0);
        }

        #[test]
        fn no_text_makes_the_schedule_reader_panic(text in "[0-9smhd, .-]{0,30}") {
            let _ = text.parse::<RetrySchedule>();
        }
    }

    #[test]
    fn daily_pauses_may_outlast_the_shortest_retention() {
        let schedule = RetrySchedule::default();
        let pauses = (1..10).map(|made| wait(made, &answer(503, Some("999999")), 1.0));
        assert!(pauses.sum::<Duration>() > schedule.whole() * 2);
    }

    #[test]
    fn the_default_has_ten_attempts_and_retention_covers_twice_the_schedule() {
        use base::environment::read_from;
        assert_eq!(read_from::<ScheduleSettings>(|_| None).expect("the default").schedule.attempts(), 10);
        let error = read_from::<ScheduleSettings>(|name| (name == "RETRY_SCHEDULE").then(|| "soon".into()));
        assert!(error.expect_err("refused").0[0].starts_with("RETRY_SCHEDULE"));
        let short = read_from::<ScheduleSettings>(|name| (name == "DELIVERY_RETENTION").then(|| "1h".into()));
        assert!(short.expect_err("refused").0[0].starts_with("DELIVERY_RETENTION"));
    }
}
