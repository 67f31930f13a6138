//! The processor time of a call's stages, which is logged at `LOG_LEVEL` `trace` and added up by `make bench`.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    time::Duration,
};

use tracing::Level;

/// Does the work of a stage and logs the processor time that its thread spent on it. Stages must not contain each
/// other; otherwise, their time counts twice.
pub async fn timed<T>(stage: &'static str, work: impl Future<Output = T>) -> T {
    let is_timed = tracing::enabled!(Level::TRACE);
    let mut computed = Duration::ZERO;
    let mut work = pin!(work);
    let result = poll_fn(|context| {
        if !is_timed {
            return work.as_mut().poll(context);
        }
        let began = computed_by_thread();
        let polled = work.as_mut().poll(context);
        computed += computed_by_thread().saturating_sub(began);
        polled
    })
    .await;
    if is_timed {
        let nanos = u64::try_from(computed.as_nanos()).unwrap_or(u64::MAX);
        tracing::trace!(stage, computedNanos = nanos, "a stage ended");
    }
    result
}

/// The processor time of this thread so far; zero on a system that does not report it.
#[cfg(unix)]
fn computed_by_thread() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

#[cfg(not(unix))]
fn computed_by_thread() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[tokio::test]
    async fn a_stage_gives_the_result_of_its_work() {
        let work = async {
            tokio::task::yield_now().await;
            7
        };
        assert_eq!(timed("counting", work).await, 7);
    }

    #[cfg(unix)]
    #[test]
    fn the_time_of_a_thread_grows_with_its_work() {
        let began = computed_by_thread();
        let sum = (0..1_000_000_u64).fold(0, |sum, number| black_box(sum ^ number));
        assert!(computed_by_thread() > began, "{sum}");
    }
}
