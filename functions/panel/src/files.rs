//! The panel's files.

use std::borrow::Cow;

use http::{
    HeaderMap, HeaderName,
    header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY},
};

use gate::Reply;
use problem::Problem;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file, or the page.
#[derive(Debug)]
pub struct File {
    pub(crate) media_type: &'static str,
    /// The hash of its content.
    pub(crate) hash: Cow<'static, str>,
    pub(crate) plain: Cow<'static, [u8]>,
    pub(crate) gzip: Cow<'static, [u8]>,
}

/// The file at this path below `/panel/assets`, if it belongs to this release.
pub fn asset(path: &str) -> Option<&'static File> {
    let (release, path) = path.split_once('/')?;
    let (_, file) = FILES.iter().find(|(name, _)| release == RELEASE && *name == path)?;
    Some(file)
}

impl File {
    /// The file, cacheable forever, since different content has a different address.
    pub fn as_asset(&self, request: &HeaderMap) -> Result<Reply, Problem> {
        let reply = self.reply(request)?.with_header(CACHE_CONTROL, "public, max-age=31536000, immutable");
        Ok(reply.with_header(HeaderName::from_static("cross-origin-resource-policy"), "same-origin"))
    }

    /// The file in the form that the client accepts, or a 304 if the client already has it.
    pub(crate) fn reply(&self, request: &HeaderMap) -> Result<Reply, Problem> {
        let is_packed = takes_gzip(request);
        let tag = format!("\"{}{}\"", self.hash, if is_packed { "-gzip" } else { "" });
        let reply = if has_already(request, &tag) {
            Reply::unchanged()
        } else if is_packed {
            Reply::ok_bytes(self.media_type, self.gzip.to_vec()).with_header(CONTENT_ENCODING, "gzip")
        } else {
            Reply::ok_bytes(self.media_type, self.plain.to_vec())
        };
        reply.with_header(VARY, "Accept-Encoding").with_computed_header(ETAG, &tag)
    }
}

/// Whether the client accepts `gzip` (RFC 9110 §12.5.3).
fn takes_gzip(request: &HeaderMap) -> bool {
    elements(request, &ACCEPT_ENCODING).iter().any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let refused = |parameter: &str| {
            let weight = parameter.strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
            weight.is_some_and(|weight| weight == 0.0)
        };
        is_gzip && !parts.any(refused)
    })
}

/// Whether the client has the content with this tag (RFC 9110 §13.1.2). A proxy may have weakened the tag.
fn has_already(request: &HeaderMap, tag: &str) -> bool {
    elements(request, &IF_NONE_MATCH).iter().any(|known| {
        let known = known.trim();
        known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag
    })
}

/// The elements of a header's list. An element with non-ASCII bytes, such as another server's tag, does not hide the
/// others.
fn elements(request: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let lists = request.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    lists.flat_map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn asking(name: HeaderName, value: &'static str) -> HeaderMap {
        [(name, HeaderValue::from_static(value))].into_iter().collect()
    }

    #[test]
    fn gzip_is_sent_to_clients_that_accept_it() {
        for taken in ["gzip", "GZIP", "br, gzip;q=0.5", "deflate,gzip ;q=1"] {
            assert!(takes_gzip(&asking(ACCEPT_ENCODING, taken)), "{taken}");
        }
        for refused in ["", "br", "gzip;q=0", "gzip; q=0.0", "x-gzip2", "identity"] {
            assert!(!takes_gzip(&asking(ACCEPT_ENCODING, refused)), "{refused}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_known_tag_is_found_beside_tags_of_any_bytes() {
        let known = |value: &[u8]| {
            let value = HeaderValue::from_bytes(value).expect("a value");
            has_already(&[(IF_NONE_MATCH, value)].into_iter().collect(), "\"a\"")
        };
        assert!(known(b"\"a\"") && known("\"é\", W/\"a\"".as_bytes()) && known(b"\"a\",\"\xe9\"") && known(b"*"));
        assert!(!known(b"\"\xe9\"") && !known(b"\"b\""));
    }

    #[test]
    fn a_file_is_found_only_below_its_release() {
        let (path, _) = FILES.first().expect("the panel has files");
        assert!(asset(&format!("{RELEASE}/{path}")).is_some());
        for bad in [format!("0123456789abcdef/{path}"), (*path).to_owned(), format!("{RELEASE}/"), RELEASE.to_owned()] {
            assert!(asset(&bad).is_none(), "{bad}");
        }
        assert!(asset(&format!("{RELEASE}/index.html")).is_none());
    }
}
