//! Shared reads of events: one event's deliveries are attempted at the same time, and each needs the event. The event
//! is read, decoded and unpacked once for all attempts that are waiting for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};

use base::EventId;
use storage::TableError;

type Read<T> = BoxFuture<'static, Result<Option<T>, TableError>>;

/// The reads under way. Nothing is kept after them, so no reader gets an older value than a separate read could return.
#[derive(Debug, Clone)]
pub(super) struct SharedReads<T: Clone>(Arc<Mutex<HashMap<EventId, WeakShared<Read<T>>>>>);

impl<T: Clone> Default for SharedReads<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + 'static> SharedReads<T> {
    /// Joins the current read of this event, or begins one.
    pub(super) fn join<F>(&self, event: &EventId, begin: impl FnOnce(EventId) -> F) -> Shared<Read<T>>
    where
        F: Future<Output = Result<Option<T>, TableError>> + Send + 'static,
    {
        let mut reads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = reads.get(event).and_then(WeakShared::upgrade) {
            return read;
        }
        reads.retain(|_, read| read.upgrade().is_some());
        let read = begin(event.clone()).boxed().shared();
        reads.extend(read.downgrade().map(|weak| (event.clone(), weak)));
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Time, testing::CountingRandom};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tokio::{join, task::yield_now};

    #[tokio::test]
    async fn readers_at_once_share_a_read_and_later_ones_begin_another() {
        let reads = SharedReads::<()>::default();
        let begun = Arc::new(AtomicUsize::new(0));
        let random = CountingRandom::default();
        let event = EventId::new(Time::from_millis(1_795_167_900_000), &random);
        let other = EventId::new(Time::from_millis(1_795_167_900_001), &random);
        let read = |event: &EventId| {
            let begun = begun.clone();
            reads.join(event, |_| async move {
                begun.fetch_add(1, Relaxed);
                yield_now().await;
                Ok(None)
            })
        };
        let (first, second, third) = join!(read(&event), read(&event), read(&other));
        assert!([first, second, third].iter().all(Result::is_ok));
        assert_eq!(begun.load(Relaxed), 2, "one read for each event");
        assert!(read(&event).await.is_ok());
        assert_eq!(begun.load(Relaxed), 3, "a later reader gets the present value");
        assert_eq!(reads.0.lock().expect("no holder panics").len(), 1, "ended reads are forgotten");
    }
}
