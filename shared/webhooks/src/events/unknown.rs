//! Messages about an event type, or a group of types, that is not in the catalogue: the given string, similar types,
//! and the address of the list of all types.

use super::catalogue;
use auth::EntityId;
use problem::near;

/// The message about a string that is not a type of the catalogue, for a client of this entity.
pub fn no_type(given: &str, entity: &str) -> String {
    const WHAT: &str = "must be the key of an event type in the catalogue";
    if catalogue::group_exists(given) {
        return format!("{WHAT}, not of a group such as `{given}`; {}", listed(entity));
    }
    near::none_of(WHAT, given, types(), &listed(entity))
}

/// The sentence about an unknown type in a path, for a client of this entity.
pub fn not_found(given: &str, entity: &EntityId) -> String {
    near::none_of("The event type must be a key in the catalogue", given, types(), &listed(entity.as_str())) + "."
}

/// The message about a string that is neither a type nor a group of the catalogue, for a client of this entity.
pub fn no_type_or_group(given: &str, entity: &EntityId) -> String {
    if given == EVERY {
        return "is not an event type; for every type, leave the list empty: `[]`".to_owned();
    }
    let group = catalogue::example_group();
    let what = format!("must be the key of an event type in the catalogue, or a group such as {group}");
    near::none_of(&what, given, types().chain(catalogue::groups()), &listed(entity.as_str()))
}

fn listed(entity: &str) -> String {
    format!("all types are listed at /api/managing-entity/{entity}/webhook/event/list")
}

/// The string that means every type in similar services.
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
    fn a_message_names_the_text_similar_types_and_the_list() {
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
            assert!(message.contains(&format!("`{given}` is unknown (did you mean {meant}")), "{message}");
            assert!(message.ends_with("listed at /api/managing-entity/demo-hotel/webhook/event/list"), "{message}");
        }
    }

    #[test]
    fn a_text_without_similar_types_is_named_alone() {
        for given in ["x", "", "nope", "ünïcødé", "{\"a\":1}"] {
            assert!(
                no_type_or_group(given, &entity()).contains(&format!("`{given}` is unknown; all types")),
                "{given}"
            );
        }
    }

    #[test]
    fn a_message_for_publishers_suggests_no_group() {
        let message = no_type("booking.*", "demo-hotel");
        assert!(message.ends_with("listed at /api/managing-entity/demo-hotel/webhook/event/list"), "{message}");
        assert!(message.contains("not of a group such as `booking.*`"), "{message}");
        assert_eq!(message.matches('*').count(), 1, "{message}");
    }

    #[test]
    fn the_message_about_a_star_explains_the_empty_list() {
        assert!(no_type_or_group("*", &entity()).contains("leave the list empty: `[]`"));
    }

    #[test]
    fn every_type_is_short_enough_to_be_compared() {
        for known in catalogue::all() {
            assert_eq!(near::nearest(known.value, types()).first().map(String::as_str), Some(known.value));
        }
    }
}
