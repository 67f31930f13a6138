//! Lambda sandboxes, which can die at any await, freeze, and continue.
//! <https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html>

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use base::pause;

use tracing::Instrument;

use crate::{clock::SandboxClock, journal::Actor, service_log};

/// The functions whose use cases the simulation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Function {
    PublishEvent,
    IngestEvent,
    DispatchDeliveries,
    SweepDeliveries,
    ManageWebhooks,
    ResendDelivery,
    CancelDelivery,
    EraseEvent,
    RecoverDeliveries,
    ShowDelivery,
    ConnectProvider,
    ProviderStart,
    ProviderCallback,
    DisconnectProvider,
    RefreshConnections,
    ListConnections,
    ManageApplications,
    GetToken,
    RevokeToken,
    UpdateGeoIp,
    /// The operator's program, on the operator's machine.
    ManageGeoIp,
    ReadFeed,
    AcknowledgeFeed,
}

impl Function {
    /// The function's name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::PublishEvent => "publish-event",
            Self::IngestEvent => "ingest-event",
            Self::DispatchDeliveries => "dispatch-deliveries",
            Self::SweepDeliveries => "sweep-deliveries",
            Self::ManageWebhooks => "manage-webhooks",
            Self::ResendDelivery => "resend-delivery",
            Self::CancelDelivery => "cancel-delivery",
            Self::EraseEvent => "erase-event",
            Self::RecoverDeliveries => "recover-deliveries",
            Self::ShowDelivery => "show-delivery",
            Self::ConnectProvider => "connect-provider",
            Self::ProviderStart => "provider-start",
            Self::ProviderCallback => "provider-callback",
            Self::DisconnectProvider => "disconnect-provider",
            Self::RefreshConnections => "refresh-connections",
            Self::ListConnections => "list-connections",
            Self::ManageApplications => "manage-applications",
            Self::GetToken => "token",
            Self::RevokeToken => "revoke-token",
            Self::UpdateGeoIp => "geo-ip-update",
            Self::ManageGeoIp => "waypost-admin geo-ip",
            Self::ReadFeed => "read-feed",
            Self::AcknowledgeFeed => "acknowledge-feed",
        }
    }

    /// Whether the function's calls take turns, because it also works on other threads.
    pub fn takes_turns(self) -> bool {
        matches!(self, Self::UpdateGeoIp | Self::ManageGeoIp)
    }

    /// The function's timeout, as in template.yaml.
    pub fn timeout(self) -> Duration {
        match self {
            Self::DispatchDeliveries => Duration::from_secs(150),
            Self::SweepDeliveries => Duration::from_secs(60),
            Self::RefreshConnections => Duration::from_secs(90),
            Self::ReadFeed => Duration::from_secs(25),
            Self::AcknowledgeFeed => Duration::from_secs(15),
            Self::UpdateGeoIp | Self::ManageGeoIp => Duration::from_secs(900),
            _ => Duration::from_secs(29),
        }
    }
}

/// A sandbox's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The sandbox is working on an invocation.
    Running,
    /// The sandbox is frozen, either between two invocations or in the middle of one.
    Frozen,
    /// The sandbox has ended, and no part of it continues.
    Dead,
}

/// A simulated Lambda sandbox.
#[derive(Debug)]
pub struct Sandbox {
    /// The sandbox's number within the history.
    pub id: u64,
    /// The function that the sandbox runs.
    pub function: Function,
    /// The sandbox's clock.
    pub clock: SandboxClock,
    invocation: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    phase: Phase,
    /// Wakes the invocation's work when the phase changes.
    work: Option<Waker>,
    /// Wakes the calls that are waiting for the sandbox to run.
    calls: Vec<Waker>,
}

