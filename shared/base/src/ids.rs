//! The service's identifiers: a prefix for the type, and a body that sorts by time.
//!
//! The body is a ULID in lower case: 48 bits of milliseconds and 80 bits that make it unique, as 26 characters of
//! Crockford's base 32. The last 10 bits of an event's body are zero. In its deliveries' bodies they are the delivery's
//! number, so that a delivery's identifier leads to its event. To clients, an identifier is an opaque string; only this
//! module knows its structure.

use crate::{
    clock::Time,
    random::{self, Random},
};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const BODY_LENGTH: usize = 26;
/// The number of characters at the beginning of a body that contain its time.
const TIME_LENGTH: usize = 10;
/// The number of characters at the end of a body that contain a delivery's number.
const ORDINAL_LENGTH: usize = 2;
/// The maximum number of deliveries per event.
pub const MAX_DELIVERIES: usize = 1 << (5 * ORDINAL_LENGTH);

fn encode(time: Time, rest: [u8; 10]) -> String {
    let millis = u128::try_from(time.as_millis()).unwrap_or(0) & 0xffff_ffff_ffff;
    let rest = rest.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
    let number = millis << 80 | rest;
    (0..BODY_LENGTH).rev().map(|position| char::from(ALPHABET[(number >> (5 * position) & 31) as usize])).collect()
}

fn is_body(text: &str) -> bool {
    // The first character carries only 3 bits, since 26 × 5 is 130.
    text.len() == BODY_LENGTH && text.bytes().all(|byte| ALPHABET.contains(&byte)) && text.as_bytes()[0] <= b'7'
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $crate::text_type! {
            $(#[$doc])*
            $name, |text: &str| Self::parse(text).ok_or(concat!("not an identifier with ", $prefix))
        }

        impl $name {
            /// The text before the body.
            pub const PREFIX: &'static str = $prefix;

            /// Parses an identifier; `None` if the string cannot be one.
            pub fn parse(text: &str) -> Option<Self> {
                text.strip_prefix(Self::PREFIX).is_some_and(is_body).then(|| Self(text.to_owned()))
            }
        }
    )*};
}

identifiers! {
    /// One event, for any number of webhooks.
    EventId = "evt_";
    /// One webhook: a subscription of an endpoint.
    WebhookId = "whk_";
    /// One delivery: one event on its way to one webhook.
    DeliveryId = "dlv_";
    /// One connection to a managing entity's account at a payment provider.
    ConnectionId = "con_";
    /// One client secret of an application; not the secret itself.
    ClientSecretId = "sec_";
    /// One panel link, and the session that it opens.
    PanelLinkId = "plk_";
}

macro_rules! random {
    ($($name:ident)*) => {$(
        impl $name {
            /// A new identifier, which sorts after the identifiers generated before `now`.
            pub fn new(now: Time, random: &dyn Random) -> Self {
                Self(format!("{}{}", Self::PREFIX, encode(now, random::bytes(random))))
            }
        }
    )*};
}

random! { WebhookId ConnectionId ClientSecretId PanelLinkId }

fn number(digits: &str) -> u64 {
    let digit = |letter| ALPHABET.iter().position(|known| *known == letter).unwrap_or_default();
    digits.bytes().map(digit).fold(0, |number, digit| number << 5 | digit as u64)
}

/// The time at the beginning of a body.
fn time(body: &str) -> Time {
    Time::from_millis(i64::try_from(number(&body[..TIME_LENGTH])).unwrap_or(i64::MAX))
}

/// The beginning of all identifiers' bodies from this millisecond. It sorts before all of them, and after those from
/// earlier milliseconds.
pub fn body_at(time: Time) -> String {
    let mut body = encode(time, [0; 10]);
    body.truncate(TIME_LENGTH);
    body
}

impl EventId {
    /// A new identifier, which sorts after the identifiers generated before `now`.
    pub fn new(now: Time, random: &dyn Random) -> Self {
        let mut body = encode(now, random::bytes(random));
        body.truncate(BODY_LENGTH - ORDINAL_LENGTH);
        Self(format!("{}{body}00", Self::PREFIX))
    }

