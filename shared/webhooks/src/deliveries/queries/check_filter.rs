//! A dry run of a filter on an entity's past events. Only stored events are compared.

use std::ops::ControlFlow;

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde::Serialize;

use crate::{
    deliveries::{
        error::DeliveryError,
        queries::{
            of_events::{Entry, Included, Reading, partitions, position, skip_unreadable_event},
            range::{self, KeyRange, ListPosition},
            replayable::{MAX_ENTRIES, PAGE},
        },
        store::Deliveries,
    },
    events::{
        catalogue,
        store::{EventItem, StoredEvent},
    },
    subscriptions::{
        filter::{EventFilter, data::EventData, matching::Steps, outcomes::MAX_STEPS},
        request_limits::RequestLimits,
        webhook::members,
    },
};
use auth::{AuthorizedEntity, EntityId};
use base::{EventId, Time};
use problem::{JsonBody, Problem, Rule};
use storage::{Allowance, TableError};

/// The maximum number of events that are compared, and the default.
const MAX_EVENTS: u16 = 100;
/// How many events a dry run reads. Expired events count as well: the table may keep them for days.
const MAX_READS: usize = 1_000;
/// How many bodies are read concurrently: each may be 256 KiB long.
const AT_ONCE: usize = 20;
/// The number of steps after which a dry run reads no further events: five times the maximum that publishing allows for
/// one event.
const ENOUGH_STEPS: u32 = 5 * MAX_STEPS;

/// A request for a dry run.
#[derive(Debug)]
pub struct FilterCheckRequest {
    filter: EventFilter,
    /// The types and groups; empty for every type.
    event_list: Vec<String>,
    range: KeyRange,
    limit: u16,
}

/// The outcome of a dry run.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FilterCheck {
    /// How many events of the range were examined, of any type.
    events_read: usize,
    /// How many events would be delivered.
    match_count: usize,
    /// Whether every stored event of the requested types in the range was compared.
    count_is_exact: bool,
    /// The events of the requested types, newest first.
    items: Vec<CheckedEvent>,
    /// The number of steps that the comparisons took.
    #[serde(skip)]
    steps: u32,
    /// How many events of the requested types were read, stored or not.
    #[serde(skip)]
    reads: usize,
    /// Whether an event could not be read.
    #[serde(skip)]
    is_incomplete: bool,
}

