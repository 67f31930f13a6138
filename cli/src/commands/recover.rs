//! `waypost recover`: sends failed and waiting deliveries of a webhook again.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::{answer::print_answer, range::Range};
use crate::{
    failure::Failure,
    output::{Output, visible_line},
    service::{Call, Service, segment},
};

const EXAMPLES: &str = "\
Examples:
  waypost recover whk_01m74zy5eva3kj3s4w04zg1hhc --from 3h
  waypost recover whk_01m74zy5eva3kj3s4w04zg1hhc --from 2026-11-19T22:00:00Z --until 2026-11-20T06:00:00Z

The service sends the deliveries created within the range in the background, oldest first. To see how many are left,
repeat the command with the same times, not with a duration. Events published while the webhook was disabled have no
deliveries: send them with `waypost replay`.";

#[derive(Debug, Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct Recover {
    /// The webhook's identifier, as `waypost webhooks` shows it.
    #[arg(value_name = "WEBHOOK", value_parser = segment)]
    #[serde(skip)]
    webhook: String,
    #[command(flatten)]
    #[serde(flatten)]
    range: Range,
    /// `failed` includes cancelled deliveries; `waiting` deliveries are waiting for their next attempt. Defaults to
    /// `both`.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<Include>,
}

#[derive(Debug, Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Include {
    Failed,
    Waiting,
    Both,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recovery {
    count: u64,
    count_is_exact: bool,
    failed: u64,
    waiting: u64,
    message: Option<String>,
}

impl Recover {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let path = ["webhook", &self.webhook, "recover"];
        print_answer(service, Call::post(&path, &self), output, |recovery: &Recovery| shown(recovery, &self.webhook))
            .await
    }
}

fn shown(recovery: &Recovery, webhook: &str) -> String {
    let Recovery { count, count_is_exact, failed, waiting, message } = recovery;
    if *count == 0 {
        return message.as_deref().map_or_else(|| "There is nothing to recover.".to_owned(), visible_line);
    }
    let more = if *count_is_exact { "" } else { "more than " };
    format!(
        "Deliveries being sent again: {more}{count} ({failed} failed or cancelled, {waiting} waiting).\n\
         `waypost deliveries --webhook {}` lists them.",
        visible_line(webhook)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_is_shown_with_its_numbers_or_the_reason_for_none() {
        let text = |recovery: &str| shown(&serde_json::from_str(recovery).expect("a recovery"), "whk_1");
        let some = text(r#"{"count":10012,"countIsExact":false,"failed":10000,"waiting":12}"#);
        assert!(some.contains("sent again: more than 10012 (10000 failed or cancelled, 12 waiting)"), "{some}");
        let none = text(r#"{"count":0,"countIsExact":true,"failed":0,"waiting":0,"message":"None has failed."}"#);
        assert_eq!(none, "None has failed.");
    }
}
