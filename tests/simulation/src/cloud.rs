//! Lambda and its event sources: sandboxes, the queues' mappings, and the sweep's schedule.

use std::{
    any::Any,
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{DeliveryId, EventId, Time, pause};
use queue::{Receive, Received};
use tokio::{sync::Semaphore, time::timeout};
use webhooks::deliveries::queue::{Lane, inbox::BatchMessage, message::AttemptMessage};

use crate::{
    aws::{QUICK, SLOW},
    bundle::Bundle,
    clock::SandboxClock,
    faults::Fault,
    journal::Actor,
    sandbox::{Function, Phase, Sandbox},
    world::World,
};

/// The maximum number of concurrent invocations for one mapping.
const CONCURRENCY: usize = 6;
/// The concurrency in a history with one troubled tenant, so low that all invocations together have fewer permits than
/// its deliveries need.
const FEW: usize = 2;
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// The simulated Lambda.
pub struct Cloud {
    /// The state that the sandboxes share.
    pub world: Arc<World>,
    idle: Mutex<BTreeMap<Function, Vec<Warm>>>,
}

/// A sandbox together with its use cases.
#[derive(Clone)]
struct Warm {
    sandbox: Arc<Sandbox>,
    bundle: Arc<Bundle>,
}

impl Cloud {
    /// Lambda without sandboxes.
    pub fn new(world: Arc<World>) -> Arc<Self> {
        Arc::new(Self { world, idle: Mutex::default() })
    }

    fn idle(&self) -> MutexGuard<'_, BTreeMap<Function, Vec<Warm>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an idle sandbox, or starts a new one.
    fn take(&self, function: Function) -> Warm {
        if let Some(warm) = self.idle().get_mut(&function).and_then(Vec::pop) {
            let mut state = self.world.state();
            let mut rng = self.world.draws.about(&("jump", warm.sandbox.id, self.world.clock.millis()));
            if state.chances.occurs(Fault::ClockJump, &mut rng) {
                state.coverage.injected(function, "begin of an invocation", Fault::ClockJump);
                let skew = rng.i64(-500..=500);
                warm.sandbox.clock.jump(skew);
                let now = self.world.now();
                state.journal.note(now, warm.sandbox.actor(), || format!("! clock-jump to {skew} ms"));
            }
            return warm;
        }
        let id = {
            let mut state = self.world.state();
            state.numbers.sandbox += 1;
            state.numbers.sandbox
        };
        // The clocks of two sandboxes differ by at most a second.
        let skew = self.world.draws.about(&("skew", id)).i64(-500..=500);
        let sandbox = Arc::new(Sandbox::new(id, function, SandboxClock::new(self.world.clock, skew)));
        Warm { bundle: Arc::new(Bundle::start(&self.world, &sandbox)), sandbox }
    }

    /// Invokes a function. Returns `None` if the caller gets no response, since the sandbox died or did not respond in
    /// time.
    ///
    /// A sandbox that was frozen beyond the timeout continues when it thaws, but its caller does not learn the result.
    pub async fn invoke<T, F, W>(self: &Arc<Self>, function: Function, work: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Bundle>) -> W + Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        let warm = self.take(function);
        if function == Function::ManageGeoIp {
            self.world.state().geo_ip.operators.push(warm.sandbox.id);
        }
        let invocation = {
            let mut state = self.world.state();
            state.numbers.invocation += 1;
            state.numbers.invocation
        };
        warm.sandbox.begin(invocation);
        let cloud = Arc::clone(self);
        let sandbox = Arc::clone(&warm.sandbox);
        let run = tokio::spawn(async move {
            let done = warm.sandbox.work(work(Arc::clone(&warm.bundle))).await;
            if warm.sandbox.phase() != Phase::Dead {
                warm.sandbox.set(Phase::Frozen);
                cloud.idle().entry(function).or_default().push(warm);
            }
            done
        });
        match timeout(function.timeout(), run).await {
            Ok(Ok(done)) => done,
            Ok(Err(failed)) => {
                let panic = failed.into_panic();
                let panic = format!("{}: {}", function.name(), panic_text(panic.as_ref()));
                self.world.note_of(sandbox.actor(), || format!("panics: {panic}"));
                self.world.state().panics.push(panic);
                sandbox.set(Phase::Dead);
                None
            }
            Err(_late) => {
                if sandbox.phase() == Phase::Running {
                    self.world.note_of(sandbox.actor(), || "is ended by its timeout".to_owned());
                    self.world.interrupted(&sandbox);
                    sandbox.set(Phase::Dead);
                }
                None
            }
        }
    }

    /// Invokes each of a function's idle sandboxes once, with nothing to do for a few seconds.
    pub async fn wake_all(self: &Arc<Self>, function: Function) {
        const AWAKE: Duration = Duration::from_secs(10);
        let count = self.idle().get(&function).map_or(0, Vec::len);
        let invocations = (0..count).map(|_| {
            self.invoke(function, |bundle| async move {
                pause(AWAKE).await;
                drop(bundle);
            })
        });
        futures::future::join_all(invocations).await;
    }

    /// A queue's mapping, which invokes the dispatcher with batches of messages.
    /// <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>
    pub async fn map_queue(self: Arc<Self>, lane: Lane) {
        let is_apart = self.world.state().troubled.is_some();
        self.map_queue_with(lane, if is_apart { FEW } else { CONCURRENCY }).await;
    }

    /// A queue's mapping with this maximum concurrency.
    pub async fn map_queue_with(self: Arc<Self>, lane: Lane, concurrency: usize) {
        let queue = name(lane);
        let free = Arc::new(Semaphore::new(concurrency));
        let receive = Receive { most: 10, visibility: None, wait: Some(Duration::from_secs(20)) };
        loop {
            let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
            let received = self.world.queues.receive(queue, receive).await.unwrap_or_default();
            let batch = self.delivered(queue, received);
            if batch.is_empty() {
                continue;
            }
            let cloud = Arc::clone(&self);
            tokio::spawn(async move {
                cloud.dispatch(lane, batch).await;
                drop(permit);
            });
        }
    }

    /// The messages that reach the dispatcher now. Some messages are lost, some arrive late, and some arrive twice.
    fn delivered(self: &Arc<Self>, queue: &'static str, received: Vec<Received>) -> Vec<Received> {
        let mut now = Vec::new();
        for message in received {
            self.world.state().coverage.reached(Function::DispatchDeliveries, "message");
            let mut rng = self.world.draws.about(&("message", self.world.clock.millis(), &message.message.body));
            let mut occurs = |fault: Fault| {
                let mut state = self.world.state();
                let occurs = state.chances.occurs(fault, &mut rng);
                if occurs {
                    state.coverage.injected(Function::DispatchDeliveries, "message", fault);
                }
                occurs
            };
            let (lost, late, twice) =
                (occurs(Fault::MessageLost), occurs(Fault::MessageLate), occurs(Fault::MessageTwice));
            if lost {
                self.world.note_of(Actor::Queue(queue), || format!("! message-lost {}", message.message.body));
                let _ = self.world.queues.delete(queue, &message.receipt);
                continue;
            }
            if late || twice {
                let wait = Duration::from_millis(if late { rng.u64(1_000..300_000) } else { rng.u64(0..2_000) });
                let name = if late { "message-late" } else { "message-twice" };
                self.world.note_of(Actor::Queue(queue), || {
                    format!("! {name} {}, delivered after {wait:?}", message.message.body)
                });
                let cloud = Arc::clone(self);
                let lane = Lane::of(queue == SLOW);
                let copy = message.clone();
                tokio::spawn(async move {
                    pause(wait).await;
                    cloud.dispatch(lane, vec![copy]).await;
                });
            }
            if !late {
                now.push(message);
            }
        }
        now
    }

    /// Invokes the dispatcher with a batch, and deletes the messages that it has handled.
    async fn dispatch(self: &Arc<Self>, lane: Lane, batch: Vec<Received>) {
        let handed = batch.clone();
        let again = self
            .invoke(Function::DispatchDeliveries, move |bundle| async move {
                let messages = handed.iter().map(read).collect();
                bundle.dispatcher().dispatch(lane, messages).await
            })
            .await;
        let Some(again) = again else { return };
        for message in batch {
            if !again.contains(&message.message.id) {
                let _ = self.world.queues.delete(name(lane), &message.receipt);
            }
        }
    }

    /// Sweeps once, and returns the number of deliveries and events that it sent; `None` if it failed. Lambda would
    /// retry a failed sweep twice, but this is not simulated, since the next sweep comes sooner.
    pub async fn sweep(self: &Arc<Self>) -> Option<usize> {
        let swept =
            self.invoke(Function::SweepDeliveries, |bundle| async move { bundle.sweeper().sweep().await }).await;
        if let Some(Err(error)) = &swept {
            self.world.note(|| format!("the sweep failed: {}", base::logging::chain(error)));
        }
        swept?.ok()
    }

    /// Sweeps on the schedule while something is due. Other sweeps would find nothing and are omitted to save time.
    pub async fn sweep_on_schedule(self: Arc<Self>) {
        loop {
            let now = self.world.now();
            let next = self.next_due().map_or(now + SWEEP_INTERVAL, |due| due.max(now));
            let minute = SWEEP_INTERVAL.as_millis() as i64;
            let beat = Time::from_millis((next.as_millis() / minute + 1) * minute);
            // In the meantime, a delivery that is due earlier may appear.
            pause(beat.since(now).min(SWEEP_INTERVAL)).await;
            let now = self.world.now();
            if self.next_due().is_some_and(|due| due <= now) {
                let cloud = Arc::clone(&self);
                tokio::spawn(async move { cloud.sweep().await });
            }
        }
    }

    /// The earliest due time in the table, excluding connections, which are refreshed again and again.
    pub fn next_due(&self) -> Option<Time> {
        /// The ages at which the sweep examines an event, including a margin for the difference between two clocks.
        const LOOKS: [(&str, Duration); 2] =
            [("OPENED", Duration::from_secs(21)), ("OPENED-AGAIN", Duration::from_secs(10 * 60 + 1))];
        let due = self.earliest(|shard| shard != "REFRESH");
        due.into_iter().chain(LOOKS.into_iter().filter_map(|(positions, age)| self.next_look(positions, age))).min()
    }

    /// When the sweep examines the first event after these positions, according to the slowest clock.
    fn next_look(&self, positions: &str, age: Duration) -> Option<Time> {
        let state = self.world.state();
        let opened = state.table.item(&("SWEEP".to_owned(), positions.to_owned()));
        let bodies = opened.and_then(|item| item.get("bodies")?["L"].as_array().cloned()).unwrap_or_default();
        // The second examination changes nothing more, but its sweeps would take up a third of a history's time.
        let is_unopened = |event: &EventId, item: &crate::aws::table::Item| {
            let targets = item.get("targets").and_then(|targets| targets["L"].as_array()).map_or(0, Vec::len);
            let id = |ordinal| DeliveryId::of(event, ordinal).to_string();
            (0..targets).any(|ordinal| state.table.item(&(format!("EVT#{event}"), id(ordinal))).is_none())
        };
        let new = state.table.items().filter_map(|((partition, sort), item)| {
            let shard: usize = partition.strip_prefix("EVENTS#")?.parse().ok()?;
            let event = EventId::parse(sort)?;
            let position = bodies.get(shard).and_then(|body| body["S"].as_str()).unwrap_or_default();
            let is_looked_at = positions == "OPENED" || is_unopened(&event, item);
            (event.body() > position && is_looked_at).then(|| event.time() + age)
        });
        new.min()
    }

    /// The earliest time when a connection is due.
    pub fn next_refresh(&self) -> Option<Time> {
        self.earliest(|shard| shard == "REFRESH")
    }

    fn earliest(&self, of: impl Fn(&str) -> bool) -> Option<Time> {
        let state = self.world.state();
        let shard = |item: &crate::aws::table::Item| item.get("dueShard")?["S"].as_str().map(&of);
        let due = state.table.items().filter(|(_, item)| shard(item) == Some(true));
        due.filter_map(|(_, item)| item.get("dueAt")?["S"].as_str()?.parse().ok()).min()
    }
}

fn name(lane: Lane) -> &'static str {
    match lane {
        Lane::Quick => QUICK,
        Lane::Slow => SLOW,
    }
}

/// The message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}

/// A message, as Lambda passes it to the dispatcher.
fn read(received: &Received) -> BatchMessage {
    let message = &received.message;
    BatchMessage { message_id: message.id.clone(), attempts: AttemptMessage::read(&message.body) }
}
