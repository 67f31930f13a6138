//! The catalogue of event types, which the build compiles in from the deployment's folder (`event-catalogue`). The last
//! types are published only by this service, all others by the platform's services and clients.

use serde::Serialize;

/// An event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EventType {
    /// The label for people.
    pub label: &'static str,
    /// The key for programs: `area.thing.happened`.
    pub value: &'static str,
    /// Who publishes events of this type; not shown.
    #[serde(skip)]
    pub source: Source,
    /// The JSON Pointer of the subject within an event's data, used if neither the publisher nor `SUBJECT_MEMBERS`
    /// provides one; `None` for a type that only the service publishes. Not shown in the list.
    #[serde(skip)]
    pub subject: Option<&'static str>,
}

/// Who publishes events of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The platform's services, on the bus, and clients, over HTTP.
    Platform,
    /// Only this service, so that subscribers can trust such an event.
    Service,
}

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// Every type, in the order of the catalogue.
pub const fn all() -> &'static [EventType] {
    TYPES
}

/// The deployment's first type, used as an example in messages. The canary publishes its sample.
pub const fn example() -> &'static EventType {
    &TYPES[0]
}

/// The group of all types in the example's area, such as `booking.*`.
pub fn example_group() -> String {
    format!("{}.*", example().area())
}

/// The description of a value that must be a type's key.
pub fn key_expected() -> String {
    format!("an event type's key, such as {}", example().value)
}

impl EventType {
    /// The first part of the key.
    pub fn area(&self) -> &'static str {
        self.value.split('.').next().unwrap_or_default()
    }
}

/// The internal type with this key, for a constant. A key that is missing from the catalogue, or that others may
/// publish, does not compile.
pub const fn own(value: &str) -> &'static EventType {
    let mut position = 0;
    while position < TYPES.len() {
        if same(TYPES[position].value.as_bytes(), value.as_bytes()) {
            assert!(
                matches!(TYPES[position].source, Source::Service),
                "the catalogue names another source for this event type"
            );
            return &TYPES[position];
        }
        position += 1;
    }
    panic!("the catalogue has no such event type")
}

/// Compares strings in constants, which cannot use `==`.
const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut position = 0;
    while position < left.len() {
        if left[position] != right[position] {
            return false;
        }
        position += 1;
    }
    true
}

/// The type with this key.
pub fn find(value: &str) -> Option<&'static EventType> {
    TYPES.iter().find(|known| known.value == value)
}

/// The types of the service's events about webhooks.
const OPERATIONAL: [&str; 4] = ["webhook.failing", "webhook.disabled", "webhook.unread", "webhook.delivery.exhausted"];

/// Whether events of this type are operational, unless sent as a test of a webhook.
pub(crate) fn is_operational(kind: &str) -> bool {
    OPERATIONAL.contains(&kind)
}

/// Whether a string is a group with at least one type of the catalogue. `booking.*` means every type whose key begins
/// with `booking.`. A webhook stores the group as given, so that it includes types added later.
pub fn group_exists(text: &str) -> bool {
    all().iter().any(|known| is_in_group(text, known.value))
}

/// Whether a type belongs to a group. A string that is not a group has no types.
pub fn is_in_group(group: &str, kind: &str) -> bool {
    let prefix = group.strip_suffix('*').filter(|prefix| prefix.ends_with('.'));
    prefix.is_some_and(|prefix| kind.starts_with(prefix))
}

/// Whether a list of types and groups includes a type. An empty list includes every type.
pub fn list_includes(list: &[String], kind: &str) -> bool {
    list.is_empty() || list.iter().any(|wanted| wanted == kind || is_in_group(wanted, kind))
}

/// All groups of the catalogue, possibly more than once.
pub fn groups() -> impl Iterator<Item = String> {
    all().iter().flat_map(|known| known.value.match_indices('.').map(|(dot, _)| known.value[..=dot].to_owned() + "*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_area_has_the_types_that_such_a_platform_publishes() {
        for (area, least) in [
            ("managing_entity", 33),
            ("booking", 16),
            ("property", 13),
            ("inventory", 24),
            ("sales_channel", 3),
            ("special_rate", 4),
            ("payee", 4),
            ("payment", 3),
            ("channel_manager", 3),
            ("ledger", 1),
            ("email", 1),
            ("account", 1),
            ("marketing", 1),
            ("content", 1),
            ("analytics", 1),
            ("integrations", 1),
            ("accounting", 1),
            ("mcp", 1),
            ("webhook", 4),
        ] {
            let count = all().iter().filter(|known| known.value.split('.').next() == Some(area)).count();
            assert!(count >= least, "{area} has {count} types");
        }
    }

    #[test]
    fn the_types_of_the_service_itself_are_those_that_it_publishes() {
        let own: Vec<_> = all().iter().filter(|known| known.source == Source::Service).map(|own| own.value).collect();
        assert_eq!(
            own,
            [
                "webhook.test",
                "webhook.failing",
                "webhook.disabled",
                "webhook.unread",
                "webhook.delivery.exhausted",
                "payment.connection.established",
                "payment.connection.broken",
                "payment.connection.removed",
            ]
        );
        assert_eq!(find("nothing.happened"), None);
    }

    #[test]
    fn the_example_is_a_type_that_everybody_may_publish() {
        assert_eq!((example().value, example().source), ("booking.created", Source::Platform));
        assert_eq!(example_group(), "booking.*");
    }

    #[test]
    fn an_entry_shows_only_its_label_and_its_value() {
        let shown = serde_json::to_value(own("webhook.test")).expect("JSON");
        assert_eq!(shown, serde_json::json!({ "label": "Test event", "value": "webhook.test" }));
    }

    #[test]
    fn a_group_has_the_types_that_begin_like_it_at_a_dot() {
        for (group, kind) in [
            ("booking.*", "booking.created"),
            ("booking.*", "booking.note.added"),
            ("booking.note.*", "booking.note.added"),
            ("booking.*", "booking.type_of_the_future"),
        ] {
            assert!(is_in_group(group, kind), "{group} {kind}");
        }
        for (group, kind) in [
            ("booking.*", "bookings.created"),
            ("booking.note.*", "booking.created"),
            ("booking.note.*", "booking.notes.added"),
            ("booking.*", "inventory.booking_window.updated"),
            ("booking.created.*", "booking.created"),
            ("booking.created", "booking.created"),
            ("booking.cre*", "booking.created"),
            ("booking*", "booking.created"),
            ("booking.", "booking.created"),
            ("*.created", "booking.created"),
            ("*", "booking.created"),
            (".*", "booking.created"),
            ("", "booking.created"),
        ] {
            assert!(!is_in_group(group, kind), "{group} {kind}");
        }
    }

    #[test]
    fn every_group_of_the_catalogue_exists_and_no_other() {
        assert!(groups().all(|group| group_exists(&group)));
        assert!(groups().any(|group| group == "booking.*") && groups().any(|group| group == "booking.note.*"));
        for text in ["", "*", "booking", "booking.created", "booking.created.*", "Booking.*", "booking.**", "hotel.*"] {
            assert!(!group_exists(text), "{text}");
        }
    }
}
