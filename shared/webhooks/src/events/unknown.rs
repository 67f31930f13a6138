//! What is said to a client that names a type of event, or a group of types, which the catalogue does not have: the
//! text, what it may have meant, and where all types are listed.

use super::catalogue;
use auth::EntityId;
use problem::near;

/// The message on a text that is no type of the catalogue, for a client of this entity.
pub fn no_type(given: &str, entity: &str) -> String {
    let what = if catalogue::group_exists(given) {
        "must be the key of one event type of the catalogue, not of a group"
    } else {
        "must be the key of an event type of the catalogue"
    };
    near::none_of(what, given, types(), &listed(entity))
}

/// The message on a text that is neither a type nor a group of the catalogue, for a client of this entity.
pub fn no_type_or_group(given: &str, entity: &EntityId) -> String {
    if given == EVERY {
        return format!("is no type: leave the list empty, `[]`, where `{EVERY}` is to mean every type");
    }
    let what = "must be the key of an event type of the catalogue, or a group of it such as booking.*";
    near::none_of(what, given, types().chain(catalogue::groups()), &listed(entity.as_str()))
}

fn listed(entity: &str) -> String {
    format!("all types are listed at /api/managing-entity/{entity}/webhook/event/list")
}

/// What other services of this kind take for every type.
const EVERY: &str = "*";

fn types() -> impl Iterator<Item = String> {
    catalogue::all().iter().map(|known| known.value.to_owned())
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
        for given in ["x", "", "nope", "ünïcødé", "{\"a\":1}"] {
            assert!(no_type_or_group(given, &entity()).contains(&format!("`{given}` is none; all types")), "{given}");
        }
    }

    #[test]
    fn where_a_type_is_published_no_group_is_near() {
        let message = no_type("booking.*", "demo-hotel");
        assert!(message.ends_with("listed at /api/managing-entity/demo-hotel/webhook/event/list"), "{message}");
        assert!(message.contains("booking.") && !message.contains("booking.note.*"), "{message}");
        assert_eq!(message.matches('*').count(), 1, "{message}");
    }

    #[test]
    fn a_star_for_every_type_is_told_what_means_every_type_here() {
        assert!(no_type_or_group("*", &entity()).contains("leave the list empty, `[]`"));
    }

    #[test]
    fn no_type_is_too_long_to_be_compared() {
        for known in catalogue::all() {
            assert_eq!(near::nearest(known.value, types()).first().map(String::as_str), Some(known.value));
        }
    }
}
