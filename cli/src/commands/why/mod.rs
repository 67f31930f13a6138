//! `waypost why`: why events have not arrived, and the next step.

mod event;
mod missed;
mod published;
mod shown;
mod subject;

use std::collections::HashMap;

use clap::Args;

use self::shown::{Diagnosed, Webhook, shown};
use super::identifier::possible_subject;
use crate::{
    failure::Failure,
    machine,
    output::Output,
    service::{Call, Service, segment},
};

const EXAMPLES: &str = "\
Examples:
  waypost why B-20417
  waypost why dlv_01m7w5gmev32p3wwt3y0b8j32h
  waypost why evt_01m7w5gmev7xwvpyt3bc2k45jh

For a subject or an event, it explains up to ten deliveries, failed and waiting ones first. For a subject, it also lists
the events, and tries the text without a leading `#` and in other capitals. For an event, it says why other webhooks got
no delivery. With --json, it prints a delivery as `waypost show` does, a list of them for a subject, and for an event an
object with `event`, `deliveries` and `withoutDelivery`. The exit code is 1 if it finds nothing.";

/// The maximum number of deliveries that are explained.
const MOST: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Why {
    /// A subject, such as a booking number, or the identifier of a delivery or an event.
    #[arg(value_name = "SUBJECT|ID", value_parser = segment)]
    about: String,
}

impl Why {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let about = self.about.as_str();
        if about.starts_with("dlv_") {
            explain_delivery(service, about, output).await
        } else if about.starts_with("evt_") {
            event::explain(service, about, output).await
        } else {
            subject::explain(service, possible_subject(about)?, output).await
        }
    }
}

async fn explain_delivery(service: &Service, id: &str, output: Output) -> Result<(), Failure> {
    let text = service.text(Call::get(&["webhook", "delivery", id])).await?;
    if output.json {
        return Ok(output.raw(text.trim_end())?);
    }
    // An explanation without the webhook's name is better than none.
    let webhooks = all_webhooks(service).await.unwrap_or_default();
    Ok(output.text(explanations(service, &[text], &webhooks)?)?)
}

async fn all_webhooks(service: &Service) -> Result<Vec<Webhook>, Failure> {
    service.call(Call::get(&["webhook", "list"])).await
}

/// The JSON of deliveries with their attempts, exactly as the service shows them.
async fn whole_deliveries(service: &Service, ids: Vec<String>) -> Result<Vec<String>, Failure> {
    let mut deliveries = Vec::new();
    for id in ids {
        deliveries.push(service.text(Call::get(&["webhook", "delivery", &id])).await?);
    }
    Ok(deliveries)
}

/// The position of deliveries with a status in an explanation: those in trouble come first.
fn position(status: &str) -> u8 {
    match status {
        "failed" => 0,
        "retrying" => 1,
        "cancelled" => 3,
        "delivered" => 4,
        _ => 2,
    }
}

/// The explanations of deliveries.
fn explanations(service: &Service, deliveries: &[String], webhooks: &[Webhook]) -> Result<String, Failure> {
    let webhooks: HashMap<_, _> = webhooks.iter().map(|webhook| (webhook.id.as_str(), webhook)).collect();
    let width = machine::columns();
    let mut texts = Vec::new();
    for text in deliveries {
        let delivery: Diagnosed = service.read(text)?;
        texts.push(shown(&delivery, webhooks.get(delivery.webhook_identifier.as_str()).copied(), width));
    }
    Ok(texts.join("\n\n"))
}
