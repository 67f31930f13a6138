//! Compression of stored bodies (raw DEFLATE, RFC 1951). Each KB written costs a write unit and is stored for months.

use std::{
    fmt,
    io::{self, Read, Write},
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bodies shorter than this fit uncompressed into one write unit with the rest of their item.
const WORTHWHILE: usize = 800;

/// Compressed text, stored as bytes in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed(Vec<u8>);

impl Packed {
    /// Compresses text; `None` if that saves nothing.
    pub(super) fn of(text: &str) -> Option<Self> {
        if text.len() < WORTHWHILE {
            return None;
        }
        // A fast level, since the publisher is waiting and a higher level would save only a few bytes on text this
        // short.
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        let packed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
        packed.ok().filter(|packed| packed.len() < text.len()).map(Self)
    }

    /// Bytes that do not decompress to any text.
    #[cfg(test)]
    pub(super) fn torn() -> Self {
        Self(vec![255, 255])
    }

    /// The size in the table, in bytes.
    pub(super) fn size(&self) -> usize {
        self.0.len()
    }

    /// Decompresses the text.
    pub(super) fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        DeflateDecoder::new(self.0.as_slice()).read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = Packed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Packed, E> {
                Ok(Packed(bytes.to_vec()))
            }

            fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Packed, E> {
                Ok(Packed(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_booking_of_a_kilobyte_takes_less_than_half() {
        let rooms: Vec<_> = (0..9_u64)
            .map(|room| {
                let price = room * 7_919 % 900;
                let guest = room * 104_729 % 99_991;
                serde_json::json!({ "room": room, "rate": "BAR", "price": price, "currency": "EUR", "guest": guest,
                    "arrival": format!("2026-12-{:02}", room + 1), "note": format!("late {guest}") })
            })
            .collect();
        let text = serde_json::json!({ "type": "booking.created", "data": rooms }).to_string();
        let packed = Packed::of(&text).expect("compression saves bytes");
        assert!(text.len() > 1_000 && packed.0.len() * 2 < text.len(), "{} of {}", packed.0.len(), text.len());
    }

    #[test]
    fn a_short_text_stays_as_it_is() {
        assert!(Packed::of(&"x".repeat(WORTHWHILE - 1)).is_none() && Packed::of(&"x".repeat(WORTHWHILE)).is_some());
    }

    #[test]
    fn bytes_that_are_not_a_packed_text_are_an_error() {
        assert!(Packed(b"not compressed".to_vec()).text().is_err());
        assert!(Packed::of(&"x".repeat(2_000)).is_some_and(|whole| Packed(whole.0[..4].to_vec()).text().is_err()));
    }

    proptest! {
        #[test]
        fn a_packed_text_is_read_back(text in "\\PC{0,400}", times in 1usize..40) {
            let text = text.repeat(times);
            if let Some(packed) = Packed::of(&text) {
                prop_assert_eq!(packed.text().expect("readable"), text);
            }
        }
    }
}
