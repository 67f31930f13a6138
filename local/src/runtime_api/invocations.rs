//! One function's waiting and running invocations.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, Weak},
};

use axum::body::Bytes;
use base::Time;
use tokio::sync::oneshot;

/// Why an invocation has no result.
#[derive(Debug)]
pub enum Failure {
    /// The function reported an error, which this JSON describes.
    Error(Bytes),
    /// The function's process ended.
    Died,
}

/// How an invocation ended.
pub type InvocationOutcome = Result<Bytes, Failure>;

/// One function's invocations.
#[derive(Default)]
pub struct Invocations(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number of the current process. Ending a process increments the number, so that late requests match no
    /// process.
    process: u64,
    /// Whether that process has polled yet.
    started: bool,
    waiting: VecDeque<Invocation>,
    /// The current process's polls. The latest poll is served first, so that the same connections stay busy.
    polls: Vec<oneshot::Sender<Offer>>,
    /// Polls from a process that is shutting down. They get no response before the next process begins, since the old
    /// process would log it as an error.
    left: Vec<oneshot::Sender<Offer>>,
    running: HashMap<String, Running>,
}

/// An invocation's caller. It is dropped when the caller has the result or gives up.
#[derive(Default)]
pub struct Caller(Arc<()>);

/// Knows whether an invocation's caller is still waiting.
#[derive(Clone)]
pub struct Presence(Weak<()>);

impl Caller {
    /// Whether this caller is still present.
    pub fn presence(&self) -> Presence {
        Presence(Arc::downgrade(&self.0))
    }
}

impl Presence {
    fn waits(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// An invocation that a process is working on.
struct Running {
    answer: oneshot::Sender<InvocationOutcome>,
    caller: Presence,
}

/// An invocation, as a process receives it.
pub struct Work {
    pub id: String,
    pub event: Bytes,
    /// The event's trace, in the format of `X-Amzn-Trace-Id`.
    pub trace: Option<String>,
    pub deadline: Time,
}

struct Invocation {
    work: Work,
    caller: Presence,
    answer: oneshot::Sender<InvocationOutcome>,
}

/// An invocation offered to a poll. If the poll's connection closes before the poll accepts, the invocation returns to
/// the front of the queue.
pub struct Offer {
    invocations: Arc<Invocations>,
    invocation: Option<Invocation>,
}

impl Invocations {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while holding it")
    }

    /// Adds an invocation. If the receiver is dropped before a process accepts the invocation, no process gets it.
    pub fn add(self: &Arc<Self>, work: Work, caller: Presence) -> oneshot::Receiver<InvocationOutcome> {
        let (answer, answered) = oneshot::channel();
        self.state().waiting.push_back(Invocation { work, caller, answer });
        self.serve();
        answered
    }

    /// Offers waiting invocations to waiting polls.
    fn serve(self: &Arc<Self>) {
        let mut state = self.state();
        while let Some(invocation) = state.waiting.pop_front() {
            if invocation.answer.is_closed() {
                continue;
            }
            let Some(poll) = state.polls.pop() else { return state.waiting.push_front(invocation) };
            let offer = Offer { invocations: Arc::clone(self), invocation: Some(invocation) };
            if let Err(mut back) = poll.send(offer) {
                // Empty the offer here, since its `drop` would lock the state again.
                if let Some(invocation) = back.invocation.take() {
                    state.waiting.push_front(invocation);
                }
            }
        }
    }

    /// Begins a new process, and returns its number.
    pub fn begin(&self) -> u64 {
        let mut state = self.state();
        state.process += 1;
        state.started = false;
        state.left.clear();
        state.process
    }

    /// Adds a poll from a process, unless the process has ended.
    pub fn poll(self: &Arc<Self>, process: u64) -> Option<oneshot::Receiver<Offer>> {
        let mut state = self.state();
        if process != state.process {
            return None;
        }
        state.started = true;
        let (poll, polled) = oneshot::channel();
        state.polls.push(poll);
        drop(state);
        self.serve();
        Some(polled)
    }

    /// Removes a running invocation, so that its caller can get the result.
    pub fn finish(&self, id: &str) -> Option<oneshot::Sender<InvocationOutcome>> {
        self.state().running.remove(id).map(|running| running.answer)
    }

    /// Whether a running invocation's caller is still waiting for the result; `None` if no such invocation is running.
    pub fn caller_waits(&self, id: &str) -> Option<bool> {
        self.state().running.get(id).map(|running| running.caller.waits())
    }

    /// Detaches a process if it has no running or waiting invocations, and returns whether it did. The process gets no
    /// further invocations, not even one that is being offered to it.
    pub fn leave(&self, process: u64) -> bool {
        let mut state = self.state();
        let idle = state.running.is_empty() && state.waiting.is_empty();
        if idle && process == state.process {
            state.process += 1;
            state.left = std::mem::take(&mut state.polls);
        }
        idle
    }

    /// Ends a process, and fails the invocations that it was running.
    pub fn end(&self, process: u64) {
        let mut state = self.state();
        if process != state.process {
            return;
        }
        state.process += 1;
        state.polls.clear();
        let mut lost: Vec<_> = state.running.drain().map(|(_, running)| running.answer).collect();
        if !std::mem::take(&mut state.started) {
            // The process failed to start, and the next one may fail as well, so waiting invocations fail, as on AWS.
            lost.extend(state.waiting.drain(..).map(|invocation| invocation.answer));
        }
        drop(state);
        for answer in lost {
            // A caller that has given up needs no result.
            let _ = answer.send(Err(Failure::Died));
        }
    }

    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        self.state().waiting.is_empty()
    }
}

impl Offer {
    /// Assigns the invocation to the process; `None` if the process has ended.
    pub fn accept(mut self, process: u64) -> Option<Work> {
        let invocations = Arc::clone(&self.invocations);
        let mut state = invocations.state();
        if process != state.process {
            drop(state);
            return None;
        }
        let Invocation { work, caller, answer } = self.invocation.take()?;
        state.running.insert(work.id.clone(), Running { answer, caller });
        Some(work)
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if let Some(invocation) = self.invocation.take() {
            self.invocations.state().waiting.push_front(invocation);
            self.invocations.serve();
        }
    }
}
