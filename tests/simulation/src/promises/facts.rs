//! The facts of a history, arranged for the checks.

use std::{collections::BTreeMap, sync::Arc};

use base::DeliveryId;
use serde_json::Value;

use crate::{
    aws::table::{Item, ItemKey, Version},
    endpoints::{SeenRequest, Slot},
    world::State,
};

/// All facts of a history.
pub struct Facts<'a> {
    /// The state at the end.
    pub state: &'a State,
    /// The deliveries by identifier.
    pub deliveries: BTreeMap<String, DeliveryFacts<'a>>,
    /// All versions of the webhooks by identifier.
    pub webhooks: BTreeMap<String, WebhookFacts<'a>>,
}

/// A delivery, as it is at the end of a history.
pub struct DeliveryFacts<'a> {
    /// The identifier of the delivery's event.
    pub event: String,
    /// When the event was written, in milliseconds.
    pub published: u64,
    /// The delivery's head.
    pub head: &'a Item,
    /// The delivery's attempts, oldest first.
    pub attempts: Vec<AttemptFacts>,
    /// The requests for the delivery that its endpoint received, in order of arrival.
    pub seen: Vec<&'a SeenRequest>,
    /// All versions of the head.
    pub versions: Vec<&'a Version>,
}

/// An attempt in a delivery's history.
#[derive(Debug, Clone)]
pub struct AttemptFacts {
    /// The attempt's number.
    pub number: u64,
    /// When the attempt began, in milliseconds, by its sandbox's clock.
    pub began: u64,
    /// When the attempt ended.
    pub ended: u64,
    /// The response's status.
    pub status: Option<u64>,
    /// The outcome, if a feed reader made the attempt.
    pub reader: Option<ReaderOutcome>,
    /// Whether the attempt's worker ended before recording the outcome. The attempt then began when its claim did.
    pub interrupted: bool,
}

/// The outcome of a reader's attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderOutcome {
    /// The reader confirmed the delivery.
    Confirmed,
    /// The reader reported a failure.
    Reported,
    /// The reader did not answer in time.
    Unconfirmed,
}

impl AttemptFacts {
    /// Whether the endpoint or the reader accepted the event.
    pub fn succeeded(&self) -> bool {
        self.reader == Some(ReaderOutcome::Confirmed) || self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// A webhook over time.
pub struct WebhookFacts<'a> {
    /// All versions of the webhook's item.
    pub versions: Vec<&'a Version>,
    /// The webhook's slot, which the webhook's name contains.
    pub slot: Slot,
}

/// A webhook's state at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookState<'a> {
    /// Whether the webhook is enabled.
    pub enabled: bool,
    /// The webhook's URL; empty for a pull webhook.
    pub url: &'a str,
    /// Whether the webhook is a pull webhook.
    pub pulled: bool,
    /// Whether the webhook gets a subject's deliveries in order.
    pub ordered: bool,
    /// Whether failed attempts are retried.
    pub has_retries: bool,
    /// When the owner's pause ends, in milliseconds; 0 if there is none.
    pub paused_until: u64,
}

/// The string in an attribute.
pub fn text<'a>(item: &'a Item, name: &str) -> &'a str {
    item.get(name).and_then(|value| value["S"].as_str()).unwrap_or_default()
}

/// The number in an attribute; 0 if the attribute is absent.
pub fn number(item: &Item, name: &str) -> u64 {
    item.get(name).and_then(|value| number_of(value)).unwrap_or_default()
}

fn number_of(value: &Value) -> Option<u64> {
    value["N"].as_str()?.parse().ok()
}

/// A time, converted to milliseconds.
pub fn millis(text: &str) -> Option<u64> {
    let time: base::Time = text.parse().ok()?;
    u64::try_from(time.as_millis()).ok()
}

impl<'a> Facts<'a> {
    /// Arranges the state at the end of a history.
    pub fn gather(state: &'a State) -> Self {
        let mut versions: BTreeMap<&ItemKey, Vec<&Version>> = BTreeMap::new();
        for version in state.table.versions() {
            versions.entry(&version.key).or_default().push(version);
        }
        let mut webhooks = BTreeMap::new();
        for ((_, sort), versions) in &versions {
            let Some(id) = sort.strip_prefix("WHK#") else { continue };
            let slot = versions.iter().find_map(|version| slot_of(version.item.as_deref()?));
            let Some(slot) = slot else { continue };
            webhooks.insert(id.to_owned(), WebhookFacts { versions: versions.clone(), slot });
        }
        let written = versions.iter().filter(|((partition, _), _)| partition.starts_with("EVENTS#"));
        let events: BTreeMap<_, _> = written.map(|((_, event), versions)| (event.as_str(), versions[0].at)).collect();
        let mut deliveries = BTreeMap::new();
        for ((partition, sort), head) in state.table.items() {
            let Some(delivery) = DeliveryId::parse(sort) else { continue };
            let id = sort.as_str();
            let slot = webhooks.get(text(head, "webhookIdentifier")).map(|webhook| webhook.slot);
            let event = delivery.event().to_string();
            let seen = state.endpoints.seen.iter().filter(|seen| Some(seen.slot) == slot && seen.event == event);
            let mut attempts: Vec<_> = head
                .get("attempts")
                .and_then(|list| list["L"].as_array())
                .into_iter()
                .flatten()
                .filter_map(|attempt| {
                    attempt_of(
                        attempt["M"]
                            .as_object()?
                            .iter()
                            .map(|(name, value)| (name.as_str().into(), Arc::new(value.clone())))
                            .collect(),
                    )
                })
                .collect();
            let large = format!("DLV#{id}");
            let separate = state.table.items().filter(|((of, sort), _)| *of == large && sort.starts_with("ATT#"));
            attempts.extend(separate.filter_map(|(_, item)| attempt_of(item.clone())));
            attempts.sort_by_key(|attempt| attempt.number);
            let key = (partition.clone(), sort.clone());
            let versions = versions.get(&key).cloned().unwrap_or_default();
            let published = events.get(event.as_str()).copied().unwrap_or_default();
            let seen = seen.collect();
            deliveries.insert(id.to_owned(), DeliveryFacts { event, published, head, attempts, seen, versions });
        }
        Self { state, deliveries, webhooks }
    }
}

