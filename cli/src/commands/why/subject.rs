//! The explanation of the deliveries of events about a subject.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{MOST, all_webhooks, explanations, position, shown::Webhook, whole_deliveries};
use crate::{
    commands::deliveries::newest,
    failure::Failure,
    output::{Output, shell_word, short_time, visible_line},
    service::{Call, Service},
};

/// The maximum number of deliveries among which those in trouble are found.
const MOST_LISTED: usize = 100;
/// The number of deliveries that `waypost deliveries` lists without `--limit`.
const LISTED_BY_DEFAULT: usize = 25;
/// The maximum number of events that are named.
const MOST_EVENTS: usize = 20;
/// The maximum number of pages searched for events. A page may be empty and still have a next one.
const MOST_PAGES: usize = 10;
/// The maximum number of webhooks that are named for an event.
const MOST_NAMES: usize = 3;

#[derive(Deserialize)]
struct Listed {
    id: String,
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventPage {
    items: Vec<ListedEvent>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct ListedEvent {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    timestamp: Timestamp,
    deliveries: Vec<DeliveriesByStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeliveriesByStatus {
    webhook_identifiers: Vec<String>,
}

impl ListedEvent {
    /// The event in a line.
    fn line(&self) -> String {
        let time = short_time(&self.timestamp.to_string());
        format!("  {}  {}  {time}", visible_line(&self.id), visible_line(&self.kind))
    }

    /// The names of the webhooks without a delivery of the event, those that subscribe to its type first. A webhook that
    /// was created later is left out.
    fn missed<'a>(&self, webhooks: &'a [Webhook]) -> Vec<&'a str> {
        let with_delivery: HashSet<_> = self.deliveries.iter().flat_map(|some| &some.webhook_identifiers).collect();
        let existed = |webhook: &&Webhook| webhook.created_date <= self.timestamp;
        let missed = webhooks.iter().filter(|webhook| !with_delivery.contains(&webhook.id)).filter(existed);
        let mut missed: Vec<_> = missed.collect();
        missed.sort_by_key(|webhook| !webhook.subscribes_to(&self.kind));
        missed.into_iter().map(|webhook| webhook.name.as_str()).collect()
    }

    /// Which webhooks have no delivery of the event; `None` if all have one.
    fn without_delivery(&self, webhooks: &[Webhook]) -> Option<String> {
        if self.deliveries.is_empty() {
            return Some("no delivery".to_owned());
        }
        let missed = self.missed(webhooks);
        let more = missed.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let names: Vec<_> = missed.into_iter().take(MOST_NAMES).map(visible_line).collect();
        (!names.is_empty()).then(|| format!("no delivery to {}{more}", names.join(", ")))
    }
}

/// Prints the explanations of the deliveries of events about a subject.
pub async fn explain(service: &Service, given: &str, output: Output) -> Result<(), Failure> {
    for subject in &spellings(given) {
        let listed = newest(service, &[("subject", subject.clone())], MOST_LISTED).await?;
        if !listed.is_empty() {
            report_spelling(given, subject, output);
            return explain_deliveries(service, subject, &listed, output).await;
        }
        let events = newest_events(service, subject).await?;
        if let Some(newest) = events.first() {
            report_spelling(given, subject, output);
            let reason = undelivered(subject, newest, &events);
            if !output.json {
                return Ok(output.text(reason)?);
            }
            output.remark(reason);
            return Ok(output.raw("[]")?);
        }
    }
    Err(nothing_found(given))
}

/// The subjects that a person may mean, in the order in which they are tried: the service finds only whole subjects in
/// their exact spelling.
fn spellings(given: &str) -> Vec<String> {
    let plain = given.trim_start_matches('#').trim_start();
    let mut spellings = vec![given.to_owned()];
    for spelling in [plain.to_owned(), plain.to_uppercase(), plain.to_lowercase()] {
        if !spelling.is_empty() && !spellings.contains(&spelling) {
            spellings.push(spelling);
        }
    }
    spellings
}

/// Names the subject that was found, unless it is the given one.
fn report_spelling(given: &str, subject: &str, output: Output) {
    if given != subject {
        let [given, subject] = [given, subject].map(visible_line);
        output.remark(format!("Found the subject `{subject}`; no delivery has the subject `{given}`."));
    }
}

fn nothing_found(given: &str) -> Failure {
    let reason = format!(
        "nothing about `{}` was found, neither a delivery nor an event. It was not published for this managing entity, \
         has another subject, matched no webhook and was not stored, or its retention has ended",
        visible_line(given)
    );
    let next = "`waypost whoami` shows the managing entity; `waypost deliveries` lists the newest deliveries with their \
                subjects";
    Failure::NothingFound { reason, next: next.to_owned() }
}

/// Prints the explanations of a subject's deliveries, those in trouble first, and a list of its events.
async fn explain_deliveries(
    service: &Service,
    subject: &str,
    listed: &[Box<RawValue>],
    output: Output,
) -> Result<(), Failure> {
    let sorted = listed.iter().map(|delivery| service.read::<Listed>(delivery.get()));
    let mut sorted = sorted.collect::<Result<Vec<_>, _>>()?;
    sorted.sort_by_key(|delivery| position(&delivery.status));
    let ids = sorted.into_iter().take(MOST).map(|delivery| delivery.id);
    let deliveries = whole_deliveries(service, ids.collect()).await?;
    if output.json {
        let exact = deliveries.iter().map(|text| service.read::<Box<RawValue>>(text));
        return Ok(output.write(exact.collect::<Result<Vec<_>, _>>()?, "")?);
    }
    // Explanations without the webhooks' names or the list of events are better than none.
    let webhooks = all_webhooks(service).await.unwrap_or_default();
    let events = newest_events(service, subject).await.unwrap_or_default();
    let events = listed_events(&events, &webhooks).map(|events| format!("\n\n{events}")).unwrap_or_default();
    output.text(format!("{}{events}", explanations(service, &deliveries, &webhooks)?))?;
    if listed.len() > MOST {
        output.remark(cut_notice(subject, listed.len()));
    }
    Ok(())
}

/// The notice that not all deliveries are explained.
fn cut_notice(subject: &str, count: usize) -> String {
    let all = format!("waypost deliveries --subject {}", shell_word(subject));
    if count >= MOST_LISTED {
        let many = format!("Only {MOST} of at least {count} deliveries are explained, failed and waiting ones first");
        return format!("{many}: `{all} --limit 1000` lists them.");
    }
    let limit = if count > LISTED_BY_DEFAULT { format!(" --limit {MOST_LISTED}") } else { String::new() };
    format!("Only {MOST} of {count} deliveries are explained, failed and waiting ones first: `{all}{limit}` lists all.")
}

/// The newest events about a subject, if they are in the first pages.
async fn newest_events(service: &Service, subject: &str) -> Result<Vec<ListedEvent>, Failure> {
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let mut query = vec![("limit", MOST_EVENTS.to_string()), ("subject", subject.to_owned())];
        query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page: EventPage = service.call(Call { query: &query, ..Call::get(&["webhook", "event"]) }).await?;
        if !page.items.is_empty() || page.next_cursor.is_none() {
            return Ok(page.items);
        }
        cursor = page.next_cursor;
    }
    Ok(Vec::new())
}

