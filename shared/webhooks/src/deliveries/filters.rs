//! The filters of a list of deliveries, as the query says them.

use std::fmt;

use super::delivery::Status;
use crate::events::{catalogue, unknown};
use base::{Time, WebhookId};
use problem::Query;

/// The filters of a list; an absent filter lets everything through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// Their state.
    pub status: Option<Status>,
    /// The type of their event.
    pub kind: Option<&'static str>,
    /// The webhook that they go to.
    pub webhook: Option<WebhookId>,
    /// Made at this time or later.
    pub created_from: Option<Time>,
    /// Made before this time.
    pub created_to: Option<Time>,
}

const TIME: &str = "a time in RFC 3339, in UTC or with an offset, such as 2026-11-20T09:45:00.123Z";

impl Filters {
    /// Takes the filters from a query, which notes their violations.
    pub fn take(query: &mut Query<'_>) -> Self {
        let status = query.optional("status", "pending, delivered, retrying, failed or cancelled", Status::parse);
        let kind = query.optional("type", "one text", Some).and_then(|text| {
            let found = catalogue::find(text).map(|found| found.value);
            query.violations.note("type", found.ok_or_else(|| unknown::no_type(text)))
        });
        let webhook = query.optional("webhookIdentifier", "the identifier of a webhook", WebhookId::parse);
        let created_from = query.optional("createdFrom", TIME, Time::of_client);
        let created_to = query.optional("createdTo", TIME, Time::of_client);
        if created_from.zip(created_to).is_some_and(|(from, to)| from > to) {
            query.violations.add("createdTo", "must not be before createdFrom");
        }
        Self { status, kind, webhook, created_from, created_to }
    }
}

/// The same text for the same filters, and another for others.
impl fmt::Display for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // None of the values can have a `;`.
        let Self { status, kind, webhook, created_from, created_to } = self;
        let (status, kind) = (status.map_or("", Status::as_str), kind.unwrap_or_default());
        let webhook = webhook.as_ref().map_or("", WebhookId::as_str);
        let [from, to] = [created_from, created_to].map(|time| time.map(|time| time.to_string()).unwrap_or_default());
        write!(f, "{status};{kind};{webhook};{from};{to}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEBHOOK: &str = "whk_01m74zy5eva3kj3s4w04zg1hhc";

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<Filters, Vec<String>> {
        let mut query = Query::new(pairs.iter().copied());
        let filters = Filters::take(&mut query);
        query.finish().map(|()| filters).map_err(|problem| crate::testing::fields(&problem))
    }

    #[test]
    fn every_filter_is_read() {
        let filters = read(&[
            ("status", "failed"),
            ("type", "booking.created"),
            ("webhookIdentifier", WEBHOOK),
            ("createdFrom", "2026-11-20T09:45:00Z"),
            ("createdTo", "2026-11-20T09:45:00.000Z"),
        ])
        .expect("read");
        let moment = Time::from_millis(1_795_167_900_000);
        assert_eq!(
            filters,
            Filters {
                status: Some(Status::Failed),
                kind: Some("booking.created"),
                webhook: WebhookId::parse(WEBHOOK),
                created_from: Some(moment),
                created_to: Some(moment),
            }
        );
        assert_eq!(read(&[]), Ok(Filters::default()));
    }

    #[test]
    fn every_bad_value_is_a_violation_of_its_own_field() {
        for (name, value) in [
            ("status", "Failed"),
            ("status", ""),
            ("status", "failed,delivered"),
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
        assert_eq!(read(&[("status", "failed"), ("status", "failed")]), Err(vec!["status".to_owned()]));
    }

    #[test]
    fn different_filters_have_different_texts() {
        let all: Vec<&[(&str, &str)]> = vec![
            &[],
            &[("status", "failed")],
            &[("status", "pending")],
            &[("type", "booking.created")],
            &[("webhookIdentifier", WEBHOOK)],
            &[("createdFrom", "2026-11-20T09:45:00Z")],
            &[("createdTo", "2026-11-20T09:45:00Z")],
            &[("createdFrom", "2026-11-20T09:45:00Z"), ("createdTo", "2026-11-20T09:45:00Z")],
        ];
        let texts: std::collections::BTreeSet<_> =
            all.iter().map(|pairs| read(pairs).expect("read").to_string()).collect();
        assert_eq!(texts.len(), all.len());
        let spelt = [("createdFrom", "2026-11-20T09:45:00.000Z")];
        assert_eq!(read(&spelt).expect("read").to_string(), read(all[5]).expect("read").to_string());
    }
}
