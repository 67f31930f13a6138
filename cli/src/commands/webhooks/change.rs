//! `waypost webhooks create`, `change` and `remove`.

use clap::Args;
use serde::Deserialize;

use super::{
    shown::shown,
    which::{NamedWebhook, WhichWebhook},
};
use crate::{
    commands::{
        answer::print_answer,
        settings::{AttemptSettings, CreatedWebhook, Settings, WebhookBody},
    },
    failure::Failure,
    output::{BOLD, Output, visible_line},
    questions::confirm,
    service::{Call, Service},
};

const CREATE: &str = "\
Examples:
  waypost webhooks create --name 'Booking sync' --url https://hooks.example.com/waypost
  waypost webhooks create --name Refunds --url https://hooks.example.com/refunds --types payment.refunded --payload thin

By default, a webhook gets every type, with full bodies, in no particular order. The endpoint needs the signing secret
to verify requests: store it. `waypost listen` creates a webhook that needs no address.";

const CHANGE: &str = "\
Examples:
  waypost webhooks change whk_01m74zy5eva3kj3s4w04zg1hhc --url https://hooks.example.com/waypost/v2
  waypost webhooks change whk_01m74zy5eva3kj3s4w04zg1hhc --types all --filter null
  waypost webhooks change whk_01m74zy5eva3kj3s4w04zg1hhc --retries short --timeout 5
  waypost webhooks change whk_01m74zy5eva3kj3s4w04zg1hhc --enable

A new address applies to waiting deliveries as well. `--filter null` removes the filter.";

const REMOVE: &str = "\
Examples:
  waypost webhooks remove whk_01m74zy5eva3kj3s4w04zg1hhc
  waypost webhooks remove whk_01m74zy5eva3kj3s4w04zg1hhc --yes

A removal cannot be undone. The deliveries of the webhook can still be read, but not sent again.";

#[derive(Debug, Args)]
#[command(after_help = CREATE)]
pub struct Create {
    /// A display name for the webhook.
    #[arg(long)]
    name: String,
    /// The address of the endpoint: https, at a public host.
    #[arg(long)]
    url: String,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    attempts: AttemptSettings,
}

#[derive(Debug, Args)]
#[command(after_help = CHANGE)]
pub struct Change {
    #[command(flatten)]
    which: WhichWebhook,
    /// A display name for the webhook.
    #[arg(long)]
    name: Option<String>,
    /// The address of the endpoint: https, at a public host.
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    attempts: AttemptSettings,
    /// Enables the webhook; it receives the events that are published from now on.
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
    /// Disables the webhook; it stops receiving events.
    #[arg(long)]
    disable: bool,
}

#[derive(Debug, Args)]
#[command(after_help = REMOVE)]
pub struct Remove {
    #[command(flatten)]
    which: WhichWebhook,
    /// Removes the webhook without asking.
    #[arg(long)]
    yes: bool,
}

#[derive(Deserialize)]
struct Removal {
    message: String,
}

impl Create {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let settings = self.settings.of_new_webhook();
        let body = WebhookBody {
            name: Some(&self.name),
            event_url: Some(&self.url),
            attempts: Some(&self.attempts),
            ..WebhookBody::of(&settings)
        };
        print_answer(service, body.creation(), output, |created: &CreatedWebhook| {
            let [id, name, secret] =
                [&created.id, &created.name, &created.signing_secret].map(|text| visible_line(text));
            format!(
                "Created the webhook {id} ({name}).\nSigning secret, shown only now: {BOLD}{secret}{BOLD:#}\n`waypost \
                 webhooks test {id}` sends a test event."
            )
        })
        .await
    }
}

impl Change {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let enabled = (self.enable || self.disable).then_some(self.enable);
        let body = WebhookBody {
            name: self.name.as_deref(),
            event_url: self.url.as_deref(),
            enabled,
            attempts: Some(&self.attempts),
            ..WebhookBody::of(&self.settings)
        };
        let path = ["webhook", self.which.id.as_str()];
        let nothing = || {
            let reason = "there is nothing to change: name an option, such as --url; `--help` lists them";
            Failure::Usage(reason.to_owned())
        };
        let call = body.change(&path).ok_or_else(nothing)?;
        print_answer(service, call, output, shown).await
    }
}

impl Remove {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let path = ["webhook", self.which.id.as_str()];
        if !self.yes {
            let NamedWebhook { id, name } = service.call(Call::get(&path)).await?;
            confirm(&format!(
                "Remove the webhook {} ({}) and cancel its open deliveries? This cannot be undone.",
                visible_line(&name),
                visible_line(&id)
            ))?;
        }
        print_answer(service, Call::delete(&path), output, |removal: &Removal| visible_line(&removal.message)).await
    }
}
