//! The explanation of deliveries of events about a subject.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{MOST, all_webhooks, explanations, whole_deliveries};
use crate::{
    commands::deliveries::newest,
    failure::Failure,
    output::{Output, short_time, visible_line},
    service::{Call, Service},
};

/// The maximum number of events without a delivery that are named.
const MOST_EVENTS: usize = 5;
/// The maximum number of pages searched for events. A page may be empty and still have a next page.
const MOST_PAGES: usize = 10;

#[derive(Deserialize)]
struct Identified {
    id: String,
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
}

/// Explains the newest deliveries of events about a subject.
pub async fn explain(service: &Service, subject: &str, output: Output) -> Result<(), Failure> {
    let listed = newest(service, &[("subject", subject.to_owned())], MOST + 1).await?;
    let ids = listed.iter().take(MOST).map(|listed| service.read(listed.get()).map(|Identified { id }| id));
    let deliveries = whole_deliveries(service, ids.collect::<Result<_, _>>()?).await?;
    if deliveries.is_empty() {
        let reason = undelivered(subject, &newest_events(service, subject).await?);
        if !output.json {
            return Ok(output.text(reason)?);
        }
        output.remark(reason);
    }
    if output.json {
        let exact = deliveries.iter().map(|text| service.read::<Box<RawValue>>(text));
        return Ok(output.write(exact.collect::<Result<Vec<_>, _>>()?, "")?);
    }
    // Explanations without the webhooks' names are better than none.
    let webhooks = all_webhooks(service).await.unwrap_or_default();
    output.text(explanations(service, &deliveries, &webhooks)?)?;
    if listed.len() > MOST {
        output.remark(format!("Only the newest {MOST} are explained: `waypost deliveries` lists all."));
    }
    Ok(())
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

/// The text about a subject without deliveries.
fn undelivered(subject: &str, events: &[ListedEvent]) -> String {
    let subject = visible_line(subject);
    let Some(newest) = events.first() else {
        return format!(
            "Nothing about `{subject}` was found, neither a delivery nor an event. It was not published for this \
             managing entity, has another subject, matched no webhook and was not stored, or its retention has ended.\
             \n\nNext:\n  \
             waypost whoami       shows the managing entity\n  \
             waypost deliveries   lists the newest deliveries with their subjects"
        );
    };
    let line = |event: &ListedEvent| {
        let time = short_time(&event.timestamp.to_string());
        format!("  {}  {}  {time}\n", visible_line(&event.id), visible_line(&event.kind))
    };
    let lines: String = events.iter().map(line).collect();
    format!(
        "No delivery of `{subject}` was found, but its events were published:\n{lines}Next:\n  waypost why {}",
        visible_line(&newest.id)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_without_deliveries_has_events_or_is_unknown() {
        let page = r#"{"items":[{"id":"evt_2","type":"booking.changed","timestamp":"2026-11-20T09:45:00.123Z"},
            {"id":"evt_1","type":"booking.created","timestamp":"2026-11-20T09:40:00Z"}]}"#;
        let page: EventPage = serde_json::from_str(page).expect("a page");
        let expected = "\
No delivery of `B-1` was found, but its events were published:
  evt_2  booking.changed  2026-11-20 09:45:00Z
  evt_1  booking.created  2026-11-20 09:40:00Z
Next:
  waypost why evt_2";
        assert_eq!(undelivered("B-1", &page.items), expected);
        let unknown = undelivered("B\u{1b}1", &[]);
        assert!(unknown.starts_with("Nothing about `B\u{fffd}1` was found") && unknown.contains("whoami"), "{unknown}");
    }
}
