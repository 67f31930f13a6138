//! Changes to an existing webhook: the attributes that they set, and the ones that must not have changed since they
//! were read. A change leaves other attributes alone, so that concurrent changes never undo each other.

use crate::events::payload::Payload;
use crate::subscriptions::{
    attempt_settings::{Retries, TimeoutSeconds},
    endpoint::{Kept, Part, masked::Headers, secret::SealedSecret},
    filter::EventFilter,
    rate_limit::{PerSecond, RateLimit},
    webhook::{Delivering, DeliveryOrder, Webhook, key, members::Members, pause::Pause, store::SigningWebhook},
};
use base::Time;
use storage::table::{Change, Condition, TableError, Value, absent, is};

/// The change to an endpoint. A missing part does not change.
#[derive(Default)]
pub struct EndpointChange {
    pub url: Option<PartChange<String>>,
    pub headers: Option<PartChange<Headers>>,
}

impl EndpointChange {
    /// A change to no part.
    pub fn none() -> Self {
        Self {
            url: Some(PartChange { kept: Kept { shown: String::new(), sealed: None }, differs: true, made_of: None }),
            headers: Some(PartChange {
                kept: Kept { shown: Headers::new(), sealed: None },
                differs: true,
                made_of: None,
            }),
        }
    }
}

/// The change to a part of an endpoint.
pub struct PartChange<T> {
    /// The new part.
    pub kept: Kept<T>,
    /// Whether the new part differs from the stored one.
    pub differs: bool,
    /// The stored part from which it is derived, and which must not have changed.
    pub made_of: Option<Kept<T>>,
}

impl<T: Clone> PartChange<T> {
    /// The stored part, on condition that it has not changed.
    pub fn unchanged(kept: Kept<T>) -> Self {
        Self { made_of: Some(kept.clone()), differs: false, kept }
    }
}

const CHANGING: &str = "changing a webhook";

/// The change that an owner requests. Its conditions are the attributes that it depends on, and the version if it names
/// one. So concurrent changes without a version all take effect.
pub fn change(
    read: &Webhook,
    members: &Members,
    endpoint: &EndpointChange,
    of_version: bool,
    now: Time,
) -> Result<Change, TableError> {
    let Members { name, delivery, enabled, event_filter, event_list, metadata, order, payload, .. } = members;
    let event_list = event_list.as_ref().map(|list| Value::of(list, CHANGING)).transpose()?;
    let mut change = Change::of(key(&read.owner_identifier, &read.id))
        .set_some("name", name.as_deref())
        .set_some("delivery", delivery.map(Delivering::as_str))
        .set_some("enabled", *enabled)
        .set_some("eventList", event_list)
        .set_some("payload", payload.map(Payload::as_str))
        .set_some("order", order.map(DeliveryOrder::as_str))
        .set("lastUpdate", now)
        .only_if(is("enabled", read.enabled))
        // Whether an address is allowed depends on how the events are delivered.
        .only_if(of_delivery(read.delivery));
    if let Some(filter) = event_filter {
        change = change.set_or_remove("eventFilter", filter.as_ref().map(EventFilter::as_str));
    }
    if let Some(metadata) = metadata {
        let shown = (!metadata.is_empty()).then(|| Value::of(metadata, CHANGING)).transpose()?;
        change = change.set_or_remove("metadata", shown);
    }
    if let Some(limit) = changed_limit(read, members) {
        let limit = limit.map(|per_second| Value::of(&RateLimit { per_second, since: now }, CHANGING)).transpose()?;
        change = change.set_or_remove("rateLimit", limit);
    }
    change = with_attempt_settings(change, members);
    if of_version {
        change = change.only_if(is("version", read.version));
    }
    match *enabled {
        // The service's reason is obsolete once the owner has enabled the webhook.
        Some(true) => change = change.remove("disabledReason").remove("disabledDate"),
        Some(false) if read.enabled => change = change.set("disabledDate", now),
        _ => {}
    }
    if ends_pause(read, members) {
        change = without_pause(change);
    }
    let change = with_part(change, ["eventUrl", "sealedEventUrl"], endpoint.url.as_ref())?;
    let change = with_part(change, ["headers", "sealedHeaders"], endpoint.headers.as_ref())?;
    Ok(change.add("version", 1_u32))
}