/// An index entry, and the result for its event.
enum Read {
    /// The event has a different type.
    Unwanted,
    /// Its retention is over.
    Gone,
    Unreadable,
    Stored(Box<StoredEvent>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckedEvent {
    id: EventId,
    r#type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    timestamp: Time,
    matches: bool,
}

impl FilterCheck {
    /// How many events of the requested types were examined.
    pub(super) fn wanted(&self) -> usize {
        self.items.len()
    }

    /// How many of these events would not be delivered.
    pub(super) fn unmatched(&self) -> usize {
        self.items.len() - self.match_count
    }

    fn add(&mut self, event: CheckedEvent) {
        self.match_count += usize::from(event.matches);
        self.items.push(event);
    }
}

impl FilterCheckRequest {
    /// A dry run of a webhook's filter on the newest events of its types.
    pub(super) fn of_webhook(filter: EventFilter, event_list: Vec<String>) -> Self {
        Self { filter, event_list, range: KeyRange::since(Time::from_millis(0)), limit: MAX_EVENTS }
    }

    /// Reads a request's body.
    pub fn read(body: &[u8], entity: &EntityId, now: Time) -> Result<Self, Problem> {
        const MISSING: &str = "is missing; it must be an object, such as {\"currency\": [\"EUR\"]}";
        let mut body = JsonBody::read(body)?;
        let filter = body.take_raw("eventFilter");
        let event_list = body.optional("eventList", "a list of event types and groups");
        let since = body.optional_time("createdFrom");
        let until = range::take_until(&mut body, since, now);
        let limit = body.optional::<u16>("limit", "a number from 1 to 100");
        let violations = &mut body.violations;
        let filter = match filter {
            Some(json) => EventFilter::take("eventFilter", json, violations),
            None => violations.note("eventFilter", Rule::Required, Err(MISSING)),
        };
        let event_list =
            event_list.map(|list| members::known_types("eventList", list, entity, violations)).unwrap_or_default();
        let limit = limit.unwrap_or(MAX_EVENTS);
        if !(1..=MAX_EVENTS).contains(&limit) {
            violations.add("limit", Rule::OutOfRange, format!("must be a number from 1 to {MAX_EVENTS}"));
        }
        let range = KeyRange::since(since.unwrap_or(Time::from_millis(0)));
        let range = match until {
            Some(until) => range.until(until.min(now)),
            None => range,
        };
        body.finish_with(filter.map(|filter| Self { filter, event_list, range, limit }))
    }

    fn wants(&self, entry: &Entry) -> bool {
        catalogue::list_includes(&self.event_list, &entry.r#type)
    }

    /// Removes the entries after the first `room` requested ones. If any were removed, returns the position of the last
    /// remaining entry.
    fn cut(&self, entries: &mut Vec<Entry>, room: usize) -> Option<ListPosition> {
        let beyond = (0..entries.len()).filter(|at| self.wants(&entries[*at])).nth(room)?;
        entries.truncate(beyond);
        entries.last().map(|entry| position(&entry.id))
    }
}

impl Deliveries {
    /// Compares a filter with an entity's newest events in a range, whether or not they have deliveries, unless the
    /// entity has done so too often. The index of events may lag.
    pub async fn check_filter(
        &self,
        entity: &AuthorizedEntity,
        request: &FilterCheckRequest,
        now: Time,
    ) -> Result<FilterCheck, DeliveryError> {
        RequestLimits::new(self.table.clone()).count(Allowance::FilterChecks, entity, now).await?;
        let limit = usize::from(request.limit);
        let mut check = FilterCheck::default();
        let mut range = request.range.clone();
        let mut entries = 0;
        // Reading one more event than is compared shows whether there are more.
        let mut look = i32::from(request.limit) + 1;
        loop {
            let queries = partitions(entity.id(), Included::All);
            let mut page = self.entries_of(queries, &range, Reading::NewestFirst, look).await?;
            entries += page.looked_at;
            let cut = request.cut(&mut page.found, limit - check.items.len());
            if self.compare(&mut check, page.found, request, now).await?.is_break() {
                return Ok(check);
            }
            let Some(end) = cut.or(page.end) else {
                check.count_is_exact = !check.is_incomplete;
                return Ok(check);
            };
            if entries >= MAX_ENTRIES || check.items.len() >= limit {
                return Ok(check);
            }
            range = range.before(&end);
            look = PAGE;
        }
    }

    /// Compares a filter with the requested events among these entries. Breaks after too many steps or reads.
    async fn compare(
        &self,
        check: &mut FilterCheck,
        entries: Vec<Entry>,
        request: &FilterCheckRequest,
        now: Time,
    ) -> Result<ControlFlow<()>, TableError> {
        // Boxed, since the nested future types exceed the compiler's limits.
        let read = entries.into_iter().map(|entry| {
            async move { if request.wants(&entry) { self.read(&entry.id, now).await } else { Ok(Read::Unwanted) } }
                .boxed()
        });
        let mut read = stream::iter(read.collect::<Vec<_>>()).buffered(AT_ONCE);
        while let Some(read) = read.try_next().await? {
            if check.reads >= MAX_READS {
                return Ok(ControlFlow::Break(()));
            }
            check.events_read += 1;
            check.reads += usize::from(!matches!(read, Read::Unwanted));
            check.is_incomplete |= matches!(read, Read::Unreadable);
            let Read::Stored(stored) = read else { continue };
            let mut left = Steps(MAX_STEPS);
            check.add(checked(*stored, &request.filter, &mut left));
            check.steps += MAX_STEPS - left.0;
            if check.steps >= ENOUGH_STEPS {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads an event with its body. An unreadable event does not block the others.
    async fn read(&self, id: &EventId, now: Time) -> Result<Read, TableError> {
        let found = skip_unreadable_event(self.events.item_eventual(id).await, id)?;
        let Some(found) = found else { return Ok(Read::Unreadable) };
        let Some(event) = found.filter(|event| event.is_kept(now)) else { return Ok(Read::Gone) };
        let stored = skip_unreadable_event(self.events.with_body(event).await, id)?;
        Ok(stored.map_or(Read::Unreadable, |stored| Read::Stored(Box::new(stored))))
    }
}

fn checked(stored: StoredEvent, filter: &EventFilter, steps: &mut Steps) -> CheckedEvent {
    let matches = filter.compare(&EventData::of_body(&stored.body), steps).delivers();
    let id = stored.item.id().clone();
    let EventItem { r#type, subject, .. } = stored.item;
    CheckedEvent { timestamp: id.time(), id, r#type, subject, matches }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;

    const NOW: Time = Time::from_millis(1_795_167_900_000); // 2026-11-20T09:45:00Z

    fn read(body: &str) -> Result<FilterCheckRequest, Problem> {
        FilterCheckRequest::read(body.as_bytes(), &EntityId::parse("demo-hotel").expect("an entity"), NOW)
    }

    #[test]
    fn a_request_has_a_filter_and_perhaps_types_a_range_and_a_limit() {
        let request = read(r#"{"eventFilter":{"a":[1]}}"#).expect("good");
        assert_eq!((request.event_list.len(), request.limit), (0, MAX_EVENTS));
        assert_eq!(request.range, KeyRange::since(Time::from_millis(0)));
        let request = read(r#"{"eventFilter":{"a":[1]},"eventList":["booking.*"],"limit":2}"#).expect("good");
        assert_eq!((request.event_list, request.limit), (vec!["booking.*".to_owned()], 2));
        let range = |times: &str| read(&format!(r#"{{"eventFilter":{{"a":[1]}},{times}}}"#)).expect("good").range;
        let since = Time::from_millis(1_795_167_600_000);
        assert_eq!(range(r#""createdFrom":"2026-11-20T09:40:00Z""#), KeyRange::since(since));
        let until = KeyRange::between(Time::from_millis(0), since);
        assert_eq!(range(r#""createdUntil":"2026-11-20T09:40:00Z""#), until);
        let both = range(r#""createdFrom":"2026-11-20T09:40:00Z","createdUntil":"2027-01-01T00:00:00Z""#);
        assert_eq!(both, KeyRange::between(since, NOW), "a later end counts as now");
    }

    #[test]
    fn entries_are_cut_behind_the_wanted_ones_that_there_is_room_for() {
        let request = read(r#"{"eventFilter":{"a":[1]},"eventList":["booking.*"]}"#).expect("good");
        let random = CountingRandom::default();
        let cut = |types: &[&str], room| {
            let entry = |kind: &&str| Entry { id: EventId::new(NOW, &random), r#type: format!("{kind}.created") };
            let mut entries: Vec<_> = types.iter().map(entry).collect();
            let end = request.cut(&mut entries, room);
            let last = entries.last().map(|entry| position(&entry.id));
            assert!(end.is_none() || end == last, "{types:?}");
            (entries.len(), end.is_some())
        };
        assert_eq!(cut(&["booking", "payee", "booking", "payee"], 2), (4, false), "none is left out");
        assert_eq!(cut(&["booking", "payee", "booking", "payee"], 1), (2, true));
        assert_eq!(cut(&["payee", "booking", "booking"], 1), (2, true));
        assert_eq!(cut(&[], 1), (0, false));
    }

    #[test]
    fn every_violation_of_a_request_is_listed() {
        for (body, expected) in [
            ("{}", &["eventFilter"][..]),
            (r#"{"eventFilter":null}"#, &["eventFilter"]),
            (
                r#"{"eventFilter":{"a":"x"},"eventList":["nope"],"limit":101,"more":1}"#,
                &["eventFilter.a", "eventList[0]", "limit", "more"],
            ),
            (r#"{"eventFilter":{"a":[1]},"limit":0}"#, &["limit"]),
            (r#"{"eventFilter":{"a":[1]},"createdFrom":"2026-11-20T09:45:00Z"}"#, &["createdFrom"]),
            (
                r#"{"eventFilter":{"a":[1]},"createdFrom":"2026-11-20T09:40:00Z",
                    "createdUntil":"2026-11-20T09:40:00Z"}"#,
                &["createdUntil"],
            ),
            (r#"{"eventFilter":{"a":[1]},"createdFrom":1,"createdUntil":"soon"}"#, &["createdFrom", "createdUntil"]),
            (r#"{"eventFilter":{"a":["x","\ud800"],"\udc00":[1]}}"#, &["eventFilter.a[1]", "eventFilter.\\udc00"]),
        ] {
            assert_eq!(crate::testing::refused(&read(body).expect_err(body)), expected, "{body}");
        }
    }
}
