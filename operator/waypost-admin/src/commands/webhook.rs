//! `waypost-admin webhook`: webhooks of all managing entities.

use std::fmt::{self, Display};

use clap::Subcommand;
use operator::failing_webhooks::{self, FailingState, FailingWebhook};

use crate::{arguments::Which, failure::Failure, output::Output};

pub const EXAMPLES: &str = "\
Examples:
  waypost-admin webhook list --failing --stack waypost
  waypost-admin webhook list --failing --data .local --json

It reads the whole table once, and changes nothing. Progress is shown on standard error.";

/// Finds webhooks of all managing entities.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Lists webhooks of all managing entities.
    List {
        /// Webhooks whose last attempts failed, whose deliveries are waiting for the breaker, or that the service has
        /// disabled.
        #[arg(long, required = true)]
        failing: bool,
    },
}

impl Command {
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let Self::List { failing: _ } = self;
        let found = failing_webhooks::find(&which.open().await?.table).await.map_err(Failure::Webhooks)?;
        let texts: Vec<_> = found.iter().map(|webhook| Shown(webhook).to_string()).collect();
        let text = if texts.is_empty() { "no webhook is failing".to_owned() } else { texts.join("\n") };
        output.write(&found, text)
    }
}

/// Formats a webhook.
struct Shown<'a>(&'a FailingWebhook);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let webhook = self.0;
        writeln!(f, "{}  {}", webhook.id, webhook.name)?;
        writeln!(f, "  of        {}", webhook.owner_identifier)?;
        writeln!(f, "  endpoint  {}", webhook.event_url)?;
        write!(f, "  state     ")?;
        match (webhook.state, webhook.paused_until, &webhook.disabled_reason) {
            (FailingState::Disabled, _, Some(reason)) => write!(f, "disabled: {reason}")?,
            (FailingState::Paused, Some(end), _) if webhook.paused_by_owner => {
                write!(f, "paused; its owner paused it as well, until {end}")?
            }
            (FailingState::Paused, None, _) if webhook.paused_by_owner => {
                write!(f, "paused; its owner paused it as well, until they resume it")?
            }
            (FailingState::Paused, Some(end), _) => write!(f, "paused; the next probe is due at {end}")?,
            (state, ..) => write!(f, "{state}")?,
        }
        match webhook.failing_since {
            Some(since) => write!(f, "\n  failures  {} in a row, the first at {since}", webhook.failures_in_row),
            None => Ok(()),
        }
    }
}
