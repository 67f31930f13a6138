//! Waiting for a state, never for a duration.

use std::time::{Duration, Instant};

/// The timeout for all tests, which an operation reaches only because of a fault. It must be long enough even on a
/// machine that is many times slower or stalls for seconds; only failing tests wait that long.
pub const LONG: Duration = Duration::from_secs(5 * 60);

const PAUSE: Duration = Duration::from_millis(50);

/// Polls until `look` returns a value; panics with `what` once the limit is exceeded.
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
