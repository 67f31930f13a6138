//! A batcher: combines concurrent requests into one call.
//!
//! The batcher never delays a request to fill a batch: requests that arrive while a call is in flight share the next
//! call. The busier the process is, the larger its batches are, so a round trip to the table or the queue costs a busy
//! process little more than an idle one. If waiting requests fill further batches, the calls for those are made
//! concurrently. Each request gets a separate response.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::oneshot, task};

use crate::stage::timed;

/// How many calls may be in flight at once, regardless of their size: the second uses the time that the first spends
/// waiting for the network.
const CALLS_AT_ONCE: usize = 2;

/// How many calls may be in flight at once if their batches are full. Each needs a connection, and opening a connection
/// takes more processor time than a call.
const FULL_CALLS_AT_ONCE: usize = 8;

/// A call that carries a batch of requests.
pub trait Calls: Send + Sync + 'static {
    /// One request.
    type Request: Send + 'static;
    /// The response to one request.
    type Response: Send + 'static;
    /// The largest batch.
    const LIMIT: usize;
    /// The name of a call as a [stage](crate::stage).
    const STAGE: &'static str = "other calls";

    /// Makes the call and returns one response for each request, in the same order.
    fn call(&self, requests: Vec<Self::Request>) -> impl Future<Output = Vec<Self::Response>> + Send;

    /// A key that a batch may contain only once, such as an item's key; `None` if there is no such limit.
    fn exclusive_key(_request: &Self::Request) -> Option<&str> {
        None
    }
}

/// The call that carried a request panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the batched call ended without a response")]
pub struct Unanswered;

/// The queue of requests waiting for a call. Clones share it.
pub struct Batcher<C: Calls>(Arc<Shared<C>>);

struct Shared<C: Calls> {
    calls: C,
    backlog: Mutex<Backlog<C>>,
}

struct Backlog<C: Calls> {
    waiting: VecDeque<Waiting<C>>,
    workers: usize,
    /// How many of the workers have not yet taken their first batch.
    starting: usize,
}

struct Waiting<C: Calls> {
    request: C::Request,
    response: oneshot::Sender<C::Response>,
}

impl<C: Calls> Batcher<C> {
    /// A batcher without requests.
    pub fn new(calls: C) -> Self {
        let backlog = Backlog { waiting: VecDeque::new(), workers: 0, starting: 0 };
        Self(Arc::new(Shared { calls, backlog: Mutex::new(backlog) }))
    }

