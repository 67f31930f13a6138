//! The wall clock that third parties use.

use jiff::{SignedDuration, Timestamp};

/// The current time.
#[expect(clippy::disallowed_methods, reason = "a third party does not read the service's clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// The current time, in seconds since 1970.
pub(crate) fn seconds() -> i64 {
    now().as_second()
}

/// The time this many seconds from now, in RFC 3339 format with whole seconds.
pub(crate) fn written_in(seconds: u32) -> String {
    let then = now() + SignedDuration::from_secs(seconds.into());
    then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
