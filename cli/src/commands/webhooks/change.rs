//! `waypost webhooks create`, `change` and `remove`.

use std::collections::BTreeMap;

use clap::Args;
use serde::Deserialize;

use super::{
    secret::SecretRequestKey,
    shown::{Webhook, shown},
    state::WebhookState,
    which::{NamedWebhook, WhichWebhook},
};
use crate::{
    commands::{
        answer::{print_answer, print_text},
        settings::{CreatedWebhook, PermanentSettings, PublicKey, Settings, WebhookBody},
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
  waypost webhooks create --name Accounting --url https://accounting.example.com/events --header 'X-Api-Key: @key.txt'

By default, a webhook gets every type, with full bodies, in no particular order. The endpoint needs the signing secret
to verify requests: store it. `@FILE` keeps a header's value, which is never shown again, out of the shell's history.
`waypost listen` creates a webhook that needs no address.";

const CHANGE: &str = "\
Examples:
  waypost webhooks change whk_01m74zy5eva3kj3s4w04zg1hhc --url https://hooks.example.com/waypost/v2
  waypost webhooks change whk_01m74zy5eva3kj3s4w04zg1hhc --types all --filter null
  waypost webhooks change whk_01m74zy5eva3kj3s4w04zg1hhc --retries short --timeout 5
  waypost webhooks change whk_01m74zy5eva3kj3s4w04zg1hhc --header 'X-Api-Key: @key.txt' --header 'X-Tenant: ***'
  waypost webhooks change whk_01m74zy5eva3kj3s4w04zg1hhc --enable

A new address applies to waiting deliveries as well. `--filter null` removes the filter. Headers and metadata replace
all previous ones; a header with the value `***` keeps its stored value. With `--enable`, it also prints the commands
that deliver the events that the webhook missed.";

const REMOVE: &str = "\
Examples:
  waypost webhooks remove whk_01m74zy5eva3kj3s4w04zg1hhc
  waypost webhooks remove whk_01m74zy5eva3kj3s4w04zg1hhc --yes

This cannot be undone. You can still read the webhook's deliveries, but not send them again.";

#[derive(Debug, Args)]
#[command(after_help = CREATE)]
pub struct Create {
    /// A display name for the webhook.
    #[arg(long)]
    name: String,
    /// The endpoint's address: https, at a public host.
    #[arg(long)]
    url: String,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    permanent: PermanentSettings,
    #[command(flatten)]
    key: SecretRequestKey,
}

#[derive(Debug, Args)]
#[command(after_help = CHANGE)]
pub struct Change {
    #[command(flatten)]
    which: WhichWebhook,
    /// A display name for the webhook.
    #[arg(long)]
    name: Option<String>,
    /// The endpoint's address: https, at a public host.
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    permanent: PermanentSettings,
    /// Enables the webhook; it receives the events that are published from now on.
    #[arg(long, conflicts_with = "disable")]
    enable: bool,
    /// Disables the webhook; it stops receiving events.
    #[arg(long)]
    disable: bool,
    /// Removes all headers that are added to attempts.
    #[arg(long, conflicts_with = "headers")]
    no_headers: bool,
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
            headers: self.permanent.headers()?,
            permanent: Some(&self.permanent),
            ..WebhookBody::of(&settings)
        };
        let text = self.key.text(service, body.creation()).await?;
        print_text(service, &text, output, |created: &CreatedWebhook| {
            let [id, name, secret] =
                [&created.id, &created.name, &created.signing_secret].map(|text| visible_line(text));
            let key = PublicKey::line(&created.public_keys);
            format!(
                "Created the webhook {id} ({name}).\nSigning secret, shown only now: {BOLD}{secret}{BOLD:#}{key}\n\
                 `waypost webhooks test {id}` sends a test event."
            )
        })
    }
}

impl Change {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let enabled = (self.enable || self.disable).then_some(self.enable);
        let headers = if self.no_headers { Some(BTreeMap::new()) } else { self.permanent.headers()? };
        let body = WebhookBody {
            name: self.name.as_deref(),
            event_url: self.url.as_deref(),
            enabled,
            headers,
            permanent: Some(&self.permanent),
            ..WebhookBody::of(&self.settings)
        };
        let path = ["webhook", self.which.id.as_str()];
        let nothing = || {
            let reason = "there is nothing to change: name an option, such as --url; `--help` lists them";
            Failure::Usage(reason.to_owned())
        };
        let call = body.change(&path).ok_or_else(nothing)?;
        // An enabled webhook no longer shows since when it was disabled.
        let before = if self.enable { WebhookState::read(service, &self.which.id).await } else { None };
        let next = before.and_then(|before| before.catch_up());
        let further = next.as_ref().map(|next| format!("\n\n{next}")).unwrap_or_default();
        print_answer(service, call, output, |webhook: &Webhook| format!("{}{further}", shown(webhook, None))).await?;
        if let Some(next) = next.filter(|_| output.json) {
            output.remark(next);
        }
        Ok(())
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
