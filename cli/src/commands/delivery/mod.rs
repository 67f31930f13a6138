//! `waypost show`, `waypost resend` and `waypost cancel`: one delivery.

mod resent;
mod shown;

use anstyle::Style;
use clap::Args;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use self::{resent::outcome, shown::shown};
use super::{
    answer::print_answer,
    identifier::delivery_identifier,
    wait::{Pause, Wait},
};
use crate::{
    failure::Failure,
    output::{Output, colour_of, colour_of_answer, visible_line},
    service::{Call, Service, segment},
};

#[derive(Debug, Args)]
pub struct WhichDelivery {
    /// The delivery's identifier, as `waypost deliveries` shows it.
    #[arg(value_parser = segment)]
    id: String,
}

/// The members of a delivery that are shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    subject: Option<String>,
    status: String,
    url: Option<String>,
    webhook_identifier: String,
    created_date: String,
    next_attempt_date: Option<String>,
    waiting_for: Option<String>,
    held_by: Option<String>,
    cancel_reason: Option<String>,
    attempts: Vec<Attempt>,
    /// The event exactly as published, preserving number formatting and key order.
    event: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    attempt_number: u64,
    attempt_date: String,
    duration_ms: u64,
    http_status: Option<u64>,
    /// Whether a reader of the webhook's feed confirmed the delivery.
    #[serde(default)]
    confirmed: bool,
    error: Option<String>,
    /// The address that the endpoint redirected to.
    location: Option<String>,
    response_body: Option<String>,
}

/// The members of a webhook that are shown with its deliveries.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryWebhook {
    name: String,
    paused_by: Option<String>,
    paused_until: Option<String>,
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

impl Delivery {
    /// Why it is waiting, if it is open.
    fn wait(&self) -> Wait<'_> {
        Wait {
            status: &self.status,
            reason: self.waiting_for.as_deref(),
            next: self.next_attempt_date.as_deref(),
            held_by: self.held_by.as_deref(),
        }
    }
}

impl Attempt {
    /// Whether the endpoint or a reader accepted the delivery.
    fn has_succeeded(&self) -> bool {
        self.confirmed || self.http_status.is_some_and(|status| (200..300).contains(&status))
    }

    /// The response, or why there is none.
    fn answer(&self) -> String {
        match (self.http_status, &self.error) {
            (Some(status), _) => {
                let to = self.location.as_deref().map(|location| format!(" to {}", visible_line(location)));
                format!("{status}{}", to.unwrap_or_default())
            }
            (None, Some(error)) => visible_line(error),
            (None, None) if self.confirmed => "confirmed".to_owned(),
            (None, None) => "no answer".to_owned(),
        }
    }

    fn colour(&self) -> Style {
        if self.confirmed { colour_of("delivered") } else { colour_of_answer(self.http_status) }
    }
}

impl DeliveryWebhook {
    /// A delivery's webhook; `None` if it was removed or cannot be read: a delivery without it is better than none.
    async fn of(service: &Service, delivery: &Delivery) -> Option<Self> {
        service.call(Call::get(&["webhook", &delivery.webhook_identifier])).await.ok()
    }

    fn pause(&self) -> Pause<'_> {
        Pause { by: self.paused_by.as_deref(), until: self.paused_until.as_deref() }
    }
}
