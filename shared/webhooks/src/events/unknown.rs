//! What is said to a client that names a type of event, or a group of types, which the catalogue does not have: the
//! text, what it may have meant, and where all types are listed.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{catalogue, group};
use auth::EntityId;

/// How many names a message suggests.
const SUGGESTED: usize = 3;
/// In percent of the pairs of letters. Names that share fewer are unlike.
const ALIKE: u32 = 50;
/// More characters than a name has. A longer text is compared with no name, and not repeated to its end.
const MAX_LENGTH: usize = 60;

/// The message on a text that is no type of the catalogue.
pub fn no_type(given: &str) -> String {
    let types = catalogue::all().iter().map(|known| known.value.to_owned());
    let what = "must be the key of an event type of the catalogue";
    message(what, given, &nearest(given, types), "…/webhook/event/list")
}

/// The message on a text that is neither a type nor a group of the catalogue, for a client of this entity.
pub fn no_type_or_group(given: &str, entity: &EntityId) -> String {
    let types = catalogue::all().iter().map(|known| known.value.to_owned());
    let near = nearest(given, types.chain(group::all()));
    let what = "must be the key of an event type of the catalogue, or a group of it such as booking.*";
    message(what, given, &near, &format!("/api/managing-entity/{entity}/webhook/event/list"))
}

fn message(what: &str, given: &str, near: &[String], address: &str) -> String {
    let given = match given.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", &given[..end]),
        None => given.to_owned(),
    };
    let near = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
    format!("{what}, and `{given}` is none{near}; all types are listed at {address}")
}

/// The names that are most like a text, the nearest first, in any case of its letters.
fn nearest(given: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    if given.chars().nth(MAX_LENGTH).is_some() {
        return Vec::new();
    }
    let given = given.to_lowercase();
    let likeness = |name: &str| (strsim::sorensen_dice(&given, name) * 100.0) as u32;
    let alike: BTreeSet<_> =
        names.map(|name| (Reverse(likeness(&name)), name)).filter(|(likeness, _)| likeness.0 >= ALIKE).collect();
    alike.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity() -> EntityId {
        EntityId::parse("demo-hotel").expect("an entity")
    }

    #[test]
    fn a_message_names_the_text_what_it_may_have_meant_and_where_all_types_are() {
        for (given, meant) in [
            ("booking.create", "booking.created"),
            ("bokking.created", "booking.created"),
            ("Booking.Created", "booking.created"),
            ("booking_created", "booking.created"),
            ("created.booking", "booking.created"),
            ("booking.canceled", "booking.cancelled"),
            ("payment.recieved", "payment.received"),
            ("bookings.*", "booking.*"),
            ("booking", "booking.*"),
            ("guest.checked_in", "booking.checked_in"),
        ] {
            let message = no_type_or_group(given, &entity());
            assert!(message.contains(&format!("`{given}` is none; near it: {meant}")), "{message}");
            assert!(message.ends_with("listed at /api/managing-entity/demo-hotel/webhook/event/list"), "{message}");
        }
    }

    #[test]
    fn a_text_that_is_like_nothing_is_named_alone() {
        for given in ["x", "", "*", "nope", "ünïcødé", "{\"a\":1}"] {
            assert!(no_type_or_group(given, &entity()).contains(&format!("`{given}` is none; all types")), "{given}");
        }
    }

    #[test]
    fn where_a_type_is_published_no_group_is_near() {
        let message = no_type("booking.*");
        assert!(message.contains("booking.") && !message.contains("booking.note.*"), "{message}");
        assert_eq!(message.matches('*').count(), 1, "{message}");
    }

    #[test]
    fn a_long_text_is_cut_and_compared_with_nothing() {
        let longest = catalogue::all().iter().map(|known| known.value.len()).max().expect("there are types");
        assert!(longest + ".*".len() < MAX_LENGTH);
        let message = no_type_or_group(&"booking.created".repeat(10_000), &entity());
        assert!(message.len() < 300 && message.contains("…`") && !message.contains("near it"), "{message}");
        let message = no_type_or_group(&"é".repeat(10_000), &entity());
        assert!(message.contains("é…`"), "{message}");
    }
}
