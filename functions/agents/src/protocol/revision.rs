//! The protocol's supported revisions, and a message's revision.
//!
//! Up to 2025-11-25, a client begins with `initialize` and then sends the revision in a header. Since 2026-07-28, each
//! request is self-contained: its `_meta` contains the revision and a header repeats it.
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

use http::HeaderMap;
use serde_json::Value;

use super::{
    headers::{self, PROTOCOL_VERSION},
    json_rpc::{Request, RpcError},
};

/// The member of `_meta` with a request's revision.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The member of `_meta` with the client's capabilities. This server uses none, but the protocol requires it.
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The method that begins a handshake.
pub const INITIALIZE: &str = "initialize";

/// A revision of the protocol, ordered by date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// 2025-06-18.
    June2025,
    /// 2025-11-25.
    November2025,
    /// 2026-07-28.
    July2026,
}

impl Revision {
    /// Every revision, newest first.
    pub const ALL: [Self; 3] = [Self::July2026, Self::November2025, Self::June2025];

    /// The newest revision that begins with `initialize`.
    pub const NEWEST_WITH_HANDSHAKE: Self = Self::November2025;

    /// The revision's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::June2025 => "2025-06-18",
            Self::November2025 => "2025-11-25",
            Self::July2026 => "2026-07-28",
        }
    }

    /// The revision with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.name() == name)
    }

    /// Whether a client begins with `initialize`. In later revisions each request is self-contained.
    pub fn has_handshake(self) -> bool {
        self <= Self::NEWEST_WITH_HANDSHAKE
    }

    /// A request's revision. Checks that the headers agree with the request.
    pub fn of_request(request: &Request, headers: &HeaderMap) -> Result<Self, RpcError> {
        let meta = request.meta(META_VERSION).and_then(Value::as_str);
        // The header names the negotiated revision, so only later requests need it:
        // <https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#protocol-version-header>
        if request.method == INITIALIZE && meta.is_none() {
            return Ok(Self::NEWEST_WITH_HANDSHAKE);
        }
        let header = headers::only(headers, PROTOCOL_VERSION)?;
        if meta.is_some() && meta != header {
            return Err(RpcError::header_mismatch("MCP-Protocol-Version and `_meta` do not name the same version"));
        }
        let revision = Self::named(header)?;
        if revision.has_handshake() {
            return Ok(revision);
        }
        if meta.is_none() || !request.meta(META_CAPABILITIES).is_some_and(Value::is_object) {
            let what = format!("`_meta` must have `{META_VERSION}` and `{META_CAPABILITIES}`");
            return Err(RpcError::invalid_params(what).with_status(http::StatusCode::BAD_REQUEST));
        }
        headers::agree(headers, request)?;
        Ok(revision)
    }

    /// The revision in a header. Clients of the oldest revisions send none.
    pub fn named(header: Option<&str>) -> Result<Self, RpcError> {
        let Some(name) = header else { return Ok(Self::June2025) };
        Self::of_name(name).ok_or_else(|| RpcError::unsupported_revision(name, &Self::ALL.map(Self::name)))
    }

    /// The revision to use for a client whose `initialize` requests `wanted`.
    pub fn negotiated(wanted: &str) -> Self {
        Self::of_name(wanted).filter(|revision| revision.has_handshake()).unwrap_or(Self::NEWEST_WITH_HANDSHAKE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(meta: Value) -> Request {
        let params = json!({"_meta": meta}).as_object().cloned().expect("an object");
        Request { id: json!(1), method: "tools/list".to_owned(), params }
    }

    fn headers(version: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("mcp-method", "tools/list".parse().expect("a value"));
        version.map(|version| headers.insert(PROTOCOL_VERSION, version.parse().expect("a value")));
        headers
    }

    fn code(meta: Value, version: Option<&str>) -> Value {
        let error = Revision::of_request(&request(meta), &headers(version)).expect_err("an error");
        let reply = error.reply(None).expect("a reply");
        serde_json::from_slice::<Value>(&reply.body).expect("JSON")["error"]["code"].clone()
    }

    #[test]
    fn a_request_is_in_the_revision_that_it_names() {
        let of = |meta, version| Revision::of_request(&request(meta), &headers(version)).expect("a revision");
        assert_eq!(of(json!({}), None), Revision::June2025);
        assert_eq!(of(json!({}), Some("2025-06-18")), Revision::June2025);
        assert_eq!(of(json!({}), Some("2025-11-25")), Revision::November2025);
        let meta = json!({META_VERSION: "2026-07-28", META_CAPABILITIES: {}});
        assert_eq!(of(meta, Some("2026-07-28")), Revision::July2026);
    }

    #[test]
    fn a_handshake_begins_regardless_of_the_header() {
        let params = json!({"protocolVersion": "2025-03-26"}).as_object().cloned().expect("an object");
        let first = Request { id: json!(1), method: INITIALIZE.to_owned(), params };
        for version in [None, Some("2025-03-26"), Some("2025-11-25"), Some("2026-07-28"), Some("2030-01-01"), Some("x")]
        {
            let revision = Revision::of_request(&first, &headers(version)).expect("a revision");
            assert!(revision.has_handshake(), "{version:?}");
        }
    }

    #[test]
    fn a_contradictory_request_is_refused() {
        let meta = json!({META_VERSION: "2026-07-28", META_CAPABILITIES: {}});
        assert_eq!(code(meta.clone(), None), -32020);
        assert_eq!(code(meta, Some("2025-11-25")), -32020);
        assert_eq!(code(json!({}), Some("2026-07-28")), -32602);
        assert_eq!(code(json!({META_VERSION: "2026-07-28"}), Some("2026-07-28")), -32602);
        assert_eq!(code(json!({META_CAPABILITIES: {}}), Some("2026-07-28")), -32602);
        assert_eq!(code(json!({META_VERSION: "v9", META_CAPABILITIES: {}}), Some("v9")), -32022);
        assert_eq!(code(json!({}), Some("2025-03-26")), -32022);
    }

    #[test]
    fn a_handshake_ends_in_a_revision_that_has_one() {
        assert_eq!(Revision::negotiated("2025-06-18"), Revision::June2025);
        for other in ["2025-11-25", "2026-07-28", "2024-11-05", "", "x"] {
            assert_eq!(Revision::negotiated(other), Revision::November2025, "{other}");
        }
    }
}
