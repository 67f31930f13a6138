//! `waypost webhooks`: lists, shows, creates, changes, tests and removes webhooks.

mod change;
mod pause;
mod secret;
mod shown;
mod state;
mod waiting;
mod which;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::{
    change::{Change, Create, Remove},
    pause::{Pause, resume},
    secret::Rotate,
    shown::{COLUMNS, Webhook, row, shown},
    waiting::Waiting,
    which::WhichWebhook,
};
pub use self::{
    state::WebhookState,
    which::{NamedWebhook, named_webhooks},
};
use super::first_attempt::first_attempt;
use crate::{
    failure::Failure,
    machine,
    output::{Output, visible_line},
    service::{Call, Service},
    table::table,
};

const EXAMPLES: &str = "\
Examples:
  waypost webhooks
  waypost webhooks create --name 'Booking sync' --url https://hooks.example.com/waypost --types 'booking.*'
  waypost webhooks --json | jq -r '.[] | select(.pausedBy == \"service\").id' | xargs -n 1 waypost webhooks resume

Without a subcommand, it lists the webhooks, oldest first.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Webhooks {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Shows a webhook with its settings, its state and the number of its waiting deliveries.
    #[command(after_help = "\
Example:
  waypost webhooks show whk_01m74zy5eva3kj3s4w04zg1hhc")]
    Show(WhichWebhook),
    /// Creates a webhook, and prints its signing secret, which is shown only once.
    Create(Create),
    /// Changes only the given settings of a webhook.
    Change(Change),
    /// Removes a webhook and cancels its open deliveries, after asking for confirmation.
    Remove(Remove),
    /// Replaces the signing secret, and prints the new one, which is shown only once.
    Rotate(Rotate),
    /// Pauses a webhook: its deliveries are on hold until you resume it, or until a time that you set.
    Pause(Pause),
    /// Resumes a paused webhook, and sends the waiting deliveries.
    #[command(after_help = "\
Example:
  waypost webhooks resume whk_01m74zy5eva3kj3s4w04zg1hhc

Deliveries waiting for the pause to end are attempted now: a few within a minute, thousands within minutes. A
webhook that is not paused stays unchanged.")]
    Resume(WhichWebhook),
    /// Sends a test event of the type `webhook.test` to check whether the endpoint responds.
    #[command(after_help = "\
Example:
  waypost webhooks test whk_01m74zy5eva3kj3s4w04zg1hhc

The command waits a few seconds for the first attempt and prints its result, except with --json. `waypost trigger TYPE`
sends an event of another type.")]
    Test(WhichWebhook),
}

impl Webhooks {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        match self.action {
            None => list(service, output).await,
            Some(Action::Show(which)) => show(service, &which.id, output).await,
            Some(Action::Create(create)) => create.run(service, output).await,
            Some(Action::Change(change)) => change.run(service, output).await,
            Some(Action::Remove(remove)) => remove.run(service, output).await,
            Some(Action::Rotate(rotate)) => rotate.run(service, output).await,
            Some(Action::Pause(pause)) => pause.run(service, output).await,
            Some(Action::Resume(which)) => resume(service, &which.id, output).await,
            Some(Action::Test(which)) => test(service, &which.id, output).await,
        }
    }
}

async fn list(service: &Service, output: Output) -> Result<(), Failure> {
    let text = service.text(Call::get(&["webhook", "list"])).await?;
    if output.json {
        return Ok(output.raw(text.trim_end())?);
    }
    let webhooks: Vec<Webhook> = service.read(&text)?;
    if webhooks.is_empty() {
        output.remark(
            "There is no webhook yet: `waypost webhooks create` creates one, and `waypost listen` a temporary one.",
        );
        return Ok(());
    }
    let rows: Vec<_> = webhooks.iter().map(row).collect();
    Ok(output.text(table(COLUMNS, &rows, machine::columns()))?)
}

async fn show(service: &Service, id: &str, output: Output) -> Result<(), Failure> {
    let text = service.text(Call::get(&["webhook", id])).await?;
    if output.json {
        return Ok(output.raw(text.trim_end())?);
    }
    let webhook: Webhook = service.read(&text)?;
    // A webhook without the number of its waiting deliveries is better than none.
    let waiting = Waiting::of(service, id).await.ok();
    Ok(output.text(shown(&webhook, waiting.as_ref()))?)
}

async fn test(service: &Service, id: &str, output: Output) -> Result<(), Failure> {
    let text = service.text(Call::post(&["webhook", id, "test"], json!({}))).await?;
    if output.json {
        return Ok(output.raw(text.trim_end())?);
    }
    let sent: Value = service.read(&text)?;
    let delivery = sent["deliveryIdentifier"].as_str().ok_or_else(|| service.unexpected())?;
    let attempt = first_attempt(service, id, delivery).await;
    let text = format!("Sent a test event to {}: {}.\n{}", visible_line(id), visible_line(delivery), attempt.sentence);
    Ok(output.text(text)?)
}
