//! Events and deliveries in the table: their keys, and identifiers of any age. docs/architecture.md describes the
//! table.

use serde_json::Value;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The number of partitions for events.
pub const SHARDS: u8 = 16;
/// How many characters at the end of an identifier distinguish an event's deliveries.
const ORDINAL: usize = 2;

/// The identifier for an event from this moment, in milliseconds since 1970. The number distinguishes events from the
/// same moment.
pub fn event_id(millis: i64, number: usize) -> String {
    let digit =
        |position: u32| char::from(ALPHABET[usize::try_from(millis >> (5 * position) & 31).unwrap_or_default()]);
    let time: String = (0..10).rev().map(digit).collect();
    format!("evt_{time}{number:014}00")
}

/// The identifier for an event's delivery with this number, starting at 0.
pub fn delivery_id(event: &str, ordinal: usize) -> String {
    let end = [ordinal / 32, ordinal % 32].map(|digit| char::from(ALPHABET[digit]));
    format!("dlv_{}{}{}", without_ordinal(event), end[0], end[1])
}

/// The event that a delivery belongs to.
pub fn event_of(delivery: &str) -> String {
    format!("evt_{}00", without_ordinal(delivery))
}

fn without_ordinal(id: &str) -> &str {
    let (_, body) = id.split_once('_').expect("an identifier has a prefix");
    &body[..body.len() - ORDINAL]
}

/// An event's key.
pub fn event_key(event: &str) -> (String, String) {
    let spread = event.bytes().rev().skip(ORDINAL).take(6).fold(0u8, u8::wrapping_add);
    (format!("EVENTS#{}", spread % SHARDS), event.to_owned())
}

/// The key of an event's body if the body is too large for the event's item.
pub fn body_key(event: &str) -> (String, String) {
    (format!("EVT#{event}"), "BODY".to_owned())
}

/// The key of a delivery's head, which exists once a worker has claimed the first attempt, or the sweep has opened the
/// delivery.
pub fn head_key(delivery: &str) -> (String, String) {
    (format!("EVT#{}", event_of(delivery)), delivery.to_owned())
}

/// Whether an item is a delivery's head.
pub fn is_head(item: &Value) -> bool {
    begins_with(item, "pk", "EVT#") && begins_with(item, "sk", "dlv_")
}

/// Whether an item is an event.
pub fn is_event(item: &Value) -> bool {
    begins_with(item, "pk", "EVENTS#")
}

fn begins_with(item: &Value, attribute: &str, prefix: &str) -> bool {
    item[attribute]["S"].as_str().is_some_and(|text| text.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_begins_with_its_time_and_ends_with_its_number() {
        let event = event_id(1_795_167_900_123, 7);
        assert_eq!(event, "evt_01m7w5gmev0000000000000700");
        assert_eq!(delivery_id(&event, 199), "dlv_01m7w5gmev0000000000000767");
        assert_eq!(event_of(&delivery_id(&event, 199)), event);
    }

    #[test]
    fn the_deliveries_of_an_event_share_a_partition() {
        let event = event_id(1_795_167_900_123, 7);
        assert_eq!(event_key(&event), ("EVENTS#7".to_owned(), event.clone()));
        let [first, second] = [0, 1].map(|ordinal| head_key(&delivery_id(&event, ordinal)));
        assert_eq!((&first.0, &first.0), (&format!("EVT#{event}"), &second.0));
    }
}
