//! The webhooks that got no delivery of an event, each with the reason if the service shows it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{published::Event, shown::Webhook};
use crate::{
    output::{short_time, visible_line},
    service::{Call, Service},
};

/// The maximum number of filters tried on an event: the service limits such requests.
const MOST_FILTERS: usize = 5;

/// A webhook that got no delivery of an event.
pub struct Missed<'a> {
    pub webhook: &'a Webhook,
    pub reason: Reason,
}

/// Why a webhook got no delivery of an event. `disabled` and `filtered` are also causes in the service's `advice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The webhook's types do not include the event's.
    NotSubscribed,
    /// The event reports the webhook's state.
    AboutWebhook,
    CreatedLater,
    Disabled,
    Filtered,
    /// The webhook's filter could not be tried on the event.
    FilterUntried,
    /// The webhook's settings match the event now, but were changed after the event was published.
    ChangedLater,
    Unknown,
}

/// A filter check on the events from one millisecond.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FilterTrial<'a> {
    event_filter: &'a RawValue,
    created_from: Timestamp,
    created_until: Timestamp,
}

#[derive(Deserialize)]
struct Tried {
    items: Vec<TriedEvent>,
}

#[derive(Deserialize)]
struct TriedEvent {
    id: String,
    matches: bool,
}

/// The webhooks that got no delivery of an event. Webhooks that subscribe to other types are the least surprising and
/// come last.
pub async fn missed<'a>(service: &Service, event: &Event, webhooks: &'a [Webhook]) -> Vec<Missed<'a>> {
    let mut missed = Vec::new();
    let mut tried = 0;
    for webhook in webhooks.iter().filter(|webhook| !event.has_delivery_to(&webhook.id)) {
        let reason = match (Reason::of_settings(webhook, event), &webhook.event_filter) {
            (Some(reason), _) => reason,
            (None, None) => Reason::of_match(webhook, event),
            (None, Some(filter)) if tried < MOST_FILTERS && !event.is_erased() => {
                tried += 1;
                match filter_matches(service, filter, event).await {
                    Some(true) => Reason::of_match(webhook, event),
                    Some(false) => Reason::Filtered,
                    None => Reason::FilterUntried,
                }
            }
            (None, Some(_)) => Reason::FilterUntried,
        };
        missed.push(Missed { webhook, reason });
    }
    missed.sort_by_key(|missed| missed.reason == Reason::NotSubscribed);
    missed
}

/// Whether the event's data matches a filter; `None` if the service cannot say, such as right after publishing.
async fn filter_matches(service: &Service, filter: &RawValue, event: &Event) -> Option<bool> {
    let trial =
        FilterTrial { event_filter: filter, created_from: event.timestamp, created_until: event.next_millisecond() };
    // An explanation without this reason is better than none.
    let tried: Tried = service.call(Call::post(&["webhook", "event", "filter", "check"], trial)).await.ok()?;
    tried.items.iter().find(|tried| tried.id == event.id).map(|tried| tried.matches)
}

impl Reason {
    /// The reason according to the settings other than the filter; `None` if they match the event.
    fn of_settings(webhook: &Webhook, event: &Event) -> Option<Self> {
        let was_disabled = match webhook.disabled_date {
            Some(since) => since <= event.timestamp,
            None => !webhook.enabled,
        };
        if !webhook.subscribes_to(&event.kind) {
            Some(Self::NotSubscribed)
        } else if event.is_about(&webhook.id) {
            Some(Self::AboutWebhook)
        } else if webhook.created_date > event.timestamp {
            Some(Self::CreatedLater)
        } else {
            was_disabled.then_some(Self::Disabled)
        }
    }

    /// The reason if the webhook matches the event now.
    fn of_match(webhook: &Webhook, event: &Event) -> Self {
        if webhook.last_update > event.timestamp { Self::ChangedLater } else { Self::Unknown }
    }
}

