//! What is read once and used for a while: kept in memory, read again when it is old, and kept still for as long as it
//! cannot be read again.

use std::{
    error::Error,
    future::Future,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio::{sync::Mutex, time::timeout};

use crate::{
    clock::{SharedClock, Time},
    logging,
};

/// How long what was read is used before it is read again, so that a rotation reaches warm functions.
const REFRESH_AFTER: Duration = Duration::from_secs(300);
/// How long nothing is tried after a failure, for as long as there is something old to use.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
/// How long a request may be held up for something newer when there is something old to use.
const REFRESH_LIMIT: Duration = Duration::from_secs(2);

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
    cached: RwLock<Option<Cached<S::Value>>>,
    /// Held by the one who reads. In it, when it was last read because what there was did not do.
    reading: Mutex<Option<Time>>,
}

struct Cached<V> {
    value: Arc<V>,
    read: Time,
    /// Until then nobody tries to read again.
    rest: Time,
}

impl<S: Source> Refreshed<S> {
    /// Nothing was read yet; the first request reads.
    pub fn new(source: S, clock: SharedClock) -> Self {
        Self { source, clock, cached: RwLock::new(None), reading: Mutex::new(None) }
    }

    /// Reads at once, so that the first request need not. A failure is logged, and tried again by the first request.
    pub async fn warm(source: S, clock: SharedClock) -> Self {
        let refreshed = Self::new(source, clock);
        refreshed.warm_up().await;
        refreshed
    }

    /// Reads before the first request. A failure is logged, and tried again by the first request.
    pub async fn warm_up(&self) {
        if let Err(error) = self.get().await {
            tracing::warn!(error = %logging::chain(&error), "what is needed could not be read at the start");
        }
    }

    /// What was read last, if it is not too old; else what is read now; else, for as long as that fails, the old.
    pub async fn get(&self) -> Result<Arc<S::Value>, S::Error> {
        self.younger_than(REFRESH_AFTER).await
    }

    /// The same for somebody who wants it younger.
    ///
    /// While one reads, the others go on with the old at once, and wait only where there is none. Whoever reads gives up
    /// soon when there is something old, and then nobody tries for a while: an outage must not hold up what needs
    /// nothing new.
    pub async fn younger_than(&self, age: Duration) -> Result<Arc<S::Value>, S::Error> {
        if let Some(value) = self.usable(age) {
            return Ok(value);
        }
        let Some(old) = self.last() else {
            let _one_at_a_time = self.reading.lock().await;
            return match self.last() {
                Some(value) => Ok(value), // somebody else just read it
                None => self.source.load().await.map(|value| self.keep(value)),
            };
        };
        let Ok(_one_at_a_time) = self.reading.try_lock() else { return Ok(old) };
        match timeout(REFRESH_LIMIT, self.source.load()).await {
            Ok(Ok(value)) => Ok(self.keep(value)),
            failed => {
                let error = failed.map_or_else(
                    |late| late.to_string(),
                    |failed| failed.err().map(|error| logging::chain(&error)).unwrap_or_default(),
                );
                tracing::warn!(error, "what is needed could not be refreshed; the old is used");
                self.rest();
                Ok(old)
            }
        }
    }

    /// What was read last, if it will do; else what is read now, but for this reason not again within the pause. Whether
    /// that does is for the caller to see.
    ///
    /// Unlike those who want something younger, whoever comes here cannot go on with the old: all wait for the one who
    /// reads, and a failure is theirs.
    pub async fn suitable(
        &self,
        pause: Duration,
        does: impl Fn(&S::Value) -> bool + Send,
    ) -> Result<Arc<S::Value>, S::Error> {
        let value = self.get().await?;
        if does(&value) {
            return Ok(value);
        }
        let mut last_read = self.reading.lock().await;
        let now = self.clock.now();
        match self.last() {
            // Somebody else just read it, or did so in vain.
            Some(value) if does(&value) || last_read.is_some_and(|read| now.since(read) < pause) => Ok(value),
            _ => {
                let value = self.keep(self.source.load().await?);
                *last_read = Some(now);
                Ok(value)
            }
        }
    }

    fn usable(&self, age: Duration) -> Option<Arc<S::Value>> {
        let now = self.clock.now();
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        cached
            .as_ref()
            .filter(|cached| now.since(cached.read) < age || now < cached.rest)
            .map(|cached| cached.value.clone())
    }

    fn last(&self) -> Option<Arc<S::Value>> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|cached| cached.value.clone())
    }

    fn keep(&self, value: S::Value) -> Arc<S::Value> {
        let (value, read) = (Arc::new(value), self.clock.now());
        let cached = Cached { value: value.clone(), read, rest: read };
        *self.cached.write().unwrap_or_else(PoisonError::into_inner) = Some(cached);
        value
    }

    fn rest(&self) {
        let until = self.clock.now() + FAILURE_PAUSE;
        if let Some(cached) = self.cached.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            cached.rest = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FixedClock;
    use futures::FutureExt;
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
        assert_eq!(*refreshed.get().await.expect("nobody tries again so soon"), 1);
        clock.set(Time::from_millis(330_000));
        assert_eq!(*refreshed.get().await.expect("read again"), 3);
    }

    #[tokio::test]
    async fn what_does_not_do_is_read_again_at_once_but_not_again_and_again() {
        let clock = FixedClock::at(Time::from_millis(0));
        let refreshed = Refreshed::warm(Counting::default(), Arc::new(clock.clone())).await;
        let pause = Duration::from_secs(5);
        let at_least = |least: u32| refreshed.suitable(pause, move |count| *count >= least);
        assert_eq!(*at_least(1).await.expect("the first does"), 1);
        assert!(at_least(2).await.is_err(), "the failure of the second reading is told");
        assert_eq!(*at_least(2).await.expect("tried again at once"), 3);
        assert_eq!(*at_least(4).await.expect("read just now"), 3);
        clock.set(Time::from_millis(5_000));
        assert_eq!(*at_least(4).await.expect("read again"), 4);
    }

    /// Gives one, and then never anything again.
    struct Hanging(AtomicU32);

    impl Source for Hanging {
        type Value = u32;
        type Error = std::fmt::Error;

        async fn load(&self) -> Result<u32, std::fmt::Error> {
            if self.0.fetch_add(1, Ordering::SeqCst) > 0 {
                std::future::pending::<()>().await;
            }
            Ok(1)
        }
    }

    #[tokio::test]
    async fn while_one_waits_for_something_newer_the_others_go_on_with_the_old() {
        let clock = FixedClock::at(Time::from_millis(0));
        let refreshed = Refreshed::warm(Hanging(AtomicU32::new(0)), Arc::new(clock.clone())).await;
        clock.set(Time::from_millis(300_000));
        let mut first = std::pin::pin!(refreshed.get());
        assert!((&mut first).now_or_never().is_none());
        let second = refreshed.get().now_or_never().expect("at once");
        assert_eq!(*second.expect("the old"), 1);
    }
}
