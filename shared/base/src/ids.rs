//! The service's identifiers: a prefix for the type, and a body that sorts by time.
//!
//! The body is a ULID in lower case: 48 bits of milliseconds and 80 that make it unique, as 26 characters of
//! Crockford's base 32. For clients an identifier is an opaque string; only this module knows more.

use aws_lc_rs::digest;

use crate::{
    clock::Time,
    random::{self, Random},
};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const BODY_LENGTH: usize = 26;

fn encode(time: Time, rest: [u8; 10]) -> String {
    let millis = u128::try_from(time.as_millis()).unwrap_or(0) & 0xffff_ffff_ffff;
    let rest = rest.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
    let number = millis << 80 | rest;
    (0..BODY_LENGTH).rev().map(|position| char::from(ALPHABET[(number >> (5 * position) & 31) as usize])).collect()
}

fn is_body(text: &str) -> bool {
    // The first character carries 3 bits only, since 26 × 5 is 130.
    text.len() == BODY_LENGTH && text.bytes().all(|byte| ALPHABET.contains(&byte)) && text.as_bytes()[0] <= b'7'
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $crate::text_type! {
            $(#[$doc])*
            $name, |text: &str| Self::parse(text).ok_or(concat!("not an identifier with ", $prefix))
        }

        impl $name {
            const PREFIX: &'static str = $prefix;

            /// A new identifier, which sorts after the identifiers made before `now`.
            pub fn new(now: Time, random: &dyn Random) -> Self {
                Self(format!("{}{}", Self::PREFIX, encode(now, random::bytes(random))))
            }

            /// Parses an identifier; `None` if the text cannot be one.
            pub fn parse(text: &str) -> Option<Self> {
                text.strip_prefix(Self::PREFIX).is_some_and(is_body).then(|| Self(text.to_owned()))
            }
        }
    )*};
}

identifiers! {
    /// One event, however many webhooks want it.
    EventId = "evt_";
    /// One webhook: a subscription of an endpoint.
    WebhookId = "whk_";
    /// One delivery: one event on its way to one webhook.
    DeliveryId = "dlv_";
    /// One connection to a managing entity's account at a payment provider.
    ConnectionId = "con_";
    /// One client secret of an application; not the secret itself.
    ClientSecretId = "sec_";
    /// One link into the panel, and the session that it opens.
    PanelLinkId = "plk_";
}

/// The time at the beginning of a body.
fn time(body: &str) -> Time {
    let digit = |letter| ALPHABET.iter().position(|known| *known == letter).unwrap_or_default();
    let digits = body.bytes().take(10).map(digit);
    Time::from_millis(digits.fold(0, |millis, digit| millis << 5 | digit as i64))
}

impl EventId {
    /// The time of the event.
    pub fn time(&self) -> Time {
        time(&self.0[Self::PREFIX.len()..])
    }
}

impl DeliveryId {
    /// The time of the delivery's event, which is the time at which the delivery was made.
    pub fn time(&self) -> Time {
        time(&self.0[Self::PREFIX.len()..])
    }

    /// The delivery of this event to this webhook. It is derived from both, so that publishing an event again cannot
    /// make a second delivery.
    pub fn of(event: &EventId, webhook: &WebhookId) -> Self {
        let (time, _) = event.0[EventId::PREFIX.len()..].split_at(10);
        let hash = digest::digest(&digest::SHA256, format!("{event}{webhook}").as_bytes());
        let mut rest = [0; 10];
        rest.copy_from_slice(&hash.as_ref()[..10]);
        let body = encode(Time::from_millis(0), rest);
        Self(format!("{}{time}{}", Self::PREFIX, &body[10..]))
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
    fn an_event_and_a_webhook_have_one_delivery() {
        let now = Time::from_millis(1_795_167_900_123);
        let event = EventId::new(now, &SystemRandom);
        let first = WebhookId::new(now, &SystemRandom);
        let second = WebhookId::new(now, &SystemRandom);
        assert_eq!(DeliveryId::of(&event, &first), DeliveryId::of(&event, &first));
        assert_ne!(DeliveryId::of(&event, &first), DeliveryId::of(&event, &second));
        assert!(DeliveryId::parse(DeliveryId::of(&event, &first).as_str()).is_some());
    }

    proptest! {
        #[test]
        fn the_identifier_of_an_event_contains_its_time(millis in 0i64..1 << 48) {
            prop_assert_eq!(EventId::new(Time::from_millis(millis), &SystemRandom).time(), Time::from_millis(millis));
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
