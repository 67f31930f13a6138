//! The filters for a list of deliveries, from its query.

use std::{collections::BTreeSet, fmt};

use crate::{
    deliveries::state::{attempt::ErrorCode, delivery::Status, head::Head},
    events::{catalogue, subject, unknown},
};
use auth::EntityId;
use base::{EventId, Time, WebhookId};
use problem::{Query, Rule};

/// A list's filters. An absent filter excludes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// The requested states; empty for every state.
    pub statuses: Vec<Status>,
    /// Their event's type.
    pub kind: Option<&'static str>,
    /// The deliveries' webhook.
    pub webhook: Option<WebhookId>,
    /// The deliveries' event.
    pub event: Option<EventId>,
    /// Their event's subject.
    pub subject: Option<String>,
    /// The status of the last response.
    pub last_http_status: Option<u16>,
    /// The code of the last attempt's error.
    pub last_error_code: Option<ErrorCode>,
    /// Created at this time or later.
    pub created_from: Option<Time>,
    /// Created before this time.
    pub created_until: Option<Time>,
}

impl Filters {
    /// Takes the filters from the query for a list of this entity's deliveries. The query collects their violations.
    pub fn take(query: &mut Query<'_>, entity: &EntityId) -> Self {
        let states = "one or more of pending, delivered, retrying, failed and cancelled, separated by commas";
        let statuses = query.list("status", states, Status::parse);
        let kind = take_type(query, entity);
        let webhook = query.optional("webhookIdentifier", "a webhook's identifier", WebhookId::parse);
        let event = query.optional("eventIdentifier", "an event's identifier", EventId::parse);
        let subject = take_subject(query);
        let last_http_status = query.number("lastHttpStatus", "a status code from 100 to 999", http_status);
        let codes = "dns, connect, tls, timeout, blocked, reported, unconfirmed or interrupted";
        let last_error_code = query.one_of("lastErrorCode", codes, ErrorCode::parse);
        let (created_from, created_until) = take_times(query);
        let filters = Self {
            statuses,
            kind,
            webhook,
            event,
            subject,
            last_http_status,
            last_error_code,
            created_from,
            created_until,
        };
        if filters.are_about_failures() { filters.without_delivered() } else { filters }
    }

    /// Whether the last attempt of every requested delivery must have failed.
    fn are_about_failures(&self) -> bool {
        self.last_error_code.is_some() || self.last_http_status.is_some_and(|status| !(200..300).contains(&status))
    }

    /// Unless the list names states, limits it to the states of deliveries whose last attempt failed. These states have
    /// indexes in which such deliveries can be found without reading all others.
    fn without_delivered(mut self) -> Self {
        if self.statuses.is_empty() {
            self.statuses = vec![Status::Pending, Status::Retrying, Status::Failed, Status::Cancelled];
        }
        self
    }

    /// Takes the filters from the query for a list of this entity's events. The other filters apply to single
    /// deliveries.
    pub fn take_of_events(query: &mut Query<'_>, entity: &EntityId) -> Self {
        let kind = take_type(query, entity);
        let subject = take_subject(query);
        let (created_from, created_until) = take_times(query);
        Self { kind, subject, created_from, created_until, ..Self::default() }
    }

