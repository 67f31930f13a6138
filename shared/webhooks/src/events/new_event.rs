//! An event that a client asks to be published, as its request says it.

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_STANDARD};

use super::{
    event::{Event, TooLarge},
    members::{self, Content},
};
use auth::EntityId;
use base::{EventId, Time};
use problem::{JsonBody, Problem};

/// The longest Idempotency-Key.
const MAX_KEY_LENGTH: usize = 255;

/// An event that a client asks to be published.
#[derive(Debug)]
pub struct NewEvent<'a> {
    pub(super) content: Content<'a>,
    pub(super) once: Option<Once>,
}

/// Makes a publication happen once: a repetition with the same key returns the first result and publishes nothing.
#[derive(Debug)]
pub(super) struct Once {
    /// The key, with the name space of its sender before it.
    pub(super) key: String,
    /// The hash of the content, which must be the same every time.
    pub(super) request_hash: String,
}

impl<'a> NewEvent<'a> {
    /// Reads a request to publish: its body, and every value of `Idempotency-Key` that came with it.
    pub fn read<'k>(body: &'a [u8], keys: impl IntoIterator<Item = &'k [u8]>) -> Result<Self, Problem> {
        let mut members = JsonBody::read(body)?;
        let (kind, data) = (members::kind(&mut members), members::data(&mut members));
        let key = members.violations.note("Idempotency-Key", idempotency_key(keys));
        let ((kind, data), key) = members.finish_with(kind.zip(data).zip(key))?;
        let once = key.map(|key| Once { key: format!("client:{key}"), request_hash: sha256(body) });
        Ok(Self { content: Content { kind, data }, once })
    }

    /// The event with this identifier, published at this time.
    pub fn event(&self, id: EventId, timestamp: Time, entity: EntityId) -> Result<Event, TooLarge> {
        self.content.event(id, timestamp, entity)
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(digest::digest(&digest::SHA256, bytes))
}

fn idempotency_key<'k>(values: impl IntoIterator<Item = &'k [u8]>) -> Result<Option<&'k str>, String> {
    let fault = || format!("must come once, with 1 to {MAX_KEY_LENGTH} printable ASCII characters");
    let mut values = values.into_iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let is_text = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
            let text = std::str::from_utf8(value).ok().filter(|_| is_text).map(str::trim);
            text.filter(|text| (1..=MAX_KEY_LENGTH).contains(&text.len())).map(Some).ok_or_else(fault)
        }
        _ => Err(fault()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(keys: &[&[u8]], body: &str) -> Vec<String> {
        crate::testing::fields(&NewEvent::read(body.as_bytes(), keys.iter().copied()).expect_err("refused"))
    }

    #[test]
    fn every_violation_of_a_publish_request_is_listed() {
        let long = "k".repeat(256);
        assert_eq!(
            fields(&[long.as_bytes()], r#"{"type":"nothing.happened","data":[],"more":1}"#),
            ["type", "data", "Idempotency-Key", "more"]
        );
        assert_eq!(fields(&[], "{}"), ["type", "data"]);
        assert_eq!(fields(&[], r#"{"type":"booking.created","data":null}"#), ["data"]);
    }

    #[test]
    fn an_idempotency_key_comes_once_and_in_printable_ascii() {
        let longest = "k".repeat(255);
        for (value, key) in [("a", "a"), (" a b\t", "a b"), (&longest, &longest)] {
            assert_eq!(idempotency_key([value.as_bytes()]), Ok(Some(key)));
        }
        assert_eq!(idempotency_key([]), Ok(None));
        for values in [&["".as_bytes()][..], &[b" "], &["é".as_bytes()], &[b"a\x7f"], &[b"\xff"], &[b"a", b"a"]] {
            assert!(idempotency_key(values.iter().copied()).is_err(), "{values:?}");
        }
    }

    #[test]
    fn the_data_is_taken_as_it_was_sent() {
        let event = NewEvent::read(br#"{"type":"booking.created","data":{ "a" : 1.50 }}"#, []).expect("read");
        assert_eq!(event.content.data.get(), r#"{ "a" : 1.50 }"#);
        assert!(event.once.is_none());
    }
}
