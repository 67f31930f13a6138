//! `waypost why`: why events have not arrived, and the next step.

mod shown;

use std::collections::HashMap;

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use self::shown::{Diagnosed, Webhook, shown};
use super::deliveries::newest;
use crate::{
    failure::Failure,
    machine,
    output::{Output, visible_line},
    service::{Call, Service, segment},
};

const EXAMPLES: &str = "\
Examples:
  waypost why B-20417
  waypost why dlv_01m7w5gmev32p3wwt3y0b8j32h
  waypost why evt_01m7w5gmev7xwvpyt3bc2k45jh

For a subject or an event, it explains the newest deliveries, ten at most. With --json, it prints them as `waypost show`
does, as one value for a delivery and as a list otherwise.";

/// The maximum number of deliveries that are explained.
const MOST: usize = 10;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Why {
    /// A subject, such as a booking number, or the identifier of a delivery or an event.
    #[arg(value_name = "SUBJECT|ID", value_parser = segment)]
    about: String,
}

#[derive(Deserialize)]
struct Identified {
    id: String,
}

impl Why {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let about = self.about.as_str();
        if about.starts_with("dlv_") {
            let text = service.text(Call::get(&["webhook", "delivery", about])).await?;
            return if output.json {
                Ok(output.raw(text.trim_end())?)
            } else {
                explain(service, &[text], output).await
            };
        }
        let name = if about.starts_with("evt_") { "eventIdentifier" } else { "subject" };
        let listed = newest(service, &[(name, about.to_owned())], MOST + 1).await?;
        let mut deliveries = Vec::new();
        for listed in listed.iter().take(MOST) {
            let Identified { id } = service.read(listed.get())?;
            deliveries.push(service.text(Call::get(&["webhook", "delivery", &id])).await?);
        }
        if output.json {
            let exact = deliveries.iter().map(|text| service.read::<Box<RawValue>>(text));
            return Ok(output.write(exact.collect::<Result<Vec<_>, _>>()?, "")?);
        }
        if deliveries.is_empty() {
            return Ok(output.text(unknown(about))?);
        }
        explain(service, &deliveries, output).await?;
        if listed.len() > MOST {
            output.remark(format!("Only the newest {MOST} are explained: `waypost deliveries` lists all."));
        }
        Ok(())
    }
}

async fn explain(service: &Service, deliveries: &[String], output: Output) -> Result<(), Failure> {
    // An explanation without the names of the webhooks is better than none.
    let webhooks: Vec<Webhook> = service.call(Call::get(&["webhook", "list"])).await.unwrap_or_default();
    let webhooks: HashMap<_, _> = webhooks.into_iter().map(|webhook| (webhook.id.clone(), webhook)).collect();
    let width = machine::columns();
    let mut texts = Vec::new();
    for text in deliveries {
        let delivery: Diagnosed = service.read(text)?;
        texts.push(shown(&delivery, webhooks.get(&delivery.webhook_identifier), width));
    }
    Ok(output.text(texts.join("\n\n"))?)
}

/// The text if nothing was delivered.
fn unknown(about: &str) -> String {
    let about = visible_line(about);
    format!(
        "No delivery of `{about}` is stored. The event was not published, matched no webhook, has another subject, or \
         its retention has ended.\n\n  \
         waypost webhooks           lists the webhooks\n  \
         waypost webhooks show ID   shows the types and the filter of one\n  \
         waypost deliveries         lists the newest deliveries with their subjects"
    )
}
