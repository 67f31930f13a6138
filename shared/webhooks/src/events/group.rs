//! Groups of event types. `booking.*` is every type whose key begins with `booking.`. A webhook keeps the group as its
//! owner gave it, so that types which the catalogue gets later belong to it as well.

use crate::events::catalogue;

/// Whether a text is a group that has at least one type of the catalogue.
pub fn exists(text: &str) -> bool {
    catalogue::all().iter().any(|known| has(text, known.value))
}

/// Whether a type belongs to a group. A text that is no group has none.
pub fn has(group: &str, kind: &str) -> bool {
    let prefix = group.strip_suffix('*').filter(|prefix| prefix.ends_with('.'));
    prefix.is_some_and(|prefix| kind.starts_with(prefix))
}

/// Every group of the catalogue, those of one type several times.
pub fn all() -> impl Iterator<Item = String> {
    catalogue::all()
        .iter()
        .flat_map(|known| known.value.match_indices('.').map(|(dot, _)| known.value[..=dot].to_owned() + "*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_types_that_begin_like_it_at_a_dot() {
        for (group, kind) in [
            ("booking.*", "booking.created"),
            ("booking.*", "booking.note.added"),
            ("booking.note.*", "booking.note.added"),
            ("booking.*", "booking.type_of_the_future"),
        ] {
            assert!(has(group, kind), "{group} {kind}");
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
            assert!(!has(group, kind), "{group} {kind}");
        }
    }

    #[test]
    fn every_group_of_the_catalogue_exists_and_no_other() {
        assert!(all().all(|group| exists(&group)));
        assert!(all().any(|group| group == "booking.*") && all().any(|group| group == "booking.note.*"));
        for text in ["", "*", "booking", "booking.created", "booking.created.*", "Booking.*", "booking.**", "hotel.*"] {
            assert!(!exists(text), "{text}");
        }
    }
}
