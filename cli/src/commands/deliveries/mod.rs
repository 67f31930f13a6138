//! `waypost deliveries`: lists deliveries, or follows them.

mod follow;
mod pages;
mod row;

use clap::Args;

pub use self::pages::{Found, found, newest};
use self::{
    follow::Follow,
    pages::Filter,
    row::{COLUMNS, Names, row},
};
use crate::{failure::Failure, machine, output::Output, service::Service, table::table};

const EXAMPLES: &str = "\
Examples:
  waypost deliveries --failed
  waypost deliveries --subject B-20417
  waypost deliveries --follow
  waypost deliveries --failed --limit 500 --json | jq -r '.[].id' | xargs -n 1 waypost resend --json

With --follow, it prints each delivery within seconds after it is delivered, fails permanently or is cancelled. Of the
deliveries that are already open, it follows the newest 100. It prints a resent, recovered or replayed delivery, or one
of an older event, only if that delivery stays open for a few seconds: after a recovery or a replay, list the deliveries
instead.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Deliveries {
    /// Only deliveries that are being retried or have failed permanently. With `--follow`, only those that have failed
    /// permanently.
    #[arg(long)]
    failed: bool,
    /// Only deliveries of events with this subject, such as a booking number.
    #[arg(long)]
    subject: Option<String>,
    /// Only deliveries to this webhook.
    #[arg(long, value_name = "ID")]
    webhook: Option<String>,
    /// The maximum number of deliveries.
    #[arg(long, value_name = "NUMBER", default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,
    /// Prints deliveries as they end, until Ctrl-C. With --json, one value per line.
    #[arg(long, short, conflicts_with = "limit")]
    follow: bool,
}

impl Deliveries {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        if self.follow {
            let names = if output.json { Names::default() } else { Names::of(service).await };
            let follow = Follow { service, filters: self.filters(), failed: self.failed, output };
            return follow.run(names).await;
        }
        let mut filters = self.filters();
        if self.failed {
            filters.insert(0, ("status", "failed,retrying".to_owned()));
        }
        let Found { deliveries: found, is_complete } = found(service, &filters, self.limit.into()).await?;
        if output.json {
            output.write(&found, "")?;
            self.say_if_cut(is_complete, output);
            return Ok(());
        }
        if found.is_empty() {
            output.remark(self.hint());
            return Ok(());
        }
        let names = Names::of(service).await;
        let rows = found.iter().map(|delivery| service.read(delivery.get()).map(|listed| row(&listed, &names)));
        let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
        output.text(table(COLUMNS, &rows, machine::columns()))?;
        self.say_if_cut(is_complete, output);
        Ok(())
    }

    /// Says that the limit cut the list.
    fn say_if_cut(&self, is_complete: bool, output: Output) {
        let limit = self.limit;
        if !is_complete && limit < u16::MAX {
            let more = limit.saturating_mul(10);
            output.remark(format!("{limit} shown; there may be more: `--limit {more}` shows up to {more}."));
        }
    }

    /// The filters that apply to a delivery regardless of its status.
    fn filters(&self) -> Vec<Filter> {
        let subject = self.subject.clone().map(|subject| ("subject", subject));
        let webhook = self.webhook.clone().map(|webhook| ("webhookIdentifier", webhook));
        subject.into_iter().chain(webhook).collect()
    }

    /// Why a list is empty, and the next step.
    fn hint(&self) -> &'static str {
        if self.subject.is_some() {
            "No delivery matches. `--subject` finds only the exact subject; `waypost why SUBJECT` also tries other \
             capitals."
        } else if self.failed || self.webhook.is_some() {
            "No delivery matches. Try fewer filters; `waypost webhooks show ID` shows the types that a webhook receives."
        } else {
            "There is no delivery yet. `waypost webhooks` lists the webhooks; `waypost trigger TYPE` sends a test event."
        }
    }
}