/// Begins a pause, or gives it another end. The version does not change, as with [`secrets`].
pub fn pause(read: &Webhook, Pause { since, until }: Pause, now: Time) -> Change {
    let [was_since, was_until] = of_pause(read.pause);
    Change::of(key(&read.owner_identifier, &read.id))
        .set("pausedSince", since)
        .set_or_remove("pausedUntil", until)
        .set("lastUpdate", now)
        .only_if(is("enabled", true))
        .only_if(of_delivery(Delivering::Push))
        .only_if(was_since)
        .only_if(was_until)
}

/// Ends the pause that was read.
pub fn resume(read: &Webhook, pause: Pause, now: Time) -> Change {
    let change = Change::of(key(&read.owner_identifier, &read.id)).set("lastUpdate", now);
    let [since, until] = of_pause(Some(pause));
    without_pause(change).only_if(is("enabled", true)).only_if(since).only_if(until)
}

/// Whether a change ends a pause: a webhook that is enabled again is not paused, and deliveries in a feed are waiting
/// for their reader.
pub fn ends_pause(read: &Webhook, members: &Members) -> bool {
    let is_enabled_again = !read.enabled && members.enabled == Some(true);
    read.pause.is_some() && (is_enabled_again || members.delivery == Some(Delivering::Pull))
}

fn without_pause(change: Change) -> Change {
    change.remove("pausedSince").remove("pausedUntil")
}

/// The conditions that a webhook has this pause, or none.
pub fn of_pause(pause: Option<Pause>) -> [Condition; 2] {
    let has = |name, time: Option<Time>| time.map_or_else(|| absent(name), |time| is(name, time));
    [has("pausedSince", pause.map(|pause| pause.since)), has("pausedUntil", pause.and_then(|pause| pause.until))]
}

/// The rate limit that a change sets, if it differs from the one that was read. A pull webhook has none.
pub fn changed_limit(read: &Webhook, members: &Members) -> Option<Option<PerSecond>> {
    let wanted = if members.delivery == Some(Delivering::Pull) { Some(None) } else { members.max_attempts_per_second };
    wanted.filter(|wanted| *wanted != read.rate_limit.map(|limit| limit.per_second))
}

/// Sets the timeout and the retries; a default is stored as an absent attribute. A pull webhook has the defaults.
fn with_attempt_settings(change: Change, members: &Members) -> Change {
    let ends = members.delivery == Some(Delivering::Pull);
    let timeout = if ends { Some(TimeoutSeconds::default()) } else { members.timeout_seconds };
    let retries = if ends { Some(Retries::default()) } else { members.retries };
    let change = match timeout {
        Some(timeout) => change.set_or_remove("timeoutSeconds", (!timeout.is_default()).then(|| timeout.get())),
        None => change,
    };
    match retries {
        Some(retries) => change.set_or_remove("retries", (!retries.is_default()).then(|| retries.as_str())),
        None => change,
    }
}

/// The condition that a webhook delivers its events in this way. Items from the first release lack the attribute.
fn of_delivery(delivery: Delivering) -> Condition {
    let condition = is("delivery", delivery.as_str());
    if delivery == Delivering::Push { condition.or(absent("delivery")) } else { condition }
}