impl Sandbox {
    /// A sandbox that has never been invoked.
    pub fn new(id: u64, function: Function, clock: SandboxClock) -> Self {
        let inner = Mutex::new(Inner { phase: Phase::Frozen, work: None, calls: Vec::new() });
        Self { id, function, clock, invocation: AtomicU64::new(0), inner }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sandbox's name in the log.
    pub fn actor(&self) -> Actor {
        Actor::Sandbox(self.function, self.id)
    }

    /// The sandbox's current phase.
    pub fn phase(&self) -> Phase {
        self.inner().phase
    }

    /// The number of the sandbox's invocation within the history.
    pub fn invocation(&self) -> u64 {
        self.invocation.load(Relaxed)
    }

    /// Begins an invocation.
    pub fn begin(&self, invocation: u64) {
        self.invocation.store(invocation, Relaxed);
        self.set(Phase::Running);
    }

    /// Sets the phase, unless the sandbox is dead.
    pub fn set(&self, phase: Phase) {
        let waiting = {
            let mut inner = self.inner();
            if inner.phase != Phase::Dead {
                inner.phase = phase;
            }
            // Wake the calls first: tokio reads from sockets before checking its timers, so a response that arrived
            // during a freeze comes before a timeout that ended in the meantime.
            std::mem::take(&mut inner.calls).into_iter().chain(inner.work.take())
        };
        waiting.for_each(Waker::wake);
    }

    /// Freezes the sandbox for this long.
    pub fn freeze(self: &Arc<Self>, time: Duration) {
        self.set(Phase::Frozen);
        let sandbox = Arc::clone(self);
        tokio::spawn(async move {
            pause(time).await;
            sandbox.set(Phase::Running);
        });
    }

    /// Completes once the sandbox is running; never completes if the sandbox is dead.
    pub async fn running(&self) {
        poll_fn(|cx| self.poll_running(cx)).await;
    }

    fn poll_running(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.inner();
        if inner.phase == Phase::Running {
            return Poll::Ready(());
        }
        inner.calls.push(cx.waker().clone());
        Poll::Pending
    }

    /// Runs an invocation's work while the sandbox is running. Returns `None` if the sandbox dies before the end.
    pub fn work<T>(self: &Arc<Self>, work: impl Future<Output = T> + Send + 'static) -> Work<T> {
        Work { sandbox: Arc::clone(self), work: Some(Box::pin(work.instrument(service_log::span(self)))) }
    }
}

/// The work of an invocation.
pub struct Work<T> {
    sandbox: Arc<Sandbox>,
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
}

impl<T> Future for Work<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        loop {
            match self.sandbox.phase() {
                Phase::Dead => {
                    self.work = None;
                    return Poll::Ready(None);
                }
                Phase::Frozen => {
                    self.sandbox.inner().work = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Phase::Running => {}
            }
            let Some(work) = &mut self.work else { return Poll::Ready(None) };
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            if self.sandbox.phase() == Phase::Running {
                self.sandbox.inner().work = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use storage::table::{Put, is_new};
    use tokio::time::Instant;

    use super::*;
    use crate::{
        cloud::Cloud,
        draws::Draws,
        faults::{Chances, Fault},
        history::{SCHEMA, paused_runtime},
        journal::Journal,
        world::World,
    };

    const DOING: &str = "testing a freeze";

    /// Otherwise, no worker would continue with a claim whose lease has expired in the meantime.
    #[test]
    fn an_answer_during_a_freeze_precedes_the_timeouts() {
        base::metric::switch_off();
        let long = paused_runtime().block_on(async {
            let every_call = Chances::all().only(&[Fault::FrozenAfter]).times(400);
            let cloud = Cloud::new(World::new(SCHEMA.clone(), Draws::new(1), every_call, Journal::brief()));
            let mut long = 0;
            for number in 0..20 {
                let began = Instant::now();
                let written = cloud.invoke(Function::DispatchDeliveries, move |bundle| async move {
                    let item = BTreeMap::from([("pk", format!("ITEM#{number}")), ("sk", "ITEM".to_owned())]);
                    let put = Put::item(&item, DOING).expect("the item has a key").only_if(is_new());
                    let limited = bundle.table.until(Instant::now() + Duration::from_secs(5));
                    limited.write_together(put, DOING).await
                });
                // If a sandbox is frozen for longer than the timeout, the caller of its invocation does not learn the
                // result.
                let Some(written) = written.await else { continue };
                assert!(written.expect("the answer is read").is_done());
                long += usize::from(began.elapsed() > Duration::from_secs(45));
            }
            long
        });
        assert!(long > 0);
    }
}
