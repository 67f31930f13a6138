//! Why deliveries do not arrive, and how to fix it: one table of causes for people and agents. The table is
//! `advice.json`, which the panel reads as well.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::deliveries::state::attempt::{Attempt, ErrorCode};

/// Reasons why deliveries do not arrive, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The webhook is not enabled.
    Disabled,
    /// Its owner paused it.
    PausedByOwner,
    /// Its breaker is open.
    Paused,
    /// The preceding delivery about the same subject is not final.
    Held,
    /// It is a pull webhook, and no reader fetches its deliveries.
    Unread,
    /// The webhook receives more deliveries than its rate limit allows.
    RateLimited,
    /// The webhook's filter excludes events.
    Filtered,
    /// The host has no address.
    Dns,
    /// No connection was made, or it broke.
    Connect,
    /// TLS failed.
    Tls,
    /// The exchange took too long.
    Timeout,
    /// Connecting to the address is not allowed.
    Blocked,
    /// The reader of a feed reported a failure.
    Reported,
    /// No reader of the feed answered in time.
    Unconfirmed,
    /// A fault of the service interrupted the attempt.
    Interrupted,
    /// A status from 300 to 399.
    Redirected,
    /// 401, 403 or 407.
    Refused,
    /// 404 or 405.
    NotThere,
    /// 410.
    Gone,
    /// 413.
    TooLarge,
    /// 429.
    TooMany,
    /// Any other status from 400 to 499.
    Rejected,
    /// 502, 503 or 504.
    Unavailable,
    /// Any other status from 500 to 599.
    Broken,
    /// Any other status.
    Unusual,
}

/// A cause in words, for people and for programs that talk to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The stable code of the cause.
    pub cause: &'static str,
    /// Its meaning, in a sentence or two.
    pub meaning: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

/// A row of the table. The first row that contains a status gives its cause.
#[derive(Debug, Deserialize)]
struct Row {
    cause: &'static str,
    /// The first and the last status of each range.
    #[serde(default)]
    statuses: Vec<(u16, u16)>,
    meaning: &'static str,
    remedy: &'static str,
}

static TABLE: LazyLock<Vec<Row>> =
    LazyLock::new(|| serde_json::from_str(include_str!("advice.json")).expect("a test reads the compiled-in table"));

impl Cause {
    /// All causes: first those that block a whole webhook or a delivery, then those of failed attempts.
    pub const ALL: &[Cause] = &[
        Self::Disabled,
        Self::PausedByOwner,
        Self::Paused,
        Self::Held,
        Self::Unread,
        Self::RateLimited,
        Self::Filtered,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Timeout,
        Self::Blocked,
        Self::Reported,
        Self::Unconfirmed,
        Self::Interrupted,
        Self::Redirected,
        Self::Refused,
        Self::NotThere,
        Self::Gone,
        Self::TooLarge,
        Self::TooMany,
        Self::Rejected,
        Self::Unavailable,
        Self::Broken,
        Self::Unusual,
    ];

    /// The meaning of the cause, and its remedy.
    pub fn advice(self) -> Advice {
        let Row { cause, meaning, remedy, .. } = TABLE[self as usize];
        Advice { cause, meaning, remedy }
    }

    /// Why an attempt failed; `None` if it succeeded.
    pub fn of_attempt(attempt: &Attempt) -> Option<Self> {
        Self::of_failure(attempt.http_status, attempt.error.as_deref().and_then(ErrorCode::of))
    }

    /// The cause of a failed attempt with this status, or with this error if it never completed.
    pub fn of_failure(http_status: Option<u16>, error: Option<ErrorCode>) -> Option<Self> {
        match (http_status, error) {
            (Some(status), _) => Self::of_status(status),
            (None, error) => error.map(Self::of_error),
        }
    }

    fn of_status(status: u16) -> Option<Self> {
        if (200..300).contains(&status) {
            return None;
        }
        let has_it = |row: &Row| row.statuses.iter().any(|&(first, last)| (first..=last).contains(&status));
        let row = TABLE.iter().position(has_it);
        row.and_then(|row| Self::ALL.get(row)).copied().or(Some(Self::Unusual))
    }

    const fn of_error(code: ErrorCode) -> Self {
        match code {
            ErrorCode::Dns => Self::Dns,
            ErrorCode::Connect => Self::Connect,
            ErrorCode::Tls => Self::Tls,
            ErrorCode::Timeout => Self::Timeout,
            ErrorCode::Blocked => Self::Blocked,
            ErrorCode::Reported => Self::Reported,
            ErrorCode::Unconfirmed => Self::Unconfirmed,
            ErrorCode::Interrupted => Self::Interrupted,
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.advice().cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outbound::AttemptError;
    use std::collections::HashSet;

    #[test]
    fn the_table_has_the_causes_in_their_order() {
        let codes: Vec<_> = TABLE.iter().map(|row| row.cause.replace('-', "")).collect();
        let causes: Vec<_> = Cause::ALL.iter().map(|cause| format!("{cause:?}").to_lowercase()).collect();
        assert_eq!(codes, causes);
    }

    #[test]
    fn every_cause_has_a_unique_code_a_meaning_and_a_remedy() {
        let codes: HashSet<_> = Cause::ALL.iter().map(|cause| cause.advice().cause).collect();
        assert_eq!(codes.len(), Cause::ALL.len());
        for Advice { cause, meaning, remedy } in Cause::ALL.iter().map(|cause| cause.advice()) {
            assert!(cause.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{cause}");
            for text in [meaning, remedy] {
                assert!(text.ends_with('.') && (40..450).contains(&text.len()), "{cause}: {text}");
            }
        }
    }

    #[test]
    fn an_attempt_that_never_completed_has_the_cause_of_its_code() {
        for (error, cause) in [
            (AttemptError::Dns("x"), Cause::Dns),
            (AttemptError::Connect("x"), Cause::Connect),
            (AttemptError::Tls("x"), Cause::Tls),
            (AttemptError::Timeout("dns: x"), Cause::Timeout),
            (AttemptError::Blocked("x"), Cause::Blocked),
        ] {
            let error = error.to_string();
            assert_eq!(Cause::of_failure(None, ErrorCode::of(&error)), Some(cause), "{error}");
            assert!(error.starts_with(cause.advice().cause), "{error}");
        }
    }

    #[test]
    fn every_status_but_a_success_has_a_cause() {
        for status in 100..=999 {
            let succeeded = (200..300).contains(&status);
            assert_eq!(Cause::of_failure(Some(status), None).is_none(), succeeded, "{status}");
        }
        for (status, cause) in [
            (100, Cause::Unusual),
            (301, Cause::Redirected),
            (400, Cause::Rejected),
            (401, Cause::Refused),
            (404, Cause::NotThere),
            (410, Cause::Gone),
            (413, Cause::TooLarge),
            (422, Cause::Rejected),
            (429, Cause::TooMany),
            (500, Cause::Broken),
            (503, Cause::Unavailable),
            (505, Cause::Broken),
            (999, Cause::Unusual),
        ] {
            assert_eq!(Cause::of_failure(Some(status), None), Some(cause), "{status}");
        }
        assert_eq!(Cause::of_failure(None, None), None, "no attempt has been made");
    }
}
