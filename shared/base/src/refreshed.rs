//! A cached value that is reloaded from time to time. While reloading fails, the old value remains in use.

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

/// The age at which a value is reloaded. Reloading ensures that a rotation reaches warm functions.
const REFRESH_AFTER: Duration = Duration::from_secs(300);
/// How long the old value remains in use after a failure before the next load.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
/// How long a request waits for a new value if there is an old one.
const REFRESH_LIMIT: Duration = Duration::from_secs(2);

/// The future of a load. It is boxed so that its code is generated once, in the crate of its source. The compiler
/// generates the code of an `async fn` in each program that polls it.
pub type Reading<'a, S> = Pin<Box<dyn Future<Output = Result<<S as Source>::Value, <S as Source>::Error>> + Send + 'a>>;

/// The source of a value.
pub trait Source: Send + Sync {
    /// The value.
    type Value: Send + Sync;
    /// Why the value could not be loaded.
    type Error: Error + Send + 'static;

    /// Loads the value.
    fn load(&self) -> Reading<'_, Self>;
}

/// A value in memory, with its source.
pub struct Refreshed<S: Source> {
    source: S,
    clock: SharedClock,
    cached: RwLock<Option<Cached<S::Value>>>,
    /// Locked by the call that is loading. Contains the time of the last load by `suitable`.
    loading: Mutex<Option<Time>>,
}

struct Cached<V> {
    value: Arc<V>,
    loaded: Time,
    /// After a failed load, no other load begins before this time.
    retry_at: Time,
}

impl<S: Source> Refreshed<S> {
    /// A value that the first request loads.
    pub fn new(source: S, clock: SharedClock) -> Self {
        Self { source, clock, cached: RwLock::new(None), loading: Mutex::new(None) }
    }

    /// A value that is loaded now, as `warm_up` does.
    pub async fn warm(source: S, clock: SharedClock) -> Self {
        let refreshed = Self::new(source, clock);
        refreshed.warm_up().await;
        refreshed
    }

    /// Loads before the first request. A failure is logged, and the first request loads again.
    pub async fn warm_up(&self) {
        self.warm_up_by(S::load).await;
    }

    /// Loads before the first request, using a different function than later loads, such as an eventually consistent
    /// read.
    pub async fn warm_up_by<'a, R>(&'a self, load: impl FnOnce(&'a S) -> R)
    where
        R: Future<Output = Result<S::Value, S::Error>>,
    {
        let _one_at_a_time = self.loading.lock().await;
        match load(&self.source).await {
            Ok(value) => drop(self.keep(value)),
            Err(error) => {
                let error = logging::chain(&error);
                tracing::warn!(error, "a value could not be loaded at startup; the first request loads it");
            }
        }
    }

    /// Returns the cached value if it is younger than five minutes. Otherwise reloads it, and returns the old value if
    /// that fails.
    pub async fn get(&self) -> Result<Arc<S::Value>, S::Error> {
        self.younger_than(REFRESH_AFTER).await
    }

    /// Returns the cached value if it is younger than `age`. Otherwise reloads it, and returns the old value if that
    /// fails.
    ///
    /// While one call loads, the others continue with the old value, and wait only if there is none. So that an outage
    /// does not delay requests while there is an old value, a load times out after two seconds, and a failed load is
    /// not repeated for half a minute.
    pub async fn younger_than(&self, age: Duration) -> Result<Arc<S::Value>, S::Error> {
        if let Some(value) = self.usable(age) {
            return Ok(value);
        }
        let Some(old) = self.last() else {
            let _one_at_a_time = self.loading.lock().await;
            return match self.last() {
                Some(value) => Ok(value), // another call has just loaded it
                None => self.source.load().await.map(|value| self.keep(value)),
            };
        };
        let Ok(_one_at_a_time) = self.loading.try_lock() else { return Ok(old) };
        match timeout(REFRESH_LIMIT, self.source.load()).await {
            Ok(Ok(value)) => Ok(self.keep(value)),
            failed => {
                let error = failed.map_or_else(
                    |late| late.to_string(),
                    |failed| failed.err().map(|error| logging::chain(&error)).unwrap_or_default(),
                );
                tracing::warn!(error, "a value could not be reloaded; the old one stays in use");
                self.postpone_load();
                Ok(old)
            }
        }
    }

    /// Returns the cached value if `accept` holds. Otherwise reloads, at most once per `min_interval`. The result may
    /// still not be acceptable.
    ///
    /// A caller cannot use a value that it does not accept, so all callers wait for the call that loads, and a failure
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
        let mut last_load = self.loading.lock().await;
        let now = self.clock.now();
        match self.last() {
            // Another call has just loaded it.
            Some(value) if accept(&value) || last_load.is_some_and(|load| now.since(load) < min_interval) => Ok(value),
            _ => {
                let value = self.keep(self.source.load().await?);
                *last_load = Some(now);
                Ok(value)
            }
        }
    }

    fn usable(&self, age: Duration) -> Option<Arc<S::Value>> {
        let now = self.clock.now();
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        cached
            .as_ref()
            .filter(|cached| now.since(cached.loaded) < age || now < cached.retry_at)
            .map(|cached| cached.value.clone())
    }

    fn last(&self) -> Option<Arc<S::Value>> {
        self.cached.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|cached| cached.value.clone())
    }

    fn keep(&self, value: S::Value) -> Arc<S::Value> {
        let value = Arc::new(value);
        let now = self.clock.now();
        let cached = Cached { value: value.clone(), loaded: now, retry_at: now };
        *self.cached.write().unwrap_or_else(PoisonError::into_inner) = Some(cached);
        value
    }

    fn postpone_load(&self) {
        let retry_at = self.clock.now() + FAILURE_PAUSE;
        if let Some(cached) = self.cached.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            cached.retry_at = retry_at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FixedClock;
    use futures::FutureExt;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A source that returns 1, fails, and then returns 3.
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
    async fn an_unacceptable_value_is_reloaded_at_most_once_per_interval() {
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

    /// A source that returns 1, and then hangs.
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
    async fn while_one_call_loads_the_others_use_the_old_value() {
        let clock = FixedClock::at(Time::from_millis(0));
        let refreshed = Refreshed::warm(Hanging(AtomicU32::new(0)), Arc::new(clock.clone())).await;
        clock.set(Time::from_millis(300_000));
        let mut first = std::pin::pin!(refreshed.get());
        assert!((&mut first).now_or_never().is_none());
        let second = refreshed.get().now_or_never().expect("at once");
        assert_eq!(*second.expect("the old"), 1);
    }
}