    /// Submits a request and waits for its response. If the caller stops waiting, its request is withdrawn, unless a
    /// call already carries it; the call continues.
    pub async fn submit(&self, request: C::Request) -> Result<C::Response, Unanswered> {
        let (response, answered) = oneshot::channel();
        let needs_worker = {
            let mut backlog = self.backlog();
            backlog.waiting.push_back(Waiting { request, response });
            let wanted = backlog.wants_a_worker();
            backlog.workers += usize::from(wanted);
            backlog.starting += usize::from(wanted);
            wanted
        };
        if needs_worker {
            // A separate task, so that a caller that gives up does not end the others' call.
            task::spawn(Worker { batcher: self.clone(), is_starting: true, left: false }.work());
        }
        answered.await.map_err(|_| Unanswered)
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog<C>> {
        self.0.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that makes calls until no request is waiting.
struct Worker<C: Calls> {
    batcher: Batcher<C>,
    is_starting: bool,
    /// Whether the worker is no longer counted, having found no request.
    left: bool,
}

impl<C: Calls> Worker<C> {
    async fn work(mut self) {
        // A task that submits several requests at once has submitted all of them before this continues.
        task::yield_now().await;
        while let Some(batch) = self.next_batch() {
            let (requests, senders): (Vec<_>, Vec<_>) =
                batch.into_iter().map(|waiting| (waiting.request, waiting.response)).unzip();
            for (response, sender) in
                timed(C::STAGE, self.batcher.0.calls.call(requests)).await.into_iter().zip(senders)
            {
                let _ = sender.send(response); // fails if the caller gave up
            }
        }
    }

    /// The next call's requests. If there are none, the worker is removed from the count under the same lock, so that
    /// the next request starts another worker.
    fn next_batch(&mut self) -> Option<Vec<Waiting<C>>> {
        let mut backlog = self.batcher.backlog();
        backlog.starting -= usize::from(std::mem::take(&mut self.is_starting));
        let batch = backlog.take_batch();
        if batch.is_empty() {
            backlog.workers -= 1;
            self.left = true;
            return None;
        }
        Some(batch)
    }
}

impl<C: Calls> Drop for Worker<C> {
    /// Removes the worker from the count after a panic in a call. If no worker remains, the waiting requests fail
    /// rather than wait forever.
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let mut backlog = self.batcher.backlog();
        backlog.starting -= usize::from(self.is_starting);
        backlog.workers -= 1;
        if backlog.workers == 0 {
            backlog.waiting.clear();
        }
    }
}

impl<C: Calls> Backlog<C> {
    /// Whether the waiting requests justify another worker besides those running and starting.
    fn wants_a_worker(&self) -> bool {
        let claimed = self.starting * C::LIMIT;
        let fills_another = self.waiting.len() >= claimed + C::LIMIT;
        // If many requests arrive in an idle process at once, the incomplete last batch must not wait for the first
        // calls to end.
        let is_rest = self.starting >= CALLS_AT_ONCE && self.waiting.len() > claimed;
        self.workers < CALLS_AT_ONCE || self.workers < FULL_CALLS_AT_ONCE && (fills_another || is_rest)
    }

    /// The next call's requests. A request whose key is already in the batch waits for another call, and a request
    /// whose caller gave up is dropped.
    fn take_batch(&mut self) -> Vec<Waiting<C>> {
        let mut batch = Vec::new();
        let mut keys = HashSet::new();
        let mut left = VecDeque::new();
        while batch.len() < C::LIMIT {
            let Some(next) = self.waiting.pop_front() else { break };
            match C::exclusive_key(&next.request) {
                _ if next.response.is_closed() => {}
                Some(key) if !keys.insert(key.to_owned()) => left.push_back(next),
                _ => batch.push(next),
            }
        }
        left.append(&mut self.waiting);
        self.waiting = left;
        batch
    }
}

impl<C: Calls> Clone for Batcher<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: Calls> fmt::Debug for Batcher<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batcher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;

    /// Answers each number with its double and records the batches.
    #[derive(Clone, Default)]
    struct Doubling(Arc<Mutex<Vec<Vec<u32>>>>);

    impl Calls for Doubling {
        type Request = (u32, String);
        type Response = u32;
        const LIMIT: usize = 10;

        async fn call(&self, requests: Vec<(u32, String)>) -> Vec<u32> {
            let numbers: Vec<_> = requests.iter().map(|(number, _)| *number).collect();
            assert!(!numbers.contains(&u32::MAX), "a panic on purpose");
            self.0.lock().expect("no test panics with it").push(numbers.clone());
            task::yield_now().await;
            numbers.into_iter().map(|number| number * 2).collect()
        }

        fn exclusive_key((_, key): &(u32, String)) -> Option<&str> {
            Some(key)
        }
    }

    fn batcher() -> (Batcher<Doubling>, Doubling) {
        let calls = Doubling::default();
        (Batcher::new(calls.clone()), calls)
    }

    async fn submit_all(batcher: &Batcher<Doubling>, requests: impl IntoIterator<Item = (u32, String)>) -> Vec<u32> {
        let responses = join_all(requests.into_iter().map(|request| batcher.submit(request))).await;
        responses.into_iter().map(|response| response.expect("answered")).collect()
    }

    #[tokio::test]
    async fn requests_of_the_same_moment_share_a_call_up_to_its_limit() {
        let (batcher, calls) = batcher();
        let responses = submit_all(&batcher, (0..25).map(|number| (number, number.to_string()))).await;
        assert_eq!(responses, (0..25).map(|number| number * 2).collect::<Vec<_>>());
        let calls = calls.0.lock().expect("no panic").iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(calls, [10, 10, 5]);
    }

    /// Answers once this many calls are in flight.
    struct Together(tokio::sync::Barrier);

    impl Calls for Together {
        type Request = u32;
        type Response = usize;
        const LIMIT: usize = 10;

        async fn call(&self, requests: Vec<u32>) -> Vec<usize> {
            self.0.wait().await;
            vec![requests.len(); requests.len()]
        }
    }

    /// The sizes of the batches. Never ends unless all the calls are in flight at once.
    async fn sizes(batcher: &Batcher<Together>, requests: u32) -> Vec<usize> {
        let responses = join_all((0..requests).map(|request| batcher.submit(request))).await;
        let responses: Vec<_> = responses.into_iter().map(|response| response.expect("answered")).collect();
        responses.chunks(10).map(|call| call[0]).collect()
    }

    #[tokio::test]
    async fn requests_that_fill_several_calls_wait_for_none_of_them() {
        for (requests, calls) in [(25, vec![10, 10, 5]), (80, vec![10; 8]), (11, vec![10, 1])] {
            let batcher = Batcher::new(Together(tokio::sync::Barrier::new(calls.len())));
            assert_eq!(sizes(&batcher, requests).await, calls);
        }
        let batcher = Batcher::new(Together(tokio::sync::Barrier::new(8)));
        assert_eq!(sizes(&batcher, 160).await, [10; 16], "twice eight at once");
    }

    /// Records each batch's size and waits until the test lets the call end.
    #[derive(Clone)]
    struct Held(Arc<Mutex<Vec<usize>>>, Arc<tokio::sync::Semaphore>);

    impl Calls for Held {
        type Request = u32;
        type Response = ();
        const LIMIT: usize = 10;

        async fn call(&self, requests: Vec<u32>) -> Vec<()> {
            self.0.lock().expect("no test panics with it").push(requests.len());
            drop(self.1.acquire().await);
            vec![(); requests.len()]
        }
    }

    #[tokio::test]
    async fn while_two_calls_are_in_flight_only_full_batches_are_sent() {
        for (late, at_once) in [(9, vec![1, 1]), (10, vec![1, 1, 10])] {
            let calls = Held(Arc::default(), Arc::new(tokio::sync::Semaphore::new(0)));
            let batcher = Batcher::new(calls.clone());
            let sizes = || calls.0.lock().expect("no panic").clone();
            let mut requests = Vec::new();
            for early in 0..2 {
                requests.push(Box::pin(batcher.submit(early)));
                assert!(futures::poll!(&mut requests[early as usize]).is_pending());
                while sizes().len() <= early as usize {
                    task::yield_now().await;
                }
            }
            let late = (0..late).map(|request| Box::pin(batcher.submit(request)));
            let mut all = join_all(requests.into_iter().chain(late));
            assert!(futures::poll!(&mut all).is_pending());
            for _ in 0..10 {
                task::yield_now().await;
            }
            assert_eq!(sizes(), at_once);
            calls.1.close();
            assert!(all.await.into_iter().all(|response| response.is_ok()));
            assert_eq!(sizes().len(), 3);
        }
    }

    #[tokio::test]
    async fn two_requests_for_one_key_never_share_a_call() {
        let (batcher, calls) = batcher();
        let responses = submit_all(&batcher, (0..6).map(|number| (number, (number % 2).to_string()))).await;
        assert_eq!(responses, [0, 2, 4, 6, 8, 10]);
        let mut calls = calls.0.lock().expect("no panic").clone();
        calls.sort();
        assert_eq!(calls, [vec![0, 1], vec![2, 3], vec![4, 5]]);
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_does_not_end_the_call_of_others() {
        let (batcher, _) = batcher();
        let mut first = Box::pin(batcher.submit((1, "a".into())));
        assert!(futures::poll!(&mut first).is_pending());
        drop(first);
        assert_eq!(batcher.submit((2, "b".into())).await, Ok(4));
    }

    /// A worker that finds no request must be removed from the count in the same step; otherwise, a request that
    /// arrived in between would be lost.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_request_that_arrives_as_the_last_worker_leaves_is_answered() {
        let (batcher, _) = batcher();
        let submitters = (0..8u32).map(|submitter| {
            let batcher = batcher.clone();
            task::spawn(async move {
                for number in 0..20_000 {
                    assert_eq!(batcher.submit((number, submitter.to_string())).await, Ok(number * 2));
                }
            })
        });
        for submitter in submitters.collect::<Vec<_>>() {
            submitter.await.expect("every request is answered");
        }
    }

    #[tokio::test]
    async fn a_request_whose_caller_gave_up_is_not_sent() {
        let (batcher, calls) = batcher();
        let mut waiting: Vec<_> = (0..3).map(|number| Box::pin(batcher.submit((number, number.to_string())))).collect();
        for request in &mut waiting {
            assert!(futures::poll!(request).is_pending());
        }
        drop(waiting.remove(1));
        assert_eq!(join_all(waiting).await, [Ok(0), Ok(4)]);
        assert_eq!(*calls.0.lock().expect("no panic"), [vec![0, 2]]);
    }

    #[tokio::test]
    async fn a_call_that_panics_ends_its_requests_and_the_next_one_works() {
        let (batcher, _) = batcher();
        assert_eq!(batcher.submit((u32::MAX, "a".into())).await, Err(Unanswered));
        assert_eq!(batcher.submit((2, "b".into())).await, Ok(4));
    }
}
