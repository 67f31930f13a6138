//! Waiting for a state, never for a time.

use std::time::{Duration, Instant};

/// More than anything here ever takes on a busy machine: only a fault waits so long.
pub const LONG: Duration = Duration::from_secs(90);

const PAUSE: Duration = Duration::from_millis(50);

/// Looks again and again until there is something; fails with what was waited for.
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
