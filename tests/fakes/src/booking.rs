//! Made-up bookings that are as repetitive as real ones, so that they compress equally well.

use serde_json::{Value, json};

const NOTE: &str = "Late arrival by train, a cot in the second room, and no feathers. ";

/// Event data whose JSON has this size, at least 30 bytes.
pub fn booking(bytes: usize) -> Value {
    let mut rooms = Vec::new();
    while length(&data(&rooms, "")) <= bytes {
        rooms.push(room(rooms.len()));
    }
    rooms.pop();
    let missing = bytes.saturating_sub(length(&data(&rooms, "")));
    data(&rooms, &NOTE.chars().cycle().take(missing).collect::<String>())
}

fn data(rooms: &[Value], note: &str) -> Value {
    json!({ "rooms": rooms, "note": note })
}

fn length(data: &Value) -> usize {
    data.to_string().len()
}

fn room(number: usize) -> Value {
    json!({
        "room": format!("{}", 100 + number), "rate": "BAR-FLEX", "currency": "EUR",
        "price": number * 7_919 % 90_000,
        "guest": format!("guest_{:08x}", number * 2_654_435_761 % 4_294_967_296),
        "arrival": format!("2026-12-{:02}", 1 + number % 28), "breakfast": number.is_multiple_of(3),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_booking_has_the_size_that_is_asked_for() {
        for bytes in [30, 100, 500, 1_000, 10_000] {
            assert_eq!(length(&booking(bytes)), bytes);
        }
    }
}
