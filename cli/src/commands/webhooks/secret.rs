//! `waypost webhooks rotate`: a new signing secret, and the key of requests whose response shows one.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::which::WhichWebhook;
use crate::{
    commands::{answer::print_text, patience::text_with_key, publish::idempotency_key, settings::PublicKey},
    failure::Failure,
    output::{BOLD, Output, short_time, visible_line},
    service::{Call, Service},
};

const EXAMPLES: &str = "\
Examples:
  waypost webhooks rotate whk_01m74zy5eva3kj3s4w04zg1hhc
  waypost webhooks rotate whk_01m74zy5eva3kj3s4w04zg1hhc --at-once

For 24 hours, requests are signed with both secrets: give your endpoint the new one within that time. Use `--at-once`
for a leaked secret: your endpoint refuses requests until it has the new one.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Rotate {
    #[command(flatten)]
    which: WhichWebhook,
    /// Ends the previous secret at once, and any earlier one that is still active.
    #[arg(long)]
    at_once: bool,
    #[command(flatten)]
    key: SecretRequestKey,
}

/// The idempotency key of a request whose response shows a signing secret.
#[derive(Debug, Args)]
pub struct SecretRequestKey {
    /// With the same key, a command repeated within 10 minutes prints the same secret.
    #[arg(long, value_name = "KEY", value_parser = idempotency_key)]
    idempotency_key: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewSigningSecret {
    signing_secret: String,
    previous_secret_expires_date: String,
    #[serde(default)]
    public_keys: Vec<PublicKey>,
}

impl Rotate {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let body = if self.at_once { json!({ "overlapSeconds": 0, "endPrevious": true }) } else { json!({}) };
        let path = ["webhook", &self.which.id, "secret"];
        let text = self.key.text(service, Call::post(&path, body)).await?;
        print_text(service, &text, output, |new: &NewSigningSecret| shown(new, self.at_once))
    }
}

impl SecretRequestKey {
    /// Sends a request with the key, and returns the response's text.
    pub async fn text(self, service: &Service, call: Call<'_>) -> Result<String, Failure> {
        let advice = |key: &str| {
            format!(
                "The service may have created a signing secret. Repeat the command with `--idempotency-key {key}` \
                 within 10 minutes to see it."
            )
        };
        text_with_key(service, Call { key: self.idempotency_key, ..call }, advice).await
    }
}

fn shown(new: &NewSigningSecret, at_once: bool) -> String {
    let secret = visible_line(&new.signing_secret);
    let key = PublicKey::line(&new.public_keys);
    let previous = if at_once {
        "The previous secret is no longer valid.".to_owned()
    } else {
        format!("The previous secret is valid until {}.", visible_line(&short_time(&new.previous_secret_expires_date)))
    };
    format!("Signing secret, shown only now: {BOLD}{secret}{BOLD:#}{key}\n{previous}")
}