fn attempt_of(item: Item) -> Option<AttemptFacts> {
    let began = millis(text(&item, "attemptDate"))?;
    Some(AttemptFacts {
        number: number(&item, "attemptNumber"),
        began,
        ended: began + number(&item, "durationMs"),
        status: item.get("httpStatus").and_then(|status| number_of(status)),
        reader: reader_outcome(&item),
        interrupted: text(&item, "error").starts_with("interrupted:"),
    })
}

fn reader_outcome(attempt: &Item) -> Option<ReaderOutcome> {
    if attempt.get("confirmed").is_some_and(|confirmed| confirmed["BOOL"] == true) {
        return Some(ReaderOutcome::Confirmed);
    }
    match text(attempt, "error").split(':').next() {
        Some("reported") => Some(ReaderOutcome::Reported),
        Some("unconfirmed") => Some(ReaderOutcome::Unconfirmed),
        _ => None,
    }
}

/// A webhook's slot, which the webhook's name contains.
pub(crate) fn slot_of(webhook: &Item) -> Option<Slot> {
    let (tenant, number) = text(webhook, "name").strip_prefix("Webhook (")?.strip_suffix(')')?.split_once(", ")?;
    Some((tenant.parse().ok()?, number.parse().ok()?))
}

impl WebhookFacts<'_> {
    /// The states that the webhook had during this period, in milliseconds; `None` for a time before it was registered
    /// or after it was removed.
    pub fn between(&self, from: u64, until: u64) -> impl Iterator<Item = Option<WebhookState<'_>>> {
        let before = self.versions.iter().rposition(|version| version.at <= from);
        let begins_absent = before.is_none().then_some(None);
        let versions = self.versions.iter().skip(before.unwrap_or_default());
        let versions = versions.take_while(move |version| version.at <= until.max(from));
        let states = versions.map(|version| {
            let item = version.item.as_deref()?;
            let enabled = item.get("enabled").is_some_and(|enabled| enabled["BOOL"] == true);
            Some(WebhookState {
                enabled,
                url: text(item, "eventUrl"),
                pulled: text(item, "delivery") == "pull",
                ordered: text(item, "order") == "subject",
                has_retries: text(item, "retries") != "none",
                paused_until: millis(text(item, "pausedUntil")).unwrap_or_default(),
            })
        });
        begins_absent.into_iter().chain(states)
    }

    /// Whether the webhook subscribed to events of this type for the whole period.
    pub fn wanted(&self, kind: &str, from: u64, until: u64) -> bool {
        let types = self.versions.iter().find_map(|version| {
            let list = version.item.as_deref()?.get("eventList")?["L"].as_array()?;
            Some(list.iter().filter_map(|kind| kind["S"].as_str().map(str::to_owned)).collect::<Vec<_>>())
        });
        let types = types.unwrap_or_default();
        (types.is_empty() || types.iter().any(|wanted| wanted == kind))
            && self.between(from, until).all(|state| state.is_some_and(|state| state.enabled))
    }

    /// Whether the webhook was ordered throughout this period, during which it may have been registered and removed.
    pub fn is_ordered_between(&self, from: u64, until: u64) -> bool {
        self.between(from, until).flatten().all(|state| state.ordered)
    }

    /// When the owner last paused the webhook at or before this time, in milliseconds; 0 if never.
    pub fn last_paused(&self, until: u64) -> u64 {
        let ends = self.versions.iter().skip(1).map(|version| version.at).chain([u64::MAX]);
        let pauses = self.versions.iter().zip(ends).filter_map(|(version, replaced)| {
            let end = millis(text(version.item.as_deref()?, "pausedUntil"))?;
            (version.at <= until && end > version.at).then_some(end.min(replaced).min(until))
        });
        pauses.max().unwrap_or_default()
    }

    /// Whether the webhook was removed or disabled at any moment in this period.
    pub fn was_off(&self, from: u64, until: u64) -> bool {
        self.between(from, until).any(|state| state.is_none_or(|state| !state.enabled))
    }
}
