//! The content codings of a response (RFC 9110 §8.4). Some servers compress even though the request forbids it.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};

/// A decompressed body.
pub(crate) struct Decoded {
    /// No more bytes than the limit allows.
    pub bytes: Vec<u8>,
    /// Whether the body is within the limit and undamaged.
    pub is_complete: bool,
}

/// A response's content codings in lower case, without `identity`, separated by commas.
pub(crate) fn names(headers: &HeaderMap) -> String {
    let values = headers.get_all(header::CONTENT_ENCODING).iter();
    let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let names = names.map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase());
    names.filter(|name| !name.is_empty() && name != "identity").collect::<Vec<_>>().join(", ")
}

/// Decompresses gzip and deflate up to the limit. `None` for another coding, and if decompression fails before the
/// first byte.
pub(crate) fn decode(codings: &str, body: &[u8], limit: usize) -> Option<Decoded> {
    match codings {
        "gzip" | "x-gzip" => decompress(MultiGzDecoder::new(body), limit),
        // RFC 9110 §8.4.1.2: zlib by definition, but some servers omit the zlib wrapper.
        "deflate" => decompress(ZlibDecoder::new(body), limit).or_else(|| decompress(DeflateDecoder::new(body), limit)),
        _ => None,
    }
}

/// A few bytes may decompress to gigabytes, hence the limit.
fn decompress(decoder: impl Read, limit: usize) -> Option<Decoded> {
    let mut bytes = Vec::new();
    let end = decoder.take(limit as u64 + 1).read_to_end(&mut bytes);
    if bytes.is_empty() && end.is_err() {
        return None;
    }
    let is_complete = end.is_ok() && bytes.len() <= limit;
    bytes.truncate(limit);
    Some(Decoded { bytes, is_complete })
}
