//! `waypost-admin data-keys`: the keys of sealed values.

use clap::Subcommand;
use operator::data_keys::{Rotated, Work, reseal::Counts, rotate};
use serde_json::json;

use crate::{arguments::Which, failure::Failure, output::Output};

pub const EXAMPLES: &str = "\
Examples:
  waypost-admin data-keys rotate --stack waypost
  waypost-admin data-keys rotate --reseal-only --stack waypost   # after one that did not end well
  waypost-admin data-keys rotate --forget --data .local          # a day later

It may be stopped at any moment, and run again. Progress is shown on standard error.";

/// Rotates the keys of the values that the table holds sealed: webhooks' secrets and headers, and providers' tokens.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Makes a new key, and seals anew the values that older keys sealed. Reads the whole table once.
    Rotate {
        /// Makes no new key; seals anew the values that the current one has not sealed.
        #[arg(long)]
        reseal_only: bool,
        /// Makes no new key; seals anew the values that are left, and removes the keys that no value needs any more: those that
        /// were replaced a quarter of an hour ago or earlier.
        #[arg(long, conflicts_with = "reseal_only")]
        forget: bool,
    },
}

impl Command {
    /// Rotates the keys.
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let Self::Rotate { reseal_only, forget } = self;
        let work = match (reseal_only, forget) {
            (true, _) => Work::Reseal,
            (false, true) => Work::Forget,
            (false, false) => Work::Rotate,
        };
        let Rotated { counts, current, forgotten } = rotate(&which.open().await?, work).await?;
        let Counts { seen, webhooks, connections, deliveries, busy: _, unreadable } = counts;
        let json = json!({
            "itemsSeen": seen, "webhooksSealed": webhooks, "connectionsSealed": connections,
            "deliveriesMasked": deliveries, "unreadable": unreadable, "currentKey": current, "forgottenKeys": forgotten,
        });
        let text = format!(
            "{seen} items looked at: {webhooks} webhooks and {connections} connections sealed anew, {unreadable} unreadable, \
             {deliveries} deliveries masked; current key {current}, {} keys forgotten",
            forgotten.len()
        );
        output.write(json, text)?;
        if unreadable > 0 { Err(Failure::Unreadable(unreadable)) } else { Ok(()) }
    }
}