/// Adds the change to a part of the endpoint, which consists of two attributes: the text shown and the sealed one.
fn with_part<T: Part>(
    change: Change,
    [shown, sealed]: [&'static str; 2],
    part: Option<&PartChange<T>>,
) -> Result<Change, TableError> {
    let Some(PartChange { kept, made_of, .. }) = part else { return Ok(change) };
    let change = change.set(shown, Value::of(&kept.shown, CHANGING)?).set_or_remove(sealed, kept.sealed.as_deref());
    let Some(read) = made_of else { return Ok(change) };
    Ok(change.only_if(is(shown, Value::of(&read.shown, CHANGING)?)).only_if(match &read.sealed {
        Some(value) => is(sealed, value.as_str()),
        None => absent(sealed),
    }))
}

/// Replaces the signing secrets that were read. The version does not change (`endpoint::rotate`).
pub fn secrets(read: &SigningWebhook, new: &[SealedSecret], now: Time) -> Result<Change, TableError> {
    let webhook = &read.webhook;
    let change = Change::of(key(&webhook.owner_identifier, &webhook.id)).set("lastUpdate", now);
    with_secrets(change, read, new)
}

/// The change that also replaces the signing secrets that were read.
pub fn with_secrets(change: Change, read: &SigningWebhook, new: &[SealedSecret]) -> Result<Change, TableError> {
    const DOING: &str = "replacing a signing secret";
    Ok(change
        .set("signingSecrets", Value::of(&new, DOING)?)
        .only_if(is("signingSecrets", Value::of(&read.secrets, DOING)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::{attempt_settings, webhook::tests::webhook};

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn part<T>(shown: T, sealed: Option<&str>) -> Kept<T> {
        Kept { shown, sealed: sealed.map(str::to_owned) }
    }

    fn unchanged() -> Change {
        Change::of(key(&webhook().owner_identifier, &webhook().id))
    }

    fn change(members: Members, of_version: bool) -> Change {
        super::change(&webhook(), &members, &EndpointChange::default(), of_version, NOW).expect("written")
    }

    fn change_of(endpoint: &EndpointChange) -> Change {
        super::change(&webhook(), &Members::default(), endpoint, false, NOW).expect("written")
    }

    #[test]
    fn given_members_are_set_and_every_change_counts() {
        let expected = unchanged().set("name", "m").set("lastUpdate", NOW).add("version", 1_u32);
        let change = change(Members { name: Some("m".into()), ..Members::default() }, false);
        assert_eq!(change, expected.only_if(is("enabled", false)).only_if(of_delivery(Delivering::Push)));
    }

    #[test]
    fn a_filter_is_set_and_null_removes_it() {
        let filter = EventFilter::read(r#"{ "a": [1] }"#).expect("a filter");
        let with = |filter| change(Members { event_filter: Some(filter), ..Members::default() }, false);
        let unchanged = || unchanged().set("lastUpdate", NOW);
        let expected = unchanged().set("eventFilter", r#"{"a":[1]}"#).add("version", 1_u32);
        let expected = expected.only_if(is("enabled", false)).only_if(of_delivery(Delivering::Push));
        assert_eq!(with(Some(filter)), expected);
        let expected = unchanged().remove("eventFilter").add("version", 1_u32);
        let expected = expected.only_if(is("enabled", false)).only_if(of_delivery(Delivering::Push));
        assert_eq!(with(None), expected);
    }

    #[test]
    fn a_default_of_attempts_is_stored_as_an_absent_attribute() {
        let with = |timeout: u32, retries| Members {
            timeout_seconds: Some(attempt_settings::tests::timeout(timeout)),
            retries: Some(retries),
            ..Members::default()
        };
        let now = || unchanged().set("lastUpdate", NOW);
        let finished = |change: Change| {
            change.add("version", 1_u32).only_if(is("enabled", false)).only_if(of_delivery(Delivering::Push))
        };
        let set = finished(now().set("timeoutSeconds", 5_u32).set("retries", "none"));
        assert_eq!(change(with(5, Retries::None), false), set);
        let removed = finished(now().remove("timeoutSeconds").remove("retries"));
        assert_eq!(change(with(15, Retries::Default), false), removed);
    }

    #[test]
    fn a_change_of_a_version_is_lost_on_any_other() {
        let nothing = Value::of(&Vec::<String>::new(), "").expect("a list");
        let expected = unchanged().set("eventList", nothing).set("lastUpdate", NOW).add("version", 1_u32);
        let change = change(Members { event_list: Some(Vec::new()), ..Members::default() }, true);
        assert_eq!(
            change,
            expected.only_if(is("enabled", false)).only_if(of_delivery(Delivering::Push)).only_if(is("version", 7_u64))
        );
    }

    #[test]
    fn shown_and_sealed_texts_are_written_together_if_unchanged() {
        let url = "https://example.com/?a=***";
        let headers = Headers::new();
        let endpoint = EndpointChange {
            url: Some(PartChange {
                kept: part(url.to_owned(), Some("k.new")),
                differs: true,
                made_of: Some(part(url.to_owned(), Some("k.old"))),
            }),
            headers: Some(PartChange { kept: part(headers.clone(), None), differs: true, made_of: None }),
        };
        let expected = unchanged()
            .set("lastUpdate", NOW)
            .set("eventUrl", url)
            .set("sealedEventUrl", "k.new")
            .set("headers", Value::of(&headers, "").expect("a map"))
            .remove("sealedHeaders")
            .add("version", 1_u32)
            .only_if(is("enabled", false))
            .only_if(of_delivery(Delivering::Push))
            .only_if(is("eventUrl", url))
            .only_if(is("sealedEventUrl", "k.old"));
        assert_eq!(change_of(&endpoint), expected);
    }

    #[test]
    fn only_enabling_takes_the_reason_away() {
        let set = |enabled: bool| unchanged().set("enabled", enabled).set("lastUpdate", NOW);
        let enabling = set(true)
            .remove("disabledReason")
            .remove("disabledDate")
            .add("version", 1_u32)
            .only_if(is("enabled", false))
            .only_if(of_delivery(Delivering::Push));
        assert_eq!(change(Members { enabled: Some(true), ..Members::default() }, false), enabling);
        let disabling = set(false).add("version", 1_u32).only_if(is("enabled", false));
        let disabling = disabling.only_if(of_delivery(Delivering::Push));
        assert_eq!(change(Members { enabled: Some(false), ..Members::default() }, false), disabling);
    }

    #[test]
    fn a_webhook_that_is_enabled_again_or_gets_a_feed_is_not_paused_any_more() {
        let pause = Some(Pause { since: NOW, until: None });
        let enabling = Members { enabled: Some(true), ..Members::default() };
        let pulling = Members { delivery: Some(Delivering::Pull), ..Members::default() };
        let disabled = Webhook { pause, ..webhook() };
        let enabled = Webhook { enabled: true, ..disabled.clone() };
        assert!(ends_pause(&disabled, &enabling) && ends_pause(&enabled, &pulling));
        assert!(!ends_pause(&enabled, &enabling), "a client that sends every member does not resume it");
        assert!(!ends_pause(&enabled, &Members { enabled: Some(false), ..Members::default() }));
        assert!(!ends_pause(&webhook(), &enabling), "it was not paused");
    }

    #[test]
    fn a_pause_is_changed_only_as_it_was_read() {
        let [was, none] = [Pause { since: NOW, until: Some(NOW) }, Pause { since: NOW, until: None }];
        assert_ne!(of_pause(Some(was)), of_pause(Some(none)));
        assert_eq!(of_pause(None), [absent("pausedSince"), absent("pausedUntil")]);
    }

    #[test]
    fn a_webhook_that_is_disabled_while_it_is_enabled_gets_the_date() {
        let enabled = Webhook { enabled: true, ..webhook() };
        let members = Members { enabled: Some(false), ..Members::default() };
        let change = super::change(&enabled, &members, &EndpointChange::default(), false, NOW).expect("written");
        let expected = unchanged().set("enabled", false).set("lastUpdate", NOW).set("disabledDate", NOW);
        assert_eq!(
            change,
            expected.add("version", 1_u32).only_if(is("enabled", true)).only_if(of_delivery(Delivering::Push))
        );
    }

    #[test]
    fn a_secret_without_a_key_pair_is_written_as_by_the_release_before() {
        let secret = SealedSecret { sealed: "a".into(), expires_date: None, key_pair: None };
        assert_eq!(serde_json::to_string(&secret).expect("JSON"), r#"{"sealed":"a"}"#);
    }

    #[test]
    fn secrets_are_replaced_if_unchanged_and_the_version_stays() {
        let secret = |sealed: &str| SealedSecret { sealed: sealed.into(), expires_date: None, key_pair: None };
        let read = SigningWebhook { webhook: webhook(), secrets: vec![secret("a")] };
        let new = [secret("b"), secret("a")];
        let list = |secrets: &[SealedSecret]| Value::of(&secrets, "").expect("a list");
        let expected = unchanged().set("lastUpdate", NOW).set("signingSecrets", list(&new));
        let expected = expected.only_if(is("signingSecrets", list(&read.secrets)));
        assert_eq!(secrets(&read, &new, NOW).expect("written"), expected);
    }
}
