//! A response body as text for the history of deliveries: decompressed, in UTF-8, and no longer than the limit.

use http::HeaderMap;

use crate::content_coding::{self, Decoded};

/// The maximum number of characters that are shown of a content coding's name, which is untrusted.
const MAX_CODING_NAME: usize = 40;

/// A body as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BodyText {
    pub text: String,
    /// Whether part of the body is missing from the text.
    pub truncated: bool,
}

/// The bytes as text of at most `limit` bytes, cut at a character boundary, with U+FFFD for invalid UTF-8. `truncated`
/// means that the body has more bytes.
pub(crate) fn from_bytes(bytes: &[u8], truncated: bool, limit: usize) -> BodyText {
    let end = match std::str::from_utf8(bytes) {
        // Drop the last character only if it is incomplete because the body was cut.
        Err(error) if error.error_len().is_none() && truncated => error.valid_up_to(),
        _ => bytes.len(),
    };
    let mut text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let is_cut = text.len() > limit;
    text.truncate(text.floor_char_boundary(limit));
    BodyText { text, truncated: truncated || is_cut }
}

/// The body of a response with these headers, as text. Some endpoints compress even though the request forbids it: gzip
/// and deflate are decompressed up to the limit, and a body in another coding is described.
pub(crate) fn of_response(headers: &HeaderMap, body: &[u8], truncated: bool, limit: usize) -> BodyText {
    let codings = content_coding::names(headers);
    if body.is_empty() || codings.is_empty() {
        return from_bytes(body, truncated, limit);
    }
    match content_coding::decode(&codings, body, limit) {
        Some(Decoded { bytes, is_complete }) => from_bytes(&bytes, truncated || !is_complete, limit),
        None => BodyText { text: describe(&codings, body.len(), truncated), truncated },
    }
}

fn describe(codings: &str, length: usize, truncated: bool) -> String {
    let name: String = codings.chars().filter(|c| matches!(c, ' '..='~') && *c != '"').take(MAX_CODING_NAME).collect();
    let more = if truncated { "more than " } else { "" };
    let length = grouped(length);
    format!("({more}{length} bytes compressed with \"{name}\", which is not shown)")
}

/// A number with a space before each group of three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };
    use http::{HeaderValue, header};
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 4096;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    }

    fn raw_deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory takes everything");
        encoder.finish().expect("memory takes everything")
    }

    fn encoded(codings: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for coding in codings {
            headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        headers
    }

    fn shown(codings: &[&'static str], body: &[u8]) -> (String, bool) {
        let BodyText { text, truncated } = of_response(&encoded(codings), body, false, LIMIT);
        (text, truncated)
    }

    fn whole(text: &str) -> (String, bool) {
        (text.to_owned(), false)
    }

    #[test]
    fn a_compressed_body_is_decompressed() {
        let text = "no room at the inn".as_bytes();
        for (coding, body) in [
            ("gzip", gzip(text)),
            ("GZip", gzip(text)),
            ("x-gzip", gzip(text)),
            ("identity, gzip", gzip(text)),
            ("deflate", zlib(text)),
            ("deflate", raw_deflate(text)),
            ("identity", text.to_vec()),
            ("", text.to_vec()),
        ] {
            assert_eq!(shown(&[coding], &body), whole("no room at the inn"), "{coding}");
        }
        assert_eq!(shown(&["gzip"], b""), whole(""));
    }

    #[test]
    fn a_body_in_another_coding_is_described() {
        for (codings, name) in [
            (&["br"][..], "br"),
            (&["zstd"], "zstd"),
            (&["compress"], "compress"),
            (&["gzip, gzip"], "gzip, gzip"),
            (&["gzip", "br"], "gzip, br"),
            (&["gzip"], "gzip"),
            (&["deflate"], "deflate"),
        ] {
            let expected = format!("(2 345 bytes compressed with \"{name}\", which is not shown)");
            assert_eq!(shown(codings, &[0xff; 2_345]), whole(&expected), "{codings:?}");
        }
        let cut = of_response(&encoded(&["br"]), &[0xff; LIMIT], true, LIMIT);
        assert_eq!(cut.text, "(more than 4 096 bytes compressed with \"br\", which is not shown)");
        assert!(cut.truncated);
    }

    #[test]
    fn the_name_of_a_coding_is_cut_and_cleaned() {
        let (text, _) = shown(&["b\"\tr"], b"x");
        assert_eq!(text, "(1 bytes compressed with \"br\", which is not shown)");
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_str(&"x".repeat(9_000)).expect("a value"));
        assert!(of_response(&headers, b"x", false, LIMIT).text.len() < 120);
    }

    #[test]
    fn a_gzip_bomb_is_decompressed_to_the_limit_only() {
        let bomb = gzip(&vec![b'x'; 100_000_000]);
        let shown = of_response(&encoded(&["gzip"]), &bomb[..LIMIT], true, LIMIT);
        assert_eq!(shown, BodyText { text: "x".repeat(LIMIT), truncated: true });
        let whole = of_response(&encoded(&["gzip"]), &gzip(&vec![b'x'; LIMIT]), false, LIMIT);
        assert_eq!(whole, BodyText { text: "x".repeat(LIMIT), truncated: false });
        let one_more = of_response(&encoded(&["gzip"]), &gzip(&vec![b'x'; LIMIT + 1]), false, LIMIT);
        assert_eq!(one_more, BodyText { text: "x".repeat(LIMIT), truncated: true });
    }

    #[test]
    fn the_received_part_of_a_compressed_body_is_shown() {
        let text: String = (0..2_000).map(|number| format!("{number} rooms, ")).collect();
        let packed = gzip(text.as_bytes());
        let (half, truncated) = shown(&["gzip"], &packed[..packed.len() / 4]);
        assert!(truncated && !half.is_empty() && text.starts_with(&half), "{half}");
        let mut damaged = gzip(b"thanks");
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        assert_eq!(shown(&["gzip"], &damaged), ("thanks".to_owned(), true));
    }

    #[test]
    fn bytes_that_are_no_utf_8_take_no_more_than_the_limit() {
        let shown = from_bytes(&[0xff; LIMIT], false, LIMIT);
        assert_eq!(shown, BodyText { text: "\u{fffd}".repeat(LIMIT / 3), truncated: true });
        assert_eq!(from_bytes(b"a\xffb", false, LIMIT), BodyText { text: "a\u{fffd}b".into(), truncated: false });
    }

    proptest! {
        #[test]
        fn any_body_is_text_within_the_limit(
            body in proptest::collection::vec(any::<u8>(), 0..600),
            truncated in any::<bool>(),
            limit in 0usize..400,
            coding in proptest::sample::select(vec!["", "gzip", "deflate", "br"]),
        ) {
            let shown = from_bytes(&body, truncated, limit);
            prop_assert!(shown.text.len() <= limit);
            prop_assert!(shown.truncated >= truncated);
            let decoded = of_response(&encoded(&[coding]), &body, truncated, limit.max(200));
            prop_assert!(decoded.text.len() <= limit.max(200));
        }
    }
}
