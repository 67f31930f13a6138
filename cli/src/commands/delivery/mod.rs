//! `waypost show`, `waypost resend` and `waypost cancel`: one delivery.

mod resent;
mod shown;
mod view;

use clap::Args;
use serde_json::json;

use self::{
    resent::outcome,
    shown::shown,
    view::{Delivery, DeliveryWebhook},
};
use super::{answer::print_answer, identifier::delivery_identifier};
use crate::{
    failure::Failure,
    output::{Output, colour_of, visible_line},
    service::{Call, Service, segment},
};

#[derive(Debug, Args)]
pub struct WhichDelivery {
    /// The delivery's identifier, as `waypost deliveries` shows it.
    #[arg(value_parser = segment)]
    id: String,
}

impl WhichDelivery {
    pub async fn show(self, service: &Service, output: Output) -> Result<(), Failure> {
        let id = delivery_identifier(&self.id)?;
        let text = service.text(Call::get(&["webhook", "delivery", id])).await?;
        if output.json {
            return Ok(output.raw(text.trim_end())?);
        }
        let delivery: Delivery = service.read(&text)?;
        let webhook = DeliveryWebhook::of(service, &delivery).await;
        Ok(output.text(shown(&delivery, webhook.as_ref()))?)
    }

    /// Sends the delivery again, and waits a few seconds for its next attempt. As JSON, the service's exact answer,
    /// without waiting.
    pub async fn resend(self, service: &Service, output: Output) -> Result<(), Failure> {
        let id = delivery_identifier(&self.id)?;
        let path = ["webhook", "delivery", id, "resend"];
        if output.json {
            let text = service.text(Call::post(&path, json!({}))).await?;
            return Ok(output.raw(text.trim_end())?);
        }
        // The request ends a wait for an earlier delivery, so that its answer no longer shows it. A resend without this
        // notice is better than none.
        let before = service.call::<Delivery>(Call::get(&["webhook", "delivery", id])).await.ok();
        let resent: Delivery = service.call(Call::post(&path, json!({}))).await?;
        Ok(output.text(outcome(service, before.as_ref(), resent).await)?)
    }

    pub async fn cancel(self, service: &Service, output: Output) -> Result<(), Failure> {
        let path = ["webhook", "delivery", delivery_identifier(&self.id)?, "cancel"];
        print_answer(service, Call::post(&path, json!({})), output, |delivery: &Delivery| {
            let colour = colour_of(&delivery.status);
            let [id, status] = [&delivery.id, &delivery.status].map(|text| visible_line(text));
            format!("{id} is {colour}{status}{colour:#}; `waypost resend {id}` sends it anyway.")
        })
        .await
    }
}