impl Missed<'_> {
    /// The reason in a sentence.
    pub fn sentence(&self, event: &Event) -> String {
        let time = |time: Timestamp| short_time(&time.to_string());
        let webhook = self.webhook;
        match self.reason {
            Reason::NotSubscribed => format!("Its types do not include {}.", visible_line(&event.kind)),
            Reason::AboutWebhook => "An event about a webhook is not delivered to that webhook.".to_owned(),
            Reason::CreatedLater => format!("It was created later, at {}.", time(webhook.created_date)),
            Reason::Disabled => match webhook.disabled_date {
                Some(since) => format!("It has been disabled since {}.", time(since)),
                None => "It is disabled.".to_owned(),
            },
            Reason::Filtered => "The event's data does not match its filter.".to_owned(),
            Reason::FilterUntried => "It has a filter, which could not be tried on the event.".to_owned(),
            Reason::ChangedLater => {
                format!(
                    "Its types and filter match the event now; it was changed later, at {}.",
                    time(webhook.last_update)
                )
            }
            Reason::Unknown => "Its types and filter match the event; the service does not show the reason.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, data: &Value) -> Event {
        let event = json!({
            "id": "evt_1", "type": kind, "timestamp": "2026-11-20T09:45:00.123Z", "data": data, "deliveries": [],
        });
        serde_json::from_str(&event.to_string()).expect("an event")
    }

    fn webhook(members: &Value) -> Webhook {
        let mut webhook = json!({
            "id": "whk_1", "name": "Booking sync", "enabled": true, "eventList": ["booking.*"],
            "createdDate": "2026-11-01T00:00:00.000Z", "lastUpdate": "2026-11-01T00:00:00.000Z",
        });
        let members = members.as_object().expect("an object").clone();
        webhook.as_object_mut().expect("an object").extend(members);
        serde_json::from_str(&webhook.to_string()).expect("a webhook")
    }

    #[test]
    fn settings_show_why_a_webhook_got_no_delivery() {
        let booking = event("booking.created", &json!({}));
        for (members, reason, part) in [
            (json!({ "eventList": ["payee.*"] }), Reason::NotSubscribed, "do not include booking.created"),
            (json!({ "createdDate": "2026-11-20T09:45:00.124Z" }), Reason::CreatedLater, "at 2026-11-20 09:45:00Z"),
            (
                json!({ "enabled": false, "disabledDate": "2026-11-19T00:00:00.000Z" }),
                Reason::Disabled,
                "since 2026-11-19 00:00:00Z",
            ),
            (json!({ "enabled": false }), Reason::Disabled, "It is disabled."),
        ] {
            let webhook = webhook(&members);
            assert_eq!(Reason::of_settings(&webhook, &booking), Some(reason), "{members}");
            let sentence = Missed { webhook: &webhook, reason }.sentence(&booking);
            assert!(sentence.contains(part), "{sentence}");
        }
        let about = event("webhook.failing", &json!({ "webhooks": [{ "webhookIdentifier": "whk_1" }] }));
        let reason = Reason::of_settings(&webhook(&json!({ "eventList": [] })), &about);
        assert_eq!(reason, Some(Reason::AboutWebhook));
    }

    #[test]
    fn a_webhook_that_was_changed_or_disabled_later_may_have_had_other_settings() {
        let booking = event("booking.created", &json!({}));
        let later = json!({
            "enabled": false, "disabledDate": "2026-11-20T10:00:00.000Z", "lastUpdate": "2026-11-20T10:00:00.000Z",
        });
        let changed = webhook(&later);
        assert_eq!(Reason::of_settings(&changed, &booking), None);
        assert_eq!(Reason::of_match(&changed, &booking), Reason::ChangedLater);
        let unchanged = webhook(&json!({}));
        assert_eq!(Reason::of_settings(&unchanged, &booking), None);
        assert_eq!(Reason::of_match(&unchanged, &booking), Reason::Unknown);
    }

    #[test]
    fn a_filter_is_tried_exactly_as_the_service_shows_it() {
        let filter = serde_json::from_str::<Box<RawValue>>(r#"{"a": [1.10]}"#).expect("JSON");
        let booking = event("booking.created", &json!({}));
        let trial = FilterTrial {
            event_filter: &filter,
            created_from: booking.timestamp,
            created_until: booking.next_millisecond(),
        };
        let expected = r#"{"eventFilter":{"a": [1.10]},"createdFrom":"2026-11-20T09:45:00.123Z","createdUntil":"2026-11-20T09:45:00.124Z"}"#;
        assert_eq!(serde_json::to_string(&trial).expect("JSON"), expected);
    }
}
