//! The webhook settings that `listen`, `webhooks create` and `webhooks change` have in common, and their requests.

use std::{collections::BTreeMap, fmt, str::FromStr};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::input::Input;
use crate::{failure::Failure, output::visible_line, service::Call};

/// The word for every event type.
const ALL: &str = "all";

/// The specified settings, as members of the API. The service has defaults for the others.
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
    // The text as given: a parsed value would lose digits of numbers, and repeated members, which the service refuses.
    #[arg(long, value_name = "JSON", value_parser = json_text)]
    #[serde(rename = "eventFilter", skip_serializing_if = "Option::is_none")]
    filter: Option<Box<RawValue>>,
}

/// The settings of a permanent webhook that the temporary one of `listen` does not need.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PermanentSettings {
    /// `default` retries on the service's schedule, `short` for at most an hour, `none` not at all.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<Retries>,
    /// How long the endpoint may take to respond, from 1 to 15 seconds.
    #[arg(long, value_name = "SECONDS")]
    #[serde(rename = "timeoutSeconds", skip_serializing_if = "Option::is_none")]
    timeout: Option<u32>,
    /// The maximum number of attempts per second, from 1 to 100; `null` means no limit.
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts_per_second: Option<RateLimit>,
    /// A header to add to every attempt; the value `@FILE` is read from a file, and `@-` from standard input. May be
    /// repeated.
    // Plain text to clap, whose parse errors would show a secret.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    #[serde(skip)]
    headers: Vec<String>,
    /// `ed25519` adds an Ed25519 signature, which a public key verifies; `hmac` signs with the secret alone.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<Signature>,
    /// Your own identifiers and notes, as a JSON object of strings; `null` removes them.
    #[arg(long, value_name = "JSON", value_parser = json_text)]
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Retries {
    Default,
    Short,
    None,
}

#[derive(Debug, Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Signature {
    Hmac,
    Ed25519,
}

/// A maximum number of attempts per second. `None` removes the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct RateLimit(Option<u32>);

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
    /// Replaces all headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    #[serde(flatten)]
    pub settings: &'a Settings,
    #[serde(flatten)]
    pub permanent: Option<&'a PermanentSettings>,
}

/// A created webhook.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedWebhook {
    pub id: String,
    pub name: String,
    pub signing_secret: String,
    #[serde(default)]
    pub public_keys: Vec<PublicKey>,
}

/// A public key that verifies a webhook's deliveries.
#[derive(Deserialize)]
pub struct PublicKey {
    pub key: String,
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

impl PermanentSettings {
    /// The given headers by name; `None` if no header was given.
    pub fn headers(&self) -> Result<Option<BTreeMap<String, String>>, Failure> {
        const FORM: &str = "--header takes a header: write it as 'name: value', or as 'name: @FILE'";
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        let is_from_stdin = |header: &&String| header.split_once(':').is_some_and(|(_, value)| value.trim() == "@-");
        if self.headers.iter().filter(is_from_stdin).count() > 1 {
            let reason = "only one --header may have the value `@-`: store the others in files";
            return Err(Failure::Usage(reason.to_owned()));
        }
        for header in &self.headers {
            let (name, value) = header.split_once(':').ok_or_else(|| Failure::Usage(FORM.to_owned()))?;
            let name = name.trim();
            if headers.keys().any(|other| other.eq_ignore_ascii_case(name)) {
                return Err(Failure::Usage(format!("--header gives {name} more than once")));
            }
            let value = match Input::of_reference(value.trim()) {
                Some(input) => {
                    let text = input.text()?;
                    if text.trim().is_empty() {
                        return Err(Failure::Usage(format!("{input} is empty: there is no value for {name}")));
                    }
                    text.trim().to_owned()
                }
                None => value.trim().to_owned(),
            };
            headers.insert(name.to_owned(), value);
        }
        Ok(Some(headers).filter(|headers| !headers.is_empty()))
    }
}

impl PublicKey {
    /// A line break and a line with the current key, which is the first one; empty if there is none.
    pub fn line(keys: &[Self]) -> String {
        let current = keys.first().map(|current| format!("\nPublic key: {}", visible_line(&current.key)));
        current.unwrap_or_default()
    }
}

impl<'a> WebhookBody<'a> {
    /// A body with only these settings.
    pub fn of(settings: &'a Settings) -> Self {
        Self {
            name: None,
            event_url: None,
            delivery: None,
            temporary: false,
            enabled: None,
            headers: None,
            settings,
            permanent: None,
        }
    }

    pub fn creation(&self) -> Call<'static> {
        Call::post(&["webhook"], self)
    }

    /// Changes the webhook at a path; `None` if the body changes nothing.
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

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "null" {
            return Ok(Self(None));
        }
        text.parse::<u32>().map(|limit| Self(Some(limit))).map_err(|_| "it is neither a number nor `null`".to_owned())
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

    fn with_headers(headers: &[&str]) -> PermanentSettings {
        PermanentSettings {
            retries: None,
            timeout: None,
            max_attempts_per_second: None,
            headers: headers.iter().map(|header| (*header).to_owned()).collect(),
            signature: None,
            metadata: None,
        }
    }

    #[test]
    fn a_header_has_its_value_from_the_argument_or_from_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token.txt");
        std::fs::write(&path, "Bearer s3cret\n").expect("it can be written");
        let from_file = format!("Authorization: @{}", path.display());
        let headers = with_headers(&["X-Link:https://a.example/", &from_file]).headers().expect("headers");
        let headers = headers.expect("two headers");
        assert_eq!(headers.get("X-Link").map(String::as_str), Some("https://a.example/"));
        assert_eq!(headers.get("Authorization").map(String::as_str), Some("Bearer s3cret"));
        assert_eq!(with_headers(&[]).headers().expect("no header"), None);
    }

    #[test]
    fn a_wrong_header_is_refused_without_its_value() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("empty.txt");
        std::fs::write(&path, "\n").expect("it can be written");
        let empty = format!("X-A: @{}", path.display());
        for (wrong, part) in [
            (&["s3cret"][..], "write it as 'name: value', or as 'name: @FILE'"),
            (&["X-A: 1", "x-a: s3cret"], "more than once"),
            (&["X-A: @/nothing/there"], "/nothing/there cannot be read"),
            (&[empty.as_str()], "empty.txt is empty: there is no value for X-A"),
            (&["@-"], "write it as 'name: value', or as 'name: @FILE'"),
            (&["X-A: @-", "X-B:@- "], "only one --header may have the value `@-`"),
        ] {
            let refused = with_headers(wrong).headers().expect_err("a wrong header").to_string();
            assert!(refused.contains(part) && !refused.contains("s3cret"), "{refused}");
        }
    }

    #[test]
    fn a_rate_limit_is_a_number_or_null() {
        let json = |text: &str| text.parse::<RateLimit>().map(|limit| serde_json::to_string(&limit).expect("JSON"));
        assert_eq!(json("20").as_deref(), Ok("20"));
        assert_eq!(json("null").as_deref(), Ok("null"));
        assert!(json("").is_err() && json("fast").is_err());
    }
}
