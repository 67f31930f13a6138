//! `waypost listen`: a temporary webhook with a feed, whose events are printed or forwarded until Ctrl-C.

mod feed;
mod forward;
mod report;

use std::{
    cell::Cell,
    io,
    time::{Duration, Instant},
};

use clap::Args;
use futures::{TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use self::{
    feed::{AckOutcome, Feed, FeedDelivery},
    forward::Target,
    report::{Arrival, Report},
};
use super::settings::Settings;
use crate::{
    failure::Failure,
    machine,
    output::Output,
    service::{Call, Service},
};

const EXAMPLES: &str = "\
Examples:
  waypost listen
  waypost listen --forward http://localhost:3000/hooks --types 'booking.*,payment.refunded'
  waypost listen --order subject --payload thin --filter '{\"propertyIdentifier\": [\"prop-1\"]}'
  waypost listen --json | jq .

It creates a temporary webhook, by default for every type, with full bodies and without order, and prints its signing
secret, with which the receiver verifies the requests. Bodies and headers are forwarded unchanged, up to ten events at a
time. A 2xx answer within 15 s confirms a delivery; for any other result, the delivery is reported as failed and is sent
again according to the service's retry schedule. Ctrl-C removes the webhook; the service removes it
when nothing has read its events for an hour.";

/// The maximum number of deliveries handled at once.
const AT_ONCE: usize = 10;
/// The pauses between requests while the service cannot be reached.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The time limit for removing the webhook at the end.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Listen {
    /// The address to post each event to, such as localhost:3000/hooks, or a port of this machine, such as 3000. Without it, events are printed.
    #[arg(long, value_name = "URL")]
    forward: Option<Target>,
    /// Prints the body of each event even if it is forwarded.
    #[arg(long)]
    print_body: bool,
    #[command(flatten)]
    settings: Settings,
}

/// The temporary webhook.
#[derive(Serialize)]
struct NewWebhook<'a> {
    name: String,
    delivery: &'a str,
    temporary: bool,
    #[serde(flatten)]
    settings: &'a Settings,
}

/// A created webhook.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    id: String,
    signing_secret: String,
}

/// A running `listen`.
struct Listener<'a> {
    service: &'a Service,
    feed: Feed<'a>,
    target: Option<Target>,
    report: Report,
    /// The number of failed requests that are being repeated. Several can fail at once, and one notice is enough.
    failing: Cell<usize>,
}

/// The name of the webhook, by which `trigger` finds it.
pub fn webhook_name() -> String {
    format!("waypost listen on {}", machine::host_name())
}

impl Listen {
    /// Listens until a signal or a permanent failure.
    pub async fn run(self, output: Output) -> Result<(), Failure> {
        let service = Service::of_login().await?;
        // Get a token first: until a signal is caught, Ctrl-C ends even a hanging connection at once.
        service.new_token().await?;
        // Catch signals before the webhook exists, so that Ctrl-C always removes it.
        let stop = stop_signal().map_err(Failure::Output)?;
        let settings = self.settings.of_new_webhook();
        let wanted = NewWebhook { name: webhook_name(), delivery: "pull", temporary: true, settings: &settings };
        let Created { id, signing_secret } = service.call(Call::post(&["webhook"], wanted)).await?;
        let report = Report { output, prints_bodies: self.print_body || self.forward.is_none() };
        let types = settings.types.unwrap_or_default();
        let begun = report.begun(&id, &signing_secret, &types, self.forward.as_ref(), &service.login.entity);
        let listener = Listener {
            service: &service,
            feed: Feed::new(&service, &id),
            target: self.forward,
            report,
            failing: Cell::new(0),
        };
        let ended = match begun {
            Ok(()) => tokio::select! {
                ended = listener.run() => ended,
                () = stop => Ok(()),
            },
            Err(error) => Err(error.into()),
        };
        if let Err(failure) = &ended
            && failure.is_of_kind("webhook-not-found")
        {
            report.remark("The webhook was removed elsewhere. Run `waypost listen` again to create a new one.");
            return ended;
        }
        let path = ["webhook", id.as_str()];
        let removed = timeout(REMOVED_WITHIN, service.text(Call::delete(&path))).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", REMOVED_WITHIN.as_secs());
            Err(Failure::Unreachable { address: service.login.address.clone(), reason })
        });
        match removed {
            Ok(_) => report.ended(&id, true)?,
            Err(failure) => {
                report.remark(format!(
                    "The webhook {id} was not removed: {} The service removes it in an hour.",
                    failure.sentence()
                ));
                report.ended(&id, false)?;
            }
        }
        ended
    }
}

impl Listener<'_> {
    /// Handles deliveries concurrently, as the service sends them. A webhook with `order` as `subject` has at most one
    /// unconfirmed delivery of each subject in its feed, so that their order is kept.
    async fn run(&self) -> Result<(), Failure> {
        let pages = stream::try_unfold((), |()| async move { self.next_page().await.map(|page| Some((page, ()))) });
        let deliveries = pages.map_ok(|page| stream::iter(page.into_iter().map(Ok::<_, Failure>))).try_flatten();
        deliveries.try_for_each_concurrent(AT_ONCE, |delivery| self.handle(delivery)).await
    }

    async fn next_page(&self) -> Result<Vec<FeedDelivery>, Failure> {
        let begun = Instant::now();
        let deliveries = self.patiently(async || self.feed.next().await).await?;
        // Do not poll in a tight loop if the service does not wait.
        if deliveries.is_empty() && begun.elapsed() < FIRST_PAUSE {
            machine::pause(FIRST_PAUSE).await;
        }
        Ok(deliveries)
    }

    /// Forwards a delivery, acknowledges it, and prints its line.
    async fn handle(&self, delivery: FeedDelivery) -> Result<(), Failure> {
        let begun = Instant::now();
        let answer = match &self.target {
            Some(target) => Some(target.forward(&delivery).await),
            None => None,
        };
        let arrival =
            Arrival { at: machine::now(), delivery: &delivery, answer: answer.as_ref(), took: begun.elapsed() };
        self.report.arrived(&arrival)?;
        let reason = answer.as_ref().and_then(forward::failure_of);
        let outcome =
            self.patiently(async || self.feed.acknowledge(&delivery.receipt, reason.as_deref()).await).await?;
        if outcome == AckOutcome::Expired {
            self.report.remark(format!(
                "{} was answered too late: the answer does not count, and the event will be sent again.",
                delivery.delivery_identifier
            ));
        }
        Ok(())
    }

    /// Repeats a request while its failure is temporary, and reports this once.
    async fn patiently<T>(&self, request: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
        let mut pause = FIRST_PAUSE;
        let mut failed = false;
        loop {
            match request().await {
                Err(failure) if failure.is_temporary() => {
                    if !failed && self.failing.replace(self.failing.get() + 1) == 0 {
                        self.report.remark(format!("{} Trying again until the service answers.", failure.sentence()));
                    }
                    failed = true;
                    machine::pause(failure.retry_after().unwrap_or(pause).clamp(pause, LONGEST_PAUSE)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                answered => {
                    let is_last = failed && self.failing.replace(self.failing.get() - 1) == 1;
                    if is_last && answered.is_ok() {
                        self.report.remark(format!("{} answers again.", self.service.login.address));
                    }
                    return answered;
                }
            }
        }
    }
}

/// Waits for Ctrl-C, SIGTERM, or the end of the terminal. Signals are caught from the call on, not only from the first
/// poll.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}

#[cfg(windows)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}
