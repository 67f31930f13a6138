//! The filters of a list of deliveries, from its query.

use std::{collections::BTreeSet, fmt};

use crate::{
    deliveries::delivery::{Delivery, Status},
    events::{catalogue, unknown},
};
use auth::EntityId;
use base::{DeliveryId, EventId, Time, WebhookId};
use problem::Query;

/// The filters of a list. An absent filter excludes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// The wanted states; empty for every state.
    pub statuses: Vec<Status>,
    /// The type of their event.
    pub kind: Option<&'static str>,
    /// The webhook of the deliveries.
    pub webhook: Option<WebhookId>,
    /// The event of the deliveries.
    pub event: Option<EventId>,
    /// Created at this time or later.
    pub created_from: Option<Time>,
    /// Created before this time.
    pub created_to: Option<Time>,
}

impl Filters {
    /// Takes the filters from the query for a list of this entity's deliveries. The query collects their violations.
    pub fn take(query: &mut Query<'_>, entity: &EntityId) -> Self {
        let states = "pending, delivered, retrying, failed or cancelled, or several of these with commas between them";
        let statuses = query.list("status", states, Status::parse);
        let kind = take_type(query, entity);
        let webhook = query.optional("webhookIdentifier", "the identifier of a webhook", WebhookId::parse);
        let event = query.optional("eventIdentifier", "the identifier of an event", EventId::parse);
        let (created_from, created_to) = take_times(query);
        Self { statuses, kind, webhook, event, created_from, created_to }
    }

    /// Takes the filters from the query for a list of this entity's events. The other filters concern single
    /// deliveries.
    pub fn take_of_events(query: &mut Query<'_>, entity: &EntityId) -> Self {
        let kind = take_type(query, entity);
        let (created_from, created_to) = take_times(query);
        Self { kind, created_from, created_to, ..Self::default() }
    }

    /// Whether a delivery to this webhook is of the wanted event.
    pub(crate) fn is_of_event(&self, id: &DeliveryId, webhook: &WebhookId) -> bool {
        self.event.as_ref().is_none_or(|event| DeliveryId::of(event, webhook) == *id)
    }

    /// Whether a delivery is in a wanted state.
    pub(crate) fn is_in_state(&self, delivery: &Delivery) -> bool {
        self.statuses.is_empty() || self.statuses.contains(&delivery.status)
    }
}

fn take_type(query: &mut Query<'_>, entity: &EntityId) -> Option<&'static str> {
    let text = query.optional("type", "one text", Some)?;
    let found = catalogue::find(text).map(|found| found.value);
    query.violations.note("type", found.ok_or_else(|| unknown::no_type(text, entity.as_str())))
}

/// Takes the first moment of the wanted time, and the moment before which it ends.
fn take_times(query: &mut Query<'_>) -> (Option<Time>, Option<Time>) {
    let from = query.optional_time("createdFrom");
    let to = query.optional_time("createdTo");
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        query.violations.add("createdTo", "must not be before createdFrom");
    }
    (from, to)
}

/// A unique text for each combination of filters.
impl fmt::Display for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No value can contain a `;` or a `,`.
        let Self { statuses, kind, webhook, event, created_from, created_to } = self;
        let statuses = BTreeSet::from_iter(statuses.iter().map(|status| status.as_str()));
        let statuses = Vec::from_iter(statuses).join(",");
        let kind = kind.unwrap_or_default();
        let webhook = webhook.as_ref().map_or("", WebhookId::as_str);
        let [from, to] = [created_from, created_to].map(|time| time.map(|time| time.to_string()).unwrap_or_default());
        let event = event.as_ref().map_or("", EventId::as_str);
        write!(f, "{statuses};{kind};{webhook};{event};{from};{to}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEBHOOK: &str = "whk_01m74zy5eva3kj3s4w04zg1hhc";
    const EVENT: &str = "evt_01m7w5gmev7xwvpyt3bc2k45jh";

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<Filters, Vec<String>> {
        let mut query = Query::new(pairs.iter().copied());
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        let filters = Filters::take(&mut query, &entity);
        query.finish().map(|()| filters).map_err(|problem| crate::testing::fields(&problem))
    }

    #[test]
    fn every_filter_is_read() {
        let filters = read(&[
            ("status", "failed,retrying"),
            ("type", "booking.created"),
            ("status", "pending"),
            ("webhookIdentifier", WEBHOOK),
            ("eventIdentifier", EVENT),
            ("createdFrom", "2026-11-20T09:45:00Z"),
            ("createdTo", "2026-11-20T09:45:00.000Z"),
        ])
        .expect("read");
        let moment = Time::from_millis(1_795_167_900_000);
        assert_eq!(
            filters,
            Filters {
                statuses: vec![Status::Failed, Status::Retrying, Status::Pending],
                kind: Some("booking.created"),
                webhook: WebhookId::parse(WEBHOOK),
                event: EventId::parse(EVENT),
                created_from: Some(moment),
                created_to: Some(moment),
            }
        );
        assert_eq!(read(&[]), Ok(Filters::default()));
    }

    #[test]
    fn every_bad_value_is_a_violation_of_its_field() {
        for (name, value) in [
            ("status", "Failed"),
            ("status", ""),
            ("status", "failed,"),
            ("status", "failed, delivered"),
            ("status", "failed,nope"),
            ("eventIdentifier", ""),
            ("eventIdentifier", WEBHOOK),
            ("type", "booking"),
            ("type", ""),
            ("webhookIdentifier", "whk_"),
            ("webhookIdentifier", "dlv_01m74zy5eva3kj3s4w04zg1hhc"),
            ("createdFrom", "yesterday"),
            ("createdTo", "2026-11-20"),
            ("Status", "failed"),
        ] {
            assert_eq!(read(&[(name, value)]), Err(vec![name.to_owned()]), "{name}={value}");
        }
        let swapped = [("createdFrom", "2026-11-20T09:45:00.001Z"), ("createdTo", "2026-11-20T09:45:00Z")];
        assert_eq!(read(&swapped), Err(vec!["createdTo".to_owned()]));
        let event = ("eventIdentifier", EVENT);
        assert_eq!(read(&[event, event]), Err(vec!["eventIdentifier".to_owned()]));
    }

    #[test]
    fn different_filters_have_different_texts() {
        let all: Vec<&[(&str, &str)]> = vec![
            &[],
            &[("status", "failed")],
            &[("status", "pending")],
            &[("type", "booking.created")],
            &[("webhookIdentifier", WEBHOOK)],
            &[("eventIdentifier", EVENT)],
            &[("status", "failed,pending")],
            &[("createdFrom", "2026-11-20T09:45:00Z")],
            &[("createdTo", "2026-11-20T09:45:00Z")],
            &[("createdFrom", "2026-11-20T09:45:00Z"), ("createdTo", "2026-11-20T09:45:00Z")],
        ];
        let texts: BTreeSet<_> = all.iter().map(|pairs| read(pairs).expect("read").to_string()).collect();
        assert_eq!(texts.len(), all.len());
        let spelt = [("createdFrom", "2026-11-20T09:45:00.000Z")];
        assert_eq!(read(&spelt).expect("read").to_string(), read(all[7]).expect("read").to_string());
        let reordered = [("status", "pending"), ("status", "failed,pending")];
        assert_eq!(read(&reordered).expect("read").to_string(), read(all[6]).expect("read").to_string());
    }
}
