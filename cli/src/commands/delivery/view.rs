//! A delivery and its webhook, as the service shows them.

use anstyle::Style;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    commands::wait::{Pause, Wait},
    output::{colour_of, colour_of_answer, visible_line},
    service::{Call, Service},
};

/// The members of a delivery that are shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub subject: Option<String>,
    pub status: String,
    pub url: Option<String>,
    pub webhook_identifier: String,
    pub created_date: String,
    pub next_attempt_date: Option<String>,
    pub waiting_for: Option<String>,
    pub held_by: Option<String>,
    pub cancel_reason: Option<String>,
    pub attempts: Vec<Attempt>,
    /// The event exactly as published, preserving number formatting and key order.
    pub event: Box<RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    pub attempt_number: u64,
    pub attempt_date: String,
    pub duration_ms: u64,
    pub http_status: Option<u64>,
    /// Whether a reader of the webhook's feed confirmed the delivery.
    #[serde(default)]
    pub confirmed: bool,
    pub error: Option<String>,
    /// The address that the endpoint redirected to.
    pub location: Option<String>,
    pub response_body: Option<String>,
}

/// The members of a webhook that are shown with its deliveries.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryWebhook {
    pub name: String,
    paused_by: Option<String>,
    paused_until: Option<String>,
}

impl Delivery {
    /// Why it is waiting, if it is open.
    pub fn wait(&self) -> Wait<'_> {
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
    pub fn has_succeeded(&self) -> bool {
        self.confirmed || self.http_status.is_some_and(|status| (200..300).contains(&status))
    }

    /// The response, or why there is none.
    pub fn answer(&self) -> String {
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

    pub fn colour(&self) -> Style {
        if self.confirmed { colour_of("delivered") } else { colour_of_answer(self.http_status) }
    }
}

impl DeliveryWebhook {
    /// A delivery's webhook; `None` if it was removed or cannot be read: a delivery without it is better than none.
    pub async fn of(service: &Service, delivery: &Delivery) -> Option<Self> {
        service.call(Call::get(&["webhook", &delivery.webhook_identifier])).await.ok()
    }

    pub fn pause(&self) -> Pause<'_> {
        Pause { by: self.paused_by.as_deref(), until: self.paused_until.as_deref() }
    }
}
