//! `waypost-admin data-keys`: the keys of sealed values.

use base::Time;
use clap::Subcommand;
use operator::data_keys::{Rotated, Work, reseal::Counts, rotate};
use serde_json::json;

use crate::{arguments::Which, failure::Failure, output::Output};

pub const EXAMPLES: &str = "\
Examples:
  waypost-admin data-keys rotate --stack waypost
  waypost-admin data-keys rotate --reseal-only --stack waypost   # after a rotation that failed
  waypost-admin data-keys rotate --forget --data .local          # a day later

You can interrupt it at any time, and run it again. Progress is shown on standard error.";

/// Rotates the keys of the sealed values in the table: webhooks' secrets and headers, and providers' tokens.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Creates a new key, and reseals the values that older keys sealed. Reads the whole table once.
    Rotate {
        /// Creates no new key; reseals the values that older keys sealed.
        #[arg(long)]
        reseal_only: bool,
        /// Creates no new key; reseals the remaining values, and removes unused keys that were replaced at least 15
        /// minutes ago.
        #[arg(long, conflicts_with = "reseal_only")]
        forget: bool,
    },
}

impl Command {
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let Self::Rotate { reseal_only, forget } = self;
        let work = match (reseal_only, forget) {
            (true, _) => Work::Reseal,
            (false, true) => Work::Forget,
            (false, false) => Work::Rotate,
        };
        let Rotated { counts, current, forgotten, kept, settled_at } = rotate(&which.open().await?, work).await?;
        let Counts { seen, webhooks, connections, busy: _, unreadable } = counts;
        let json = json!({
            "itemsSeen": seen, "webhooksSealed": webhooks, "connectionsSealed": connections,
            "unreadable": unreadable, "currentKey": current, "forgottenKeys": forgotten,
            "keptKeys": kept, "keptUntil": settled_at.filter(|_| !kept.is_empty()),
        });
        let text = format!(
            "{seen} items examined: {webhooks} webhooks and {connections} connections resealed, {unreadable} unreadable; \
             current key {current}, {} keys forgotten{}",
            forgotten.len(),
            staying(&kept, settled_at)
        );
        output.write(json, text)?;
        if unreadable > 0 { Err(Failure::Unreadable(unreadable)) } else { Ok(()) }
    }
}

/// A line about the old keys still in the ring, so that an operator does not assume that they were forgotten.
fn staying(kept: &[String], settled_at: Option<Time>) -> String {
    let from = settled_at.map(|time| format!(" from {time} on")).unwrap_or_default();
    match kept.len() {
        0 => String::new(),
        1 => format!("\n1 old key stays in the ring: {}; `--forget` removes it{from}", kept[0]),
        several => format!("\n{several} old keys stay in the ring: {}; `--forget` removes them{from}", kept.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_that_stays_is_named_with_the_time_of_its_possible_removal() {
        let at = Some(Time::from_millis(1_795_167_900_000));
        assert_eq!(staying(&[], at), "");
        let [one, two] = ["1-a", "2-b"].map(str::to_owned);
        let said = staying(std::slice::from_ref(&one), at);
        assert_eq!(said, "\n1 old key stays in the ring: 1-a; `--forget` removes it from 2026-11-20T09:45:00.000Z on");
        let said = staying(&[one, two], None);
        assert_eq!(said, "\n2 old keys stay in the ring: 1-a, 2-b; `--forget` removes them");
    }
}
