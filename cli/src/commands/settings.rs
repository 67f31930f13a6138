//! The settings of a webhook that `listen`, `webhooks create` and `webhooks change` have in common, and their requests.

use std::{fmt, str::FromStr};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::service::Call;

/// The word for every event type.
const ALL: &str = "all";

/// The settings that were given, as members of the API. The service has defaults for absent ones.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Comma-separated event types, or groups such as 'booking.*'; `all` means every type.
    #[arg(long, value_name = "TYPES")]
    #[serde(rename = "eventList", skip_serializing_if = "Option::is_none")]
    pub types: Option<EventList>,
    /// `subject` sends events with the same subject one after another; `none` does not wait.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Order>,
    /// `thin` sends identifiers without data; `full` sends the whole event.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Payload>,
    /// A condition on the event's data, as JSON: the webhook's `eventFilter`.
    // The text as it was given: a parsed value would lose digits of numbers and repeated members, which the service refuses.
    #[arg(long, value_name = "JSON", value_parser = json_text)]
    #[serde(rename = "eventFilter", skip_serializing_if = "Option::is_none")]
    filter: Option<Box<RawValue>>,
}

/// The settings of attempts, which a webhook with a feed does not have.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptSettings {
    /// `default` retries by the service's schedule, `short` for an hour at most, `none` not at all.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<Retries>,
    /// How long the endpoint may take to respond, from 1 to 15 seconds.
    #[arg(long, value_name = "SECONDS")]
    #[serde(rename = "timeoutSeconds", skip_serializing_if = "Option::is_none")]
    timeout: Option<u32>,
}

#[derive(Debug, Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Retries {
    Default,
    Short,
    None,
}

/// A webhook to create, or the changes to one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(flatten)]
    pub settings: &'a Settings,
    #[serde(flatten)]
    pub attempts: Option<&'a AttemptSettings>,
}

/// A created webhook.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedWebhook {
    pub id: String,
    pub name: String,
    pub signing_secret: String,
}

/// Event types and groups of types. An empty list means every type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EventList(Vec<String>);

#[derive(Debug, Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Order {
    None,
    Subject,
}

#[derive(Debug, Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Payload {
    Full,
    Thin,
}

impl Settings {
    /// The settings of a new webhook, which needs a list of types. The default is every type.
    pub fn of_new_webhook(mut self) -> Self {
        self.types.get_or_insert_default();
        self
    }
}

impl<'a> WebhookBody<'a> {
    /// A body with these settings alone.
    pub fn of(settings: &'a Settings) -> Self {
        Self { name: None, event_url: None, delivery: None, temporary: false, enabled: None, settings, attempts: None }
    }

    pub fn creation(&self) -> Call<'static> {
        Call::post(&["webhook"], self)
    }

    /// The change of the webhook at a path; `None` if the body changes nothing.
    pub fn change<'p>(&self, path: &'p [&'p str]) -> Option<Call<'p>> {
        Some(Call::patch(path, self)).filter(|call| call.body.as_deref() != Some("{}"))
    }
}

impl FromStr for EventList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let types: Vec<_> = text.split(',').map(str::trim).map(str::to_owned).collect();
        match types.as_slice() {
            [all] if all == ALL => Ok(Self::default()),
            types if types.iter().any(String::is_empty) => {
                Err("a type is empty; `all` means every type, and `waypost types` lists them".to_owned())
            }
            _ => Ok(Self(types)),
        }
    }
}

impl fmt::Display for EventList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("every type") } else { f.write_str(&self.0.join(", ")) }
    }
}

fn json_text(text: &str) -> Result<Box<RawValue>, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_word_and_is_an_empty_list() {
        let list = |text: &str| text.parse::<EventList>();
        assert_eq!(list("all"), Ok(EventList::default()));
        let two = list("booking.*, payment.refunded").expect("two types");
        assert_eq!((two.to_string().as_str(), two.0.len()), ("booking.*, payment.refunded", 2));
        assert_eq!(EventList::default().to_string(), "every type");
        assert!(list("").is_err() && list("booking.*,").is_err());
    }
}