    /// Whether a delivery matches, apart from its event and its time.
    pub(crate) fn wants(&self, head: &Head) -> bool {
        let delivery = &head.delivery;
        (self.statuses.is_empty() || self.statuses.contains(&head.status()))
            && self.kind.is_none_or(|kind| kind == delivery.r#type)
            && self.webhook.as_ref().is_none_or(|webhook| *webhook == delivery.webhook_identifier)
            && (self.subject.is_none() || self.subject == delivery.subject)
            && self.last_http_status.is_none_or(|status| delivery.last_http_status == Some(status))
            && self.last_error_code.is_none_or(|code| delivery.last_error == Some(code))
    }
}

fn take_type(query: &mut Query<'_>, entity: &EntityId) -> Option<&'static str> {
    let text = query.optional("type", "a single string", Some)?;
    let found = catalogue::find(text).map(|found| found.value);
    query.violations.note("type", Rule::UnknownValue, found.ok_or_else(|| unknown::no_type(text, entity.as_str())))
}

fn take_subject(query: &mut Query<'_>) -> Option<String> {
    let subject = |text: &str| subject::is_subject(text).then(|| text.to_owned());
    query.optional("subject", "a string of 1 to 256 characters", subject)
}

fn http_status(text: &str) -> Option<u16> {
    let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    // Some endpoints respond with statuses that HTTP does not define, and the history shows them.
    digits.then(|| text.parse().ok())?.filter(|status| *status >= 100)
}

/// Takes the inclusive start and the exclusive end of the requested range of times.
fn take_times(query: &mut Query<'_>) -> (Option<Time>, Option<Time>) {
    let from = query.optional_time("createdFrom");
    let to = query.optional_time("createdUntil");
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        query.violations.add("createdUntil", Rule::Inconsistent, "must not be before createdFrom");
    }
    (from, to)
}

/// A string that is unique for each combination of filters.
impl fmt::Display for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only the subject, which comes last, can contain a `;` or a `,`.
        let Self {
            statuses,
            kind,
            webhook,
            event,
            subject,
            last_http_status,
            last_error_code,
            created_from,
            created_until,
        } = self;
        let statuses = BTreeSet::from_iter(statuses.iter().map(|status| status.as_str()));
        let statuses = Vec::from_iter(statuses).join(",");
        let kind = kind.unwrap_or_default();
        let webhook = webhook.as_ref().map_or("", WebhookId::as_str);
        let [from, to] =
            [created_from, created_until].map(|time| time.map(|time| time.to_string()).unwrap_or_default());
        let event = event.as_ref().map_or("", EventId::as_str);
        let last_error_code = last_error_code.map_or("", ErrorCode::as_str);
        let last_http_status = last_http_status.map(|status| status.to_string()).unwrap_or_default();
        write!(f, "{statuses};{kind};{webhook};{event};{from};{to};{last_http_status};{last_error_code};")?;
        f.write_str(subject.as_deref().unwrap_or_default())
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
        query.finish().map(|()| filters).map_err(|problem| crate::testing::refused(&problem))
    }

    #[test]
    fn every_filter_is_read() {
        let filters = read(&[
            ("status", "failed,retrying"),
            ("type", "booking.created"),
            ("status", "pending"),
            ("webhookIdentifier", WEBHOOK),
            ("eventIdentifier", EVENT),
            ("subject", "B;1001"),
            ("lastHttpStatus", "503"),
            ("lastErrorCode", "timeout"),
            ("createdFrom", "2026-11-20T09:45:00Z"),
            ("createdUntil", "2026-11-20T09:45:00.000Z"),
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
                subject: Some("B;1001".to_owned()),
                last_http_status: Some(503),
                last_error_code: Some(ErrorCode::Timeout),
                created_from: Some(moment),
                created_until: Some(moment),
            }
        );
        assert_eq!(read(&[]), Ok(Filters::default()));
    }

    #[test]
    fn failed_attempts_are_not_looked_for_among_delivered_deliveries() {
        let statuses = |pair| read(&[pair]).expect("read").statuses;
        for pair in [
            ("lastHttpStatus", "503"),
            ("lastHttpStatus", "302"),
            ("lastHttpStatus", "600"),
            ("lastErrorCode", "timeout"),
        ] {
            assert!(!statuses(pair).is_empty() && !statuses(pair).contains(&Status::Delivered), "{pair:?}");
        }
        assert_eq!(statuses(("lastHttpStatus", "204")), []);
        let given = read(&[("status", "failed"), ("lastErrorCode", "dns")]).expect("read");
        assert_eq!(given.statuses, [Status::Failed]);
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
            ("subject", ""),
            ("lastHttpStatus", "1000"),
            ("lastHttpStatus", "+50"),
            ("lastHttpStatus", "099"),
            ("lastErrorCode", "Timeout"),
            ("createdFrom", "yesterday"),
            ("createdUntil", "2026-11-20"),
            ("Status", "failed"),
        ] {
            assert_eq!(read(&[(name, value)]), Err(vec![name.to_owned()]), "{name}={value}");
        }
        let swapped = [("createdFrom", "2026-11-20T09:45:00.001Z"), ("createdUntil", "2026-11-20T09:45:00Z")];
        assert_eq!(read(&swapped), Err(vec!["createdUntil".to_owned()]));
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
            &[("subject", "B-1001")],
            &[("subject", "503;;")],
            &[("lastHttpStatus", "503")],
            &[("lastHttpStatus", "999")],
            &[("lastErrorCode", "dns")],
            &[("status", "failed,pending")],
            &[("createdFrom", "2026-11-20T09:45:00Z")],
            &[("createdUntil", "2026-11-20T09:45:00Z")],
            &[("createdFrom", "2026-11-20T09:45:00Z"), ("createdUntil", "2026-11-20T09:45:00Z")],
        ];
        let texts: BTreeSet<_> = all.iter().map(|pairs| read(pairs).expect("read").to_string()).collect();
        assert_eq!(texts.len(), all.len());
        let spelt = [("createdFrom", "2026-11-20T09:45:00.000Z")];
        assert_eq!(read(&spelt).expect("read").to_string(), read(all[12]).expect("read").to_string());
        let reordered = [("status", "pending"), ("status", "failed,pending")];
        assert_eq!(read(&reordered).expect("read").to_string(), read(all[11]).expect("read").to_string());
    }
}
