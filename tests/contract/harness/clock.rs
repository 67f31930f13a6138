//! The wall clock, and times in the service's format.

use jiff::Timestamp;
use serde_json::Value;

/// A time before any test begins, such as the due time of the deliveries that a sweep finds first.
pub const LONG_AGO: &str = "2026-01-01T00:00:00.000Z";

/// The current time, in seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the bundle under test reads the same clock")]
pub fn now() -> i64 {
    Timestamp::now().as_second()
}

/// The beginning of the current window of this many seconds, such as of this minute, in seconds since 1970. The clock is
/// read once: a second may pass between any two readings.
pub fn window_start(seconds: i64) -> i64 {
    let now = now();
    now - now % seconds
}

/// A time in a response.
pub fn time(value: &Value) -> Timestamp {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("not a time: {value}"))
}
