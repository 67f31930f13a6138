//! The wall clock, as third parties have one of their own.

use jiff::{SignedDuration, Timestamp};

/// The time.
#[expect(clippy::disallowed_methods, reason = "a third party does not read the service's clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// The time, in seconds since 1970.
pub(crate) fn seconds() -> i64 {
    now().as_second()
}

/// The time so many seconds from now, as RFC 3339 writes it, in whole seconds.
pub(crate) fn written_in(seconds: u32) -> String {
    let then = now() + SignedDuration::from_secs(seconds.into());
    then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
