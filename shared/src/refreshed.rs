//! What is read once and used for a while: kept in memory, read again when it is old, and kept still for as long as it
//! cannot be read again.

use std::{error::Error, future::Future, sync::Arc, time::Duration};

use tokio::sync::Mutex;

use crate::{
    clock::{SharedClock, Time},
    logging,
};

/// How long what was read is used before it is read again, so that a rotation reaches warm functions.
const REFRESH_AFTER: Duration = Duration::from_secs(300);

/// Something that can be read.
pub trait Source: Send + Sync {
    /// What is read.
    type Value: Send + Sync;
    /// Why it could not be read.
    type Error: Error + Send + 'static;

    /// Reads it.
    fn load(&self) -> impl Future<Output = Result<Self::Value, Self::Error>> + Send;
}

/// What was read last.
pub struct Refreshed<S: Source> {
    source: S,
    clock: SharedClock,
    cached: Mutex<Option<(Time, Arc<S::Value>)>>,
}

impl<S: Source> Refreshed<S> {
    /// Reads at once, so that the first request need not. A failure is logged, and tried again by the first request.
    pub async fn warm(source: S, clock: SharedClock) -> Self {
        let refreshed = Self { source, clock, cached: Mutex::new(None) };
        if let Err(error) = refreshed.get().await {
            tracing::warn!(error = %logging::chain(&error), "what is needed could not be read at the start");
        }
        refreshed
    }

    /// What was read last, if it is not too old; else what is read now; else, for as long as that fails, the old.
    pub async fn get(&self) -> Result<Arc<S::Value>, S::Error> {
        let mut cached = self.cached.lock().await;
        let now = self.clock.now();
        if let Some((read, value)) = &*cached
            && now.since(*read) < REFRESH_AFTER
        {
            return Ok(value.clone());
        }
        match (self.source.load().await, &*cached) {
            (Ok(value), _) => {
                let value = Arc::new(value);
                *cached = Some((now, value.clone()));
                Ok(value)
            }
            (Err(error), Some((_, old))) => {
                tracing::warn!(error = %logging::chain(&error), "what is needed could not be refreshed; the old is used");
                Ok(old.clone())
            }
            (Err(error), None) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FixedClock;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Gives 1, then fails, then gives 3.
    #[derive(Default)]
    struct Counting(AtomicU32);

    impl Source for Counting {
        type Value = u32;
        type Error = std::fmt::Error;

        async fn load(&self) -> Result<u32, std::fmt::Error> {
            match self.0.fetch_add(1, Ordering::SeqCst) + 1 {
                2 => Err(std::fmt::Error),
                count => Ok(count),
            }
        }
    }

    #[tokio::test]
    async fn the_old_is_used_until_it_is_old_and_while_nothing_new_can_be_read() {
        let clock = FixedClock::at(Time::from_millis(0));
        let refreshed = Refreshed::warm(Counting::default(), Arc::new(clock.clone())).await;
        assert_eq!(*refreshed.get().await.expect("read at the start"), 1);
        clock.set(Time::from_millis(299_999));
        assert_eq!(*refreshed.get().await.expect("still young"), 1);
        clock.set(Time::from_millis(300_000));
        assert_eq!(*refreshed.get().await.expect("kept, since reading fails"), 1);
        assert_eq!(*refreshed.get().await.expect("read again"), 3);
    }
}
