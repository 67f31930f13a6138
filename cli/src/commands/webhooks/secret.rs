//! `waypost webhooks rotate`: a new signing secret.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::which::WhichWebhook;
use crate::{
    commands::{answer::print_answer, settings::PublicKey},
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
        let at_once = self.at_once;
        print_answer(service, Call::post(&path, body), output, |new: &NewSigningSecret| shown(new, at_once)).await
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
