//! A batcher: requests of the same moment share a call.
//!
//! Requests that come while a call is under way share the next one. So no request waits for company, and the
//! busier it is the more requests a call carries: a round trip to the table or the queue costs a busy process little
//! more than an idle one. Requests that fill further calls wait for none: those calls are made at once, side by side.
//! Each request has its own response.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::oneshot, task};

/// How many calls are under way at once, regardless of their size: a second one uses the time in which the first waits
/// for the network.
const CALLS_AT_ONCE: usize = 2;

/// How many full calls are under way at once. Each needs a connection, which takes the processor longer to open
/// than a call.
const FULL_CALLS_AT_ONCE: usize = 8;

/// A kind of call that carries several requests.
pub trait Calls: Send + Sync + 'static {
    /// One request.
    type Request: Send + 'static;
    /// The response to one request.
    type Response: Send + 'static;
    /// The most requests that one call takes.
    const LIMIT: usize;

    /// Makes the call; gives one response for each request, in the same order.
    fn call(&self, requests: Vec<Self::Request>) -> impl Future<Output = Vec<Self::Response>> + Send;

    /// The key of a request that may be in a call only once. By default a request has none.
    fn exclusive_key(_request: &Self::Request) -> Option<&str> {
        None
    }
}

/// The call that carried a request panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the call that carried this ended without an response")]
pub struct Unanswered;

/// The queue of requests that wait for a call. Clones share it.
pub struct Batcher<C: Calls>(Arc<Shared<C>>);

struct Shared<C: Calls> {
    calls: C,
    backlog: Mutex<Backlog<C>>,
}

struct Backlog<C: Calls> {
    waiting: VecDeque<Waiting<C>>,
    callers: usize,
    /// How many of the callers have not yet looked at what waits.
    starting: usize,
}

struct Waiting<C: Calls> {
    request: C::Request,
    response: oneshot::Sender<C::Response>,
}

impl<C: Calls> Batcher<C> {
    /// A batcher without requests.
    pub fn new(calls: C) -> Self {
        let backlog = Backlog { waiting: VecDeque::new(), callers: 0, starting: 0 };
        Self(Arc::new(Shared { calls, backlog: Mutex::new(backlog) }))
    }

