//! A value that is read once and used for a while. It is read again when it is old, and the old value stays in use for
//! as long as that fails.

use std::{
    error::Error,
    future::Future,
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio::{sync::Mutex, time::timeout};

use crate::{
    clock::{SharedClock, Time},
    logging,
};

/// The age at which a value is read again, so that a rotation reaches warm functions.
const REFRESH_AFTER: Duration = Duration::from_secs(300);
/// How long the old value is used after a failure before another reading.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
/// How long a request waits for a new value while there is an old one.
const REFRESH_LIMIT: Duration = Duration::from_secs(2);

/// A reading under way. It is boxed, because the compiler generates the code of an `async fn` in each program that polls
/// it; behind a box that code is generated once, in the crate of its source.
pub type Reading<'a, S> = Pin<Box<dyn Future<Output = Result<<S as Source>::Value, <S as Source>::Error>> + Send + 'a>>;

/// Where a value is read.
pub trait Source: Send + Sync {
    /// The value.
    type Value: Send + Sync;
    /// Why it could not be read.
    type Error: Error + Send + 'static;

    /// Reads the value.
    fn load(&self) -> Reading<'_, Self>;
}

/// A value in memory, and where it is read.
pub struct Refreshed<S: Source> {
    source: S,
    clock: SharedClock,
    cached: RwLock<Option<Cached<S::Value>>>,
    /// Held by the call that reads. It holds when `suitable` last read.
    reading: Mutex<Option<Time>>,
}

struct Cached<V> {
    value: Arc<V>,
    read: Time,
    /// No reading before this time, after one has failed.
    rest: Time,
}

impl<S: Source> Refreshed<S> {
    /// A value that the first request reads.
    pub fn new(source: S, clock: SharedClock) -> Self {
        Self { source, clock, cached: RwLock::new(None), reading: Mutex::new(None) }
    }

    /// A value that is read now, as by `warm_up`.
    pub async fn warm(source: S, clock: SharedClock) -> Self {
        let refreshed = Self::new(source, clock);
        refreshed.warm_up().await;
        refreshed
    }

    /// Reads before the first request. A failure is logged, and the first request reads again.
    pub async fn warm_up(&self) {
        self.warm_up_by(S::load).await;
    }

    /// The same in another way than it is read later.
    pub async fn warm_up_by<'a, R>(&'a self, read: impl FnOnce(&'a S) -> R)
    where
        R: Future<Output = Result<S::Value, S::Error>>,
    {
        let _one_at_a_time = self.reading.lock().await;
        match read(&self.source).await {
            Ok(value) => drop(self.keep(value)),
            Err(error) => tracing::warn!(error = %logging::chain(&error), "a value could not be read at the start"),
        }
    }

    /// Returns the cached value if it is younger than five minutes; otherwise reloads, and returns the old one if that
    /// fails.
    pub async fn get(&self) -> Result<Arc<S::Value>, S::Error> {
        self.younger_than(REFRESH_AFTER).await
    }

    /// The same with another age.
    ///
    /// While one call reads, the others go on with the old value, and wait only where there is none. With an old value
    /// a reading ends after two seconds, and a failed one is not repeated for half a minute: an outage must not hold up
    /// requests.
    pub async fn younger_than(&self, age: Duration) -> Result<Arc<S::Value>, S::Error> {
        if let Some(value) = self.usable(age) {
            return Ok(value);
        }
        let Some(old) = self.last() else {
            let _one_at_a_time = self.reading.lock().await;
            return match self.last() {
                Some(value) => Ok(value), // another call just read it
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
                tracing::warn!(error, "a value could not be refreshed; the old one is used");
                self.rest();
                Ok(old)
            }
        }
    }

    /// Returns the cached value if `accept` holds; otherwise reloads, at most once per `min_interval`. The result may
    /// still not be acceptable.
    ///
    /// A caller cannot go on with a value that it does not accept, so all wait for the call that reads, and a failure
    /// is an error.
    pub async fn suitable(
        &self,
        min_interval: Duration,
        accept: impl Fn(&S::Value) -> bool + Send,
    ) -> Result<Arc<S::Value>, S::Error> {
        let value = self.get().await?;
        if accept(&value) {
            return Ok(value);
        }
        let mut last_read = self.reading.lock().await;
        let now = self.clock.now();
        match self.last() {
            // Another call just read it.
            Some(value) if accept(&value) || last_read.is_some_and(|read| now.since(read) < min_interval) => Ok(value),
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
        let value = Arc::new(value);
        let read = self.clock.now();
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

        fn load(&self) -> Reading<'_, Self> {
            Box::pin(async {
                match self.0.fetch_add(1, Ordering::SeqCst) + 1 {
                    2 => Err(std::fmt::Error),
                    count => Ok(count),
                }
            })
        }
    }

    #[tokio::test]
    async fn an_old_value_stays_in_use_while_no_new_one_can_be_read() {
        let clock = FixedClock::at(Time::from_millis(0));
        let refreshed = Refreshed::warm(Counting::default(), Arc::new(clock.clone())).await;
        assert_eq!(*refreshed.get().await.expect("read at the start"), 1);
        clock.set(Time::from_millis(299_999));
        assert_eq!(*refreshed.get().await.expect("still young"), 1);
        clock.set(Time::from_millis(300_000));
        assert_eq!(*refreshed.get().await.expect("kept, since reading fails"), 1);
        assert_eq!(*refreshed.get().await.expect("no second try so soon"), 1);
        clock.set(Time::from_millis(330_000));
        assert_eq!(*refreshed.get().await.expect("read again"), 3);
    }

    #[tokio::test]
    async fn an_unacceptable_value_is_read_again_at_once_and_then_not_within_the_interval() {
        let clock = FixedClock::at(Time::from_millis(0));
        let refreshed = Refreshed::warm(Counting::default(), Arc::new(clock.clone())).await;
        let pause = Duration::from_secs(5);
        let at_least = |least: u32| refreshed.suitable(pause, move |count| *count >= least);
        assert_eq!(*at_least(1).await.expect("the first does"), 1);
        assert!(at_least(2).await.is_err(), "the second reading fails");
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

        fn load(&self) -> Reading<'_, Self> {
            Box::pin(async {
                if self.0.fetch_add(1, Ordering::SeqCst) > 0 {
                    std::future::pending::<()>().await;
                }
                Ok(1)
            })
        }
    }

    #[tokio::test]
    async fn while_one_call_reads_the_others_go_on_with_the_old_value() {
        let clock = FixedClock::at(Time::from_millis(0));
        let refreshed = Refreshed::warm(Hanging(AtomicU32::new(0)), Arc::new(clock.clone())).await;
        clock.set(Time::from_millis(300_000));
        let mut first = std::pin::pin!(refreshed.get());
        assert!((&mut first).now_or_never().is_none());
        let second = refreshed.get().now_or_never().expect("at once");
        assert_eq!(*second.expect("the old"), 1);
    }
}
