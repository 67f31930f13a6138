//! `waypost webhooks pause` and `resume`: hold a webhook's deliveries, and send them.

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::{shown::Webhook, state::WebhookState, which::WhichWebhook};
use crate::{
    commands::{answer::print_answer, times::future_time},
    failure::Failure,
    output::{Output, colour_of, visible_line},
    service::{Call, Service},
};

const EXAMPLES: &str = "\
Examples:
  waypost webhooks pause whk_01m74zy5eva3kj3s4w04zg1hhc
  waypost webhooks pause whk_01m74zy5eva3kj3s4w04zg1hhc --until 3h

New events still create deliveries, which are on hold until the pause or their retention ends. Test events and resends are
sent at once. Pausing a paused webhook changes when its pause ends.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Pause {
    #[command(flatten)]
    which: WhichWebhook,
    /// When the pause ends: a time such as 2026-11-21T06:00:00Z, or a duration from now such as 90s, 5m, 4h or 2d. By
    /// default, it lasts until `waypost webhooks resume`.
    #[arg(long, value_name = "TIME", value_parser = future_time)]
    until: Option<Timestamp>,
}

impl Pause {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let body = self.until.map_or_else(|| json!({}), |until| json!({ "until": until }));
        let path = ["webhook", self.which.id.as_str(), "pause"];
        print_answer(service, Call::post(&path, body), output, |webhook: &Webhook| {
            let [id, end] = [&webhook.id, &webhook.pause_end()].map(|text| visible_line(text));
            let state = state(webhook);
            format!("{id} is {state} until {end}. `waypost webhooks resume {id}` sends the waiting deliveries.")
        })
        .await
    }
}

pub async fn resume(service: &Service, id: &str, output: Output) -> Result<(), Failure> {
    let before = if output.json { None } else { WebhookState::read(service, id).await };
    let was_paused = before.is_none_or(|before| before.is_paused());
    let path = ["webhook", id, "resume"];
    print_answer(service, Call::post(&path, json!({})), output, |webhook: &Webhook| {
        let id = visible_line(&webhook.id);
        let state = state(webhook);
        if !was_paused {
            return format!("{id} was not paused; it is unchanged: {state}.");
        }
        format!(
            "{id} is {state}. The waiting deliveries are attempted now: `waypost deliveries --webhook {id}` lists them."
        )
    })
    .await
}

fn state(webhook: &Webhook) -> String {
    let colour = colour_of(&webhook.delivery_state);
    format!("{colour}{}{colour:#}", visible_line(&webhook.delivery_state))
}