/// The events of deliveries, and the webhooks without one; `None` if there are no events.
fn listed_events(events: &[ListedEvent], webhooks: &[Webhook]) -> Option<String> {
    if events.is_empty() {
        return None;
    }
    let line = |event: &ListedEvent| {
        let missed = event.without_delivery(webhooks).map(|missed| format!("  {missed}"));
        format!("\n{}{}", event.line(), missed.unwrap_or_default())
    };
    let lines: String = events.iter().map(line).collect();
    let missed = events.iter().find(|event| event.without_delivery(webhooks).is_some());
    let next =
        missed.map(|event| format!("\n`waypost why {}` gives the reasons for that event.", visible_line(&event.id)));
    Some(format!("Events, newest first:{lines}{}", next.unwrap_or_default()))
}

/// The text about a subject without deliveries.
fn undelivered(subject: &str, newest: &ListedEvent, events: &[ListedEvent]) -> String {
    let lines: String = events.iter().map(|event| format!("{}\n", event.line())).collect();
    format!(
        "No delivery of `{}` was found, but its events were published:\n{lines}Next:\n  waypost why {}",
        visible_line(subject),
        visible_line(&newest.id)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<ListedEvent> {
        let page = r#"{"items":[{"id":"evt_2","type":"booking.changed","timestamp":"2026-11-20T09:45:00.123Z",
            "deliveries":[{"status":"failed","count":1,"webhookIdentifiers":["whk_1"]},
            {"status":"delivered","count":1,"webhookIdentifiers":["whk_2"]}]},
            {"id":"evt_1","type":"booking.created","timestamp":"2026-11-20T09:40:00Z","deliveries":[]}]}"#;
        serde_json::from_str::<EventPage>(page).expect("a page").items
    }

    fn webhooks(ids: &[&str]) -> Vec<Webhook> {
        let webhook = |id: &&str| {
            let webhook = format!(
                r#"{{"id":"{id}","name":"Name of {id}","enabled":true,"eventList":[],
                "createdDate":"2026-11-01T00:00:00.000Z","lastUpdate":"2026-11-01T00:00:00.000Z"}}"#
            );
            serde_json::from_str::<Webhook>(&webhook).expect("a webhook")
        };
        ids.iter().map(webhook).collect()
    }

    #[test]
    fn a_subject_without_deliveries_has_events_or_is_unknown() {
        let events = events();
        let expected = "\
No delivery of `B-1` was found, but its events were published:
  evt_2  booking.changed  2026-11-20 09:45:00Z
  evt_1  booking.created  2026-11-20 09:40:00Z
Next:
  waypost why evt_2";
        assert_eq!(undelivered("B-1", &events[0], &events), expected);
        let unknown = nothing_found("B\u{1b}1").to_string();
        assert!(unknown.starts_with("nothing about `B\u{fffd}1` was found"), "{unknown}");
    }

    #[test]
    fn each_event_names_the_webhooks_without_a_delivery() {
        let expected = "\
Events, newest first:
  evt_2  booking.changed  2026-11-20 09:45:00Z  no delivery to Name of whk_3
  evt_1  booking.created  2026-11-20 09:40:00Z  no delivery
`waypost why evt_2` gives the reasons for that event.";
        assert_eq!(listed_events(&events(), &webhooks(&["whk_1", "whk_2", "whk_3"])).as_deref(), Some(expected));
        let many = ["whk_1", "whk_2", "whk_3", "whk_4", "whk_5", "whk_6"];
        let text = listed_events(&events(), &webhooks(&many)).expect("events");
        assert!(text.contains("no delivery to Name of whk_3, Name of whk_4, Name of whk_5 and 1 more\n"), "{text}");
        let all = listed_events(&events()[..1], &webhooks(&["whk_1", "whk_2"])).expect("an event");
        assert_eq!(all, "Events, newest first:\n  evt_2  booking.changed  2026-11-20 09:45:00Z");
        assert_eq!(listed_events(&[], &[]), None);
    }

    #[test]
    fn a_subject_is_tried_as_given_without_a_hash_and_in_other_capitals() {
        for (given, expected) in [
            ("b-1017", &["b-1017", "B-1017"][..]),
            ("#b-1017", &["#b-1017", "b-1017", "B-1017"]),
            ("Ab-1", &["Ab-1", "AB-1", "ab-1"]),
            ("1017", &["1017"]),
            ("#", &["#"]),
        ] {
            assert_eq!(spellings(given), expected, "{given}");
        }
    }

    #[test]
    fn the_notice_of_a_cut_gives_a_command_that_lists_the_deliveries() {
        let some = cut_notice("B-1", 19);
        assert!(some.starts_with("Only 10 of 19 deliveries are explained, failed and waiting ones first: "), "{some}");
        assert!(some.ends_with("`waypost deliveries --subject B-1` lists all."), "{some}");
        assert!(cut_notice("B 1", 40).contains("`waypost deliveries --subject 'B 1' --limit 100` lists all."));
        let many = cut_notice("B-1", MOST_LISTED);
        assert!(many.contains("at least 100 deliveries") && many.contains("--limit 1000`"), "{many}");
    }
}
