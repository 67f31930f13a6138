//! `waypost replay`: delivers events to a webhook that did not get them when they were published.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{answer::print_answer, range::Range};
use crate::{
    failure::Failure,
    output::{Output, visible_line},
    service::{Call, Service, segment},
};

const EXAMPLES: &str = "\
Examples:
  waypost replay whk_01m74zy5eva3kj3s4w04zg1hhc --from 7d --dry-run
  waypost replay whk_01m74zy5eva3kj3s4w04zg1hhc --from 2026-11-13T00:00:00Z --types 'booking.*'

The service delivers the events that were published within the range, match the webhook's current types and filter, and
have no delivery to it yet: in the background, oldest first, and none twice. A webhook has one replay at a time: until
it ends, repeat the command only with the same times, not with a duration.";

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
#[command(after_help = EXAMPLES)]
pub struct Replay {
    /// The webhook's identifier, as `waypost webhooks` shows it.
    #[arg(value_name = "WEBHOOK", value_parser = segment)]
    #[serde(skip)]
    webhook: String,
    #[command(flatten)]
    #[serde(flatten)]
    range: Range,
    /// Comma-separated event types, or groups such as 'booking.*'. Defaults to all the webhook's types.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
    /// Counts the events without delivering them.
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replayed {
    count: u64,
    count_is_exact: bool,
    dry_run: bool,
    message: Option<String>,
}

impl Replay {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let path = ["webhook", &self.webhook, "replay"];
        print_answer(service, Call::post(&path, &self), output, |replayed: &Replayed| {
            shown(replayed, &self.webhook, &self.progress())
        })
        .await
    }

    /// The command that counts the remaining events.
    fn progress(&self) -> String {
        let types = if self.types.is_empty() { String::new() } else { format!(" --types '{}'", self.types.join(",")) };
        format!("waypost replay {} {}{types} --dry-run", visible_line(&self.webhook), self.range.options())
    }
}

fn shown(replayed: &Replayed, webhook: &str, progress: &str) -> String {
    let Replayed { count, count_is_exact, dry_run, message } = replayed;
    if let Some(message) = message {
        return visible_line(message);
    }
    let count = if *count_is_exact { count.to_string() } else { format!("{count} or more") };
    if *dry_run {
        return format!("Events that a replay would deliver: {count}.");
    }
    format!(
        "Events that are being delivered: {count}. The first deliveries follow within two minutes.\n\
         `waypost deliveries --webhook {}` lists them.\n\
         `{progress}` counts the events that are left.",
        visible_line(webhook)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_is_shown_with_its_number_or_the_reason_for_none() {
        let progress = "waypost replay whk_1 --from 2026-11-13T00:00:00.000Z --dry-run";
        let text = |replayed: &str| shown(&serde_json::from_str(replayed).expect("a replay"), "whk_1", progress);
        let some = text(r#"{"count":1000,"countIsExact":false,"dryRun":false}"#);
        assert!(some.starts_with("Events that are being delivered: 1000 or more. The first deliveries"), "{some}");
        assert!(some.contains("within two minutes") && some.contains(progress), "{some}");
        let counted = text(r#"{"count":3,"countIsExact":true,"dryRun":true}"#);
        assert_eq!(counted, "Events that a replay would deliver: 3.");
        let none = text(r#"{"count":0,"countIsExact":true,"dryRun":true,"message":"None is left."}"#);
        assert_eq!(none, "None is left.");
    }
}