    /// The event's time.
    pub fn time(&self) -> Time {
        time(self.body())
    }

    /// The identifier without its prefix.
    pub fn body(&self) -> &str {
        &self.0[Self::PREFIX.len()..]
    }
}

impl DeliveryId {
    /// An event's delivery with this number, counted from 0. The identifier is derived from both, so that publishing an
    /// event again cannot create a second delivery. The number is below [`MAX_DELIVERIES`].
    pub fn of(event: &EventId, ordinal: usize) -> Self {
        let end = [ordinal >> 5 & 31, ordinal & 31].map(|digit| char::from(ALPHABET[digit]));
        let start = &event.body()[..BODY_LENGTH - ORDINAL_LENGTH];
        Self(format!("{}{start}{}{}", Self::PREFIX, end[0], end[1]))
    }

    /// The delivery's event.
    pub fn event(&self) -> EventId {
        EventId(format!("{}{}00", EventId::PREFIX, &self.body()[..BODY_LENGTH - ORDINAL_LENGTH]))
    }

    /// The number of the delivery within its event, from 0.
    pub fn ordinal(&self) -> usize {
        usize::try_from(number(&self.body()[BODY_LENGTH - ORDINAL_LENGTH..])).unwrap_or(usize::MAX)
    }

    /// The time of the delivery's event, which is also when the delivery was created.
    pub fn time(&self) -> Time {
        time(self.body())
    }

    /// The identifier without its prefix.
    pub fn body(&self) -> &str {
        &self.0[Self::PREFIX.len()..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SystemRandom;
    use proptest::prelude::*;

    #[test]
    fn an_identifier_is_read_back_and_a_foreign_one_is_not() {
        let id = WebhookId::new(Time::from_millis(1_795_167_900_123), &SystemRandom);
        assert_eq!(WebhookId::parse(id.as_str()), Some(id.clone()));
        assert_eq!(DeliveryId::parse(id.as_str()), None);
        for text in
            ["", "whk_", "whk_x", &id.as_str().to_uppercase(), &format!("{id}0"), "whk_8zzzzzzzzzzzzzzzzzzzzzzzzz"]
        {
            assert_eq!(WebhookId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_delivery_leads_to_its_event() {
        let event = EventId::new(Time::from_millis(1_795_167_900_123), &SystemRandom);
        let ids: Vec<_> = (0..MAX_DELIVERIES).map(|ordinal| DeliveryId::of(&event, ordinal)).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "they sort by their numbers");
        for (ordinal, id) in ids.iter().enumerate() {
            assert_eq!((DeliveryId::parse(id.as_str()).as_ref(), id.ordinal()), (Some(id), ordinal));
            assert_eq!((id.event(), id.time()), (event.clone(), event.time()));
        }
    }

    proptest! {
        #[test]
        fn the_identifier_of_an_event_contains_its_time(millis in 0i64..1 << 48) {
            prop_assert_eq!(EventId::new(Time::from_millis(millis), &SystemRandom).time(), Time::from_millis(millis));
        }

        #[test]
        fn a_body_begins_with_its_time(millis in 0i64..1 << 47) {
            let time = Time::from_millis(millis);
            let id = EventId::new(time, &SystemRandom);
            prop_assert!(id.body().starts_with(&body_at(time)));
            prop_assert!(id.body() < body_at(Time::from_millis(millis + 1)).as_str());
        }

        #[test]
        fn identifiers_sort_by_time(a in 0i64..1 << 47, b in 0i64..1 << 47) {
            let x = EventId::new(Time::from_millis(a), &SystemRandom);
            let y = EventId::new(Time::from_millis(b), &SystemRandom);
            if a < b { prop_assert!(x < y) }
            if a > b { prop_assert!(x > y) }
        }

        #[test]
        fn any_text_is_either_refused_or_kept_as_it_is(text in "\\PC{0,40}") {
            if let Some(id) = DeliveryId::parse(&text) { prop_assert_eq!(id.as_str(), text) }
        }
    }
}
