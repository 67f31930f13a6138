//! A clock that code can wait on.

use std::{future::Future, pin::Pin};

use base::{SharedClock, Time, clock};

/// A clock that can wait until a given time. Tests use another clock, so that they need not wait.
pub(crate) trait Timer: Send + Sync {
    fn now(&self) -> Time;
    /// Completes at this time, or earlier or later if the clock is set in the meantime.
    fn wait(&self, until: Time) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The machine's clock.
pub(crate) struct SystemTimer(pub SharedClock);

impl Timer for SystemTimer {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn wait(&self, until: Time) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(clock::pause(until.since(self.0.now())))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::sync::watch;

    use super::*;

    /// A clock that a test sets.
    #[derive(Clone)]
    pub struct HandTimer(Arc<watch::Sender<Time>>);

    impl HandTimer {
        pub fn new() -> Self {
            Self(Arc::new(watch::Sender::new(Time::from_millis(1_800_000_000_000))))
        }

        pub fn pass(&self, duration: Duration) {
            self.0.send_modify(|now| *now = *now + duration);
        }
    }

    impl Timer for HandTimer {
        fn now(&self) -> Time {
            *self.0.borrow()
        }

        fn wait(&self, until: Time) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            let mut times = self.0.subscribe();
            Box::pin(async move { drop(times.wait_for(|now| *now >= until).await) })
        }
    }
}