    /// Submits a request and waits for its response. A caller that stops waiting takes its request back if no call carries it yet,
    /// and stops no call.
    pub async fn submit(&self, request: C::Request) -> Result<C::Response, Unanswered> {
        let (response, answered) = oneshot::channel();
        let another_caller = {
            let mut backlog = self.backlog();
            backlog.waiting.push_back(Waiting { request, response });
            let wanted = backlog.wants_a_caller();
            backlog.callers += usize::from(wanted);
            backlog.starting += usize::from(wanted);
            wanted
        };
        if another_caller {
            // A task of its own, so that a caller that gives up does not end the call of others.
            task::spawn(Caller { batcher: self.clone(), is_starting: true, left: false }.work());
        }
        answered.await.map_err(|_| Unanswered)
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog<C>> {
        self.0.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the few tasks that make calls.
struct Caller<C: Calls> {
    batcher: Batcher<C>,
    is_starting: bool,
    /// Whether it is no longer counted, as when it found nothing to do.
    left: bool,
}

impl<C: Calls> Caller<C> {
    async fn work(mut self) {
        // A task that requests for several things at once has asked for all of them before this goes on.
        task::yield_now().await;
        while let Some(call) = self.next() {
            let (requests, answers): (Vec<_>, Vec<_>) =
                call.into_iter().map(|waiting| (waiting.request, waiting.response)).unzip();
            for (response, to) in self.batcher.0.calls.call(requests).await.into_iter().zip(answers) {
                let _ = to.send(response); // an error says that its caller gave up
            }
        }
    }

    /// The requests of the next call. Finding none and leaving the count is one step: a request of a moment later finds
    /// that a caller is missing, and starts another.
    fn next(&mut self) -> Option<Vec<Waiting<C>>> {
        let mut backlog = self.batcher.backlog();
        backlog.starting -= usize::from(std::mem::take(&mut self.is_starting));
        let call = backlog.take();
        if call.is_empty() {
            backlog.callers -= 1;
            self.left = true;
            return None;
        }
        Some(call)
    }
}

impl<C: Calls> Drop for Caller<C> {
    /// After a panic in a call. Requests must not wait for a caller that may never come.
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let mut backlog = self.batcher.backlog();
        backlog.starting -= usize::from(self.is_starting);
        backlog.callers -= 1;
        if backlog.callers == 0 {
            backlog.waiting.clear();
        }
    }
}

impl<C: Calls> Backlog<C> {
    /// Whether what waits is worth another call beside those that are under way or about to be made.
    fn wants_a_caller(&self) -> bool {
        let taken = self.starting * C::LIMIT;
        let fills_another = self.waiting.len() >= taken + C::LIMIT;
        // Of requests that come all at once to an idle process, the last few must not wait for the first calls to end.
        let is_rest = self.starting >= CALLS_AT_ONCE && self.waiting.len() > taken;
        self.callers < CALLS_AT_ONCE || self.callers < FULL_CALLS_AT_ONCE && (fills_another || is_rest)
    }

    /// The requests of the next call. One whose place is taken waits for another call, and one whose caller gave up
    /// is left out.
    fn take(&mut self) -> Vec<Waiting<C>> {
        let mut taken = Vec::new();
        let mut places = HashSet::new();
        let mut left = VecDeque::new();
        while taken.len() < C::LIMIT {
            let Some(next) = self.waiting.pop_front() else { break };
            match C::exclusive_key(&next.request) {
                _ if next.response.is_closed() => {}
                Some(place) if !places.insert(place.to_owned()) => left.push_back(next),
                _ => taken.push(next),
            }
        }
        left.append(&mut self.waiting);
        self.waiting = left;
        taken
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

    /// Answers each number with its double, after a moment, and remembers what each call carried.
    #[derive(Clone, Default)]
    struct Doubling(Arc<Mutex<Vec<Vec<u32>>>>);

    impl Calls for Doubling {
        type Request = (u32, String);
        type Response = u32;
        const LIMIT: usize = 10;

        async fn call(&self, requests: Vec<(u32, String)>) -> Vec<u32> {
            let numbers: Vec<_> = requests.iter().map(|(number, _)| *number).collect();
            assert!(!numbers.contains(&u32::MAX), "asked to panic");
            self.0.lock().expect("no test panics with it").push(numbers.clone());
            task::yield_now().await;
            numbers.into_iter().map(|number| number * 2).collect()
        }

        fn exclusive_key((_, place): &(u32, String)) -> Option<&str> {
            Some(place)
        }
    }

    fn batcher() -> (Batcher<Doubling>, Doubling) {
        let calls = Doubling::default();
        (Batcher::new(calls.clone()), calls)
    }

    async fn ask_all(batcher: &Batcher<Doubling>, requests: impl IntoIterator<Item = (u32, String)>) -> Vec<u32> {
        let answers = join_all(requests.into_iter().map(|request| batcher.submit(request))).await;
        answers.into_iter().map(|response| response.expect("answered")).collect()
    }

    #[tokio::test]
    async fn requests_of_the_same_moment_share_a_call_up_to_its_limit() {
        let (batcher, calls) = batcher();
        let answers = ask_all(&batcher, (0..25).map(|number| (number, number.to_string()))).await;
        assert_eq!(answers, (0..25).map(|number| number * 2).collect::<Vec<_>>());
        let calls = calls.0.lock().expect("no panic").iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(calls, [10, 10, 5]);
    }

    /// Answers when so many calls are under way.
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

    /// The sizes of the calls, which are all under way at once or never end.
    async fn sizes(batcher: &Batcher<Together>, requests: u32) -> Vec<usize> {
        let answers = join_all((0..requests).map(|request| batcher.submit(request))).await;
        let answers: Vec<_> = answers.into_iter().map(|response| response.expect("answered")).collect();
        answers.chunks(10).map(|call| call[0]).collect()
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

    /// Remembers the size of each call, which then waits until a test lets it end.
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
    async fn while_two_calls_are_under_way_requests_wait_unless_they_fill_another() {
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
    async fn two_requests_for_one_place_never_share_a_call() {
        let (batcher, calls) = batcher();
        let answers = ask_all(&batcher, (0..6).map(|number| (number, (number % 2).to_string()))).await;
        assert_eq!(answers, [0, 2, 4, 6, 8, 10]);
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

    /// A request was once lost between a caller that found nothing to do and the moment in which it left the count.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_request_that_comes_when_the_last_caller_leaves_is_answered() {
        let (batcher, _) = batcher();
        let askers = (0..8u32).map(|asker| {
            let batcher = batcher.clone();
            task::spawn(async move {
                for number in 0..20_000 {
                    assert_eq!(batcher.submit((number, asker.to_string())).await, Ok(number * 2));
                }
            })
        });
        for asker in askers.collect::<Vec<_>>() {
            asker.await.expect("every request is answered");
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
