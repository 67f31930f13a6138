//! The content coding of a body (RFC 9110 §8.4).

use http::{HeaderMap, header::CONTENT_ENCODING};

/// Whether the headers name a content coding. `identity`, which some clients send, does not count.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let is_none = |coding: &str| coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    let mut values = headers.get_all(CONTENT_ENCODING).iter();
    !values.all(|value| value.to_str().is_ok_and(|value| value.split(',').map(str::trim).all(is_none)))
}
