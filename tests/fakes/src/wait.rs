//! Waiting for a state, never for a duration.

use std::time::{Duration, Instant};

/// The patience of all tests: a timeout that no operation reaches, except after a fault. A machine that is many times
/// slower, or stalls for seconds, must not reach it either, and only a failing test waits for its end.
pub const LONG: Duration = Duration::from_secs(5 * 60);

const PAUSE: Duration = Duration::from_millis(50);

/// Polls until `look` returns a value; panics with `what` after the limit.
pub async fn until<T>(what: &str, limit: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < limit, "waited {limit:?} in vain for: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
