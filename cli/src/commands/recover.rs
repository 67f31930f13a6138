//! `waypost recover`: sends failed and waiting deliveries of a webhook again.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{range::Range, webhooks::WebhookState};
use crate::{
    failure::Failure,
    machine,
    output::{Output, visible_line},
    service::{Call, Service, segment},
};

const EXAMPLES: &str = "\
Examples:
  waypost recover whk_01m74zy5eva3kj3s4w04zg1hhc --from 3h
  waypost recover whk_01m74zy5eva3kj3s4w04zg1hhc --from 2026-11-19T22:00:00Z --until 2026-11-20T06:00:00Z

The service sends the deliveries created within the range in the background, oldest first. To see how many are left, run
the command that it prints, with times instead of a duration. Events published while the webhook was disabled have no
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
        let progress = self.progress(machine::now());
        let path = ["webhook", &self.webhook, "recover"];
        let text = service.text(Call::post(&path, &self)).await.map_err(Failure::naming_options)?;
        if output.json {
            return Ok(output.raw(text.trim_end())?);
        }
        let recovery: Recovery = service.read(&text)?;
        let state = WebhookState::read(service, &self.webhook).await;
        Ok(output.text(recovery.shown(&self.webhook, state.as_ref(), &progress))?)
    }

    /// The command that shows how many deliveries are left.
    fn progress(&self, now: Timestamp) -> String {
        let include = self.include.and_then(|include| include.to_possible_value());
        let include = include.map(|value| format!(" --include {}", value.get_name())).unwrap_or_default();
        format!("waypost recover {} {}{include}", visible_line(&self.webhook), self.range.options_until(now))
    }
}

impl Recovery {
    /// The recovery for people. The service ends its own pause if there is anything to recover, but never an owner's.
    fn shown(&self, webhook: &str, state: Option<&WebhookState>, progress: &str) -> String {
        let Self { count, count_is_exact, failed, waiting, message } = self;
        if *count == 0 {
            let reason = message.as_deref().map_or_else(|| "There is nothing to recover.".to_owned(), visible_line);
            let pause = state.and_then(WebhookState::pause_note).map(|note| format!("\n{note}"));
            return reason + &pause.unwrap_or_default();
        }
        let more = if *count_is_exact { "" } else { "more than " };
        let numbers = format!("{more}{count} ({failed} failed or cancelled, {waiting} waiting)");
        let list = format!("`waypost deliveries --webhook {}` lists them.", visible_line(webhook));
        match state.filter(|state| state.is_paused_by_owner()).and_then(WebhookState::pause_note) {
            Some(note) => format!("Deliveries on hold: {numbers}. {note}\n{list}"),
            None => {
                format!("Deliveries being sent again: {numbers}.\n{list}\n`{progress}` shows how many are left.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    const PROGRESS: &str = "waypost recover whk_1 --from 2026-11-20T05:00:00.000Z --until 2026-11-20T06:00:00.000Z";
    const NONE: &str = r#"{"count":0,"countIsExact":true,"failed":0,"waiting":0,"message":"None has failed."}"#;

    fn shown(recovery: &str, paused_by: Option<&str>) -> String {
        let state = paused_by.map(|by| {
            let state = format!(
                r#"{{"id":"whk_1","deliveryState":"paused","eventList":[],"pausedBy":"{by}","pausedUntil":"2026-11-20T09:50:00Z"}}"#
            );
            serde_json::from_str::<WebhookState>(&state).expect("a webhook")
        });
        let recovery: Recovery = serde_json::from_str(recovery).expect("a recovery");
        recovery.shown("whk_1", state.as_ref(), PROGRESS)
    }

    #[test]
    fn a_recovery_is_shown_with_its_numbers_or_the_reason_for_none() {
        let some = r#"{"count":10012,"countIsExact":false,"failed":10000,"waiting":12}"#;
        let some = shown(some, None);
        assert!(some.contains("sent again: more than 10012 (10000 failed or cancelled, 12 waiting)"), "{some}");
        assert!(some.ends_with(&format!("\n`{PROGRESS}` shows how many are left.")), "{some}");
        assert_eq!(shown(NONE, None), "None has failed.");
    }

    #[test]
    fn recovered_deliveries_of_a_paused_webhook_wait_for_its_end() {
        let some = shown(r#"{"count":12,"countIsExact":true,"failed":10,"waiting":2}"#, Some("owner"));
        assert!(
            some.starts_with("Deliveries on hold: 12 (10 failed or cancelled, 2 waiting). The webhook is"),
            "{some}"
        );
        assert!(some.contains("`waypost webhooks resume whk_1`") && !some.contains("sent again"), "{some}");
        let none = shown(NONE, Some("service"));
        assert!(none.starts_with("None has failed.\nThe service paused the webhook."), "{none}");
        assert!(none.contains("at 2026-11-20 09:50:00Z") && none.contains("webhooks resume whk_1"), "{none}");
    }

    #[test]
    fn the_command_for_the_progress_has_the_same_range_in_times() {
        let arguments = ["waypost", "recover", "whk_1", "--from", "2026-11-20T05:00:00Z", "--include", "failed"];
        let recover = match Arguments::try_parse_from(arguments).expect("good arguments").command {
            Command::Recover(recover) => recover,
            other => panic!("{other:?}"),
        };
        let now = "2026-11-20T06:00:00Z".parse().expect("a time");
        assert_eq!(recover.progress(now), format!("{PROGRESS} --include failed"));
    }
}
