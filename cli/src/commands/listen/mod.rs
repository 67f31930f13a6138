//! `waypost listen`: a temporary webhook with a feed, whose events are printed or forwarded until Ctrl-C.

mod feed;
mod forward;
mod report;

use std::time::{Duration, Instant};

use clap::Args;
use futures::{TryStreamExt, stream};
use tokio::time::timeout;

use self::{
    feed::{AckOutcome, Feed, FeedDelivery},
    forward::Target,
    report::{Arrival, Report},
};
use super::{
    patience::{FIRST_PAUSE, Patience},
    settings::{CreatedWebhook, Settings, WebhookBody},
};
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

The command creates a temporary webhook: by default for every type, with full bodies, in no particular order. It prints
the signing secret that your receiver needs to verify requests. It forwards bodies and headers unchanged, up to ten
events at a time. A 2xx answer within 15 s confirms a delivery; any other result counts as a failure, and the service
retries the delivery on its schedule. Ctrl-C removes the webhook; otherwise, the service removes it when its feed has
not been read for an hour. With --json, it prints one value per line.";

/// The maximum number of deliveries handled at once.
const AT_ONCE: usize = 10;
/// The time limit for removing the webhook on exit.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Listen {
    /// The address to post each event to, such as localhost:3000/hooks, or a port on this machine, such as 3000.
    /// Without it, events are printed.
    #[arg(long, value_name = "URL")]
    forward: Option<Target>,
    /// Prints each event's body, even when forwarding.
    #[arg(long)]
    print_body: bool,
    #[command(flatten)]
    settings: Settings,
}

/// A running `listen`.
struct Listener<'a> {
    feed: Feed<'a>,
    target: Option<Target>,
    report: Report,
    patience: Patience<'a>,
}

/// The webhook's name, by which `trigger` finds it.
pub fn webhook_name() -> String {
    format!("waypost listen on {}", machine::host_name())
}

impl Listen {
    /// Listens until a signal or a permanent failure.
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        // Get a token first: until signals are caught, Ctrl-C ends even a hanging connection at once.
        service.new_token().await?;
        // Catch signals before the webhook exists, so that Ctrl-C always removes it.
        let stop = machine::stop_signal().map_err(Failure::Output)?;
        let settings = self.settings.of_new_webhook();
        let name = webhook_name();
        let wanted =
            WebhookBody { name: Some(&name), delivery: Some("pull"), temporary: true, ..WebhookBody::of(&settings) };
        let CreatedWebhook { id, signing_secret, .. } = service.call(wanted.creation()).await?;
        let report = Report { output, prints_bodies: self.print_body || self.forward.is_none() };
        let types = settings.types.unwrap_or_default();
        let begun = report.begun(&id, &signing_secret, &types, self.forward.as_ref(), &service.login.entity);
        let listener = Listener {
            feed: Feed::new(service, &id),
            target: self.forward,
            report,
            patience: Patience::new(output, &service.login.address),
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
    /// Handles deliveries concurrently, as the service sends them. If the webhook's `order` is `subject`, its feed has
    /// at most one unconfirmed delivery for each subject, so deliveries stay in order.
    async fn run(&self) -> Result<(), Failure> {
        let pages = stream::try_unfold((), |()| async move { self.next_page().await.map(|page| Some((page, ()))) });
        let deliveries = pages.map_ok(|page| stream::iter(page.into_iter().map(Ok::<_, Failure>))).try_flatten();
        deliveries.try_for_each_concurrent(AT_ONCE, |delivery| self.handle(delivery)).await
    }

    async fn next_page(&self) -> Result<Vec<FeedDelivery>, Failure> {
        let begun = Instant::now();
        let deliveries = self.patience.repeat(async || self.feed.next().await).await?;
        // Avoid a tight loop if the service responds without waiting.
        if deliveries.is_empty() && begun.elapsed() < FIRST_PAUSE {
            machine::pause(FIRST_PAUSE).await;
        }
        Ok(deliveries)
    }

    /// Forwards a delivery, acknowledges it and prints its line.
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
            self.patience.repeat(async || self.feed.acknowledge(&delivery.receipt, reason.as_deref()).await).await?;
        if outcome == AckOutcome::Expired {
            self.report.remark(format!(
                "{} was answered too late: the answer does not count, and the event will be sent again.",
                delivery.delivery_identifier
            ));
        }
        Ok(())
    }
}
