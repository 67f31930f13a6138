//! `waypost replay`: delivers events to a webhook that did not get them when they were published.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{range::Range, webhooks::WebhookState};
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
        let text = service.text(Call::post(&path, &self)).await.map_err(Failure::naming_options)?;
        if output.json {
            return Ok(output.raw(text.trim_end())?);
        }
        let replayed: Replayed = service.read(&text)?;
        let state = WebhookState::read(service, &self.webhook).await;
        Ok(output.text(self.shown(&replayed, state.as_ref()))?)
    }

    /// The command that counts the remaining events.
    fn progress(&self) -> String {
        let types = if self.types.is_empty() { String::new() } else { format!(" --types '{}'", self.types.join(",")) };
        format!("waypost replay {} {}{types} --dry-run", visible_line(&self.webhook), self.range.options())
    }

    fn shown(&self, replayed: &Replayed, state: Option<&WebhookState>) -> String {
        let Replayed { count, count_is_exact, dry_run, message } = replayed;
        if let Some(message) = message {
            return self.unreceived(state).unwrap_or_else(|| visible_line(message));
        }
        let count = if *count_is_exact { count.to_string() } else { format!("{count} or more") };
        if *dry_run {
            return format!("Events that a replay would deliver: {count}.");
        }
        let follow = state.and_then(WebhookState::pause_note);
        let follow = follow.unwrap_or_else(|| "The first deliveries follow within two minutes.".to_owned());
        format!(
            "Events that are being delivered: {count}. {follow}\n\
             `waypost deliveries --webhook {}` lists them.\n\
             `{}` counts the events that are left.",
            visible_line(&self.webhook),
            self.progress()
        )
    }

    /// The sentence about types that the webhook does not receive; `None` if it receives at least one of them.
    fn unreceived(&self, state: Option<&WebhookState>) -> Option<String> {
        let state = state.filter(|state| !self.types.is_empty() && !state.receives_any(&self.types))?;
        let types = visible_line(&self.types.join(", "));
        Some(format!("This webhook does not receive these types ({types}). It receives: {}.", state.types()))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn replay(options: &[&str]) -> Replay {
        let arguments = [&["waypost", "replay", "whk_1", "--from", "2026-11-13T00:00:00Z"][..], options].concat();
        match Arguments::try_parse_from(arguments).expect("good arguments").command {
            Command::Replay(replay) => replay,
            other => panic!("{other:?}"),
        }
    }

    fn replayed(replayed: &str) -> Replayed {
        serde_json::from_str(replayed).expect("a replay")
    }

    fn webhook(state: &str) -> WebhookState {
        let webhook = format!(
            r#"{{"id":"whk_1","deliveryState":"{state}","pausedBy":"owner","eventList":["booking.*","payment.*"]}}"#
        );
        serde_json::from_str(&webhook).expect("a webhook")
    }

    #[test]
    fn a_replay_is_shown_with_its_number_or_the_reason_for_none() {
        let progress = "waypost replay whk_1 --from 2026-11-13T00:00:00.000Z --dry-run";
        let text = |answer: &str| replay(&[]).shown(&replayed(answer), Some(&webhook("active")));
        let some = text(r#"{"count":1000,"countIsExact":false,"dryRun":false}"#);
        assert!(some.starts_with("Events that are being delivered: 1000 or more. The first deliveries"), "{some}");
        assert!(some.contains("within two minutes") && some.contains(progress), "{some}");
        let counted = text(r#"{"count":3,"countIsExact":true,"dryRun":true}"#);
        assert_eq!(counted, "Events that a replay would deliver: 3.");
        let none = text(r#"{"count":0,"countIsExact":true,"dryRun":true,"message":"None is left."}"#);
        assert_eq!(none, "None is left.");
    }

    #[test]
    fn replayed_events_of_a_paused_webhook_wait_for_its_end() {
        let begun = replayed(r#"{"count":3,"countIsExact":true,"dryRun":false}"#);
        let text = replay(&[]).shown(&begun, Some(&webhook("paused")));
        assert!(
            text.starts_with("Events that are being delivered: 3. The webhook is paused until you resume it"),
            "{text}"
        );
        assert!(!text.contains("within two minutes"), "{text}");
    }

    #[test]
    fn types_that_the_webhook_does_not_receive_are_named() {
        let none = replayed(r#"{"count":0,"countIsExact":true,"dryRun":true,"message":"None is left."}"#);
        let other = replay(&["--types", "inventory.*"]).shown(&none, Some(&webhook("active")));
        let expected = "This webhook does not receive these types (inventory.*). It receives: booking.*, payment.*.";
        assert_eq!(other, expected);
        let received = replay(&["--types", "inventory.*,booking.created"]);
        assert_eq!(received.shown(&none, Some(&webhook("active"))), "None is left.");
        assert_eq!(replay(&["--types", "inventory.*"]).shown(&none, None), "None is left.");
    }
}
