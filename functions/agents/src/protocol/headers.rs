//! A message's headers, which repeat parts of it for gateways that do not parse it.
//! <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#request-metadata>

use std::borrow::Cow;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::HeaderMap;
use serde_json::Value;

use super::json_rpc::{Request, RpcError};

/// The revision of the protocol.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// A request's method.
const METHOD: &str = "mcp-method";
/// A request's subject: a tool, a prompt or a resource.
const NAME: &str = "mcp-name";

/// The prefix and suffix of an encoded value.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// A header's value; `None` if it is absent.
///
/// # Errors
/// The header is repeated, or is not a string.
pub fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text.trim_matches([' ', '\t']))),
        _ => Err(RpcError::header_mismatch(&format!("{name} must occur once, as a string"))),
    }
}

/// Checks that the headers contain the method and the subject of a request.
pub fn agree(headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    agrees(headers, METHOD, &request.method)?;
    let subject = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    // If the parameter is missing, the method refuses the request.
    request.params.get(subject).and_then(Value::as_str).map_or(Ok(()), |subject| agrees(headers, NAME, subject))
}

fn agrees(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), RpcError> {
    let given = only(headers, name)?.ok_or_else(|| RpcError::header_mismatch(&format!("{name} is missing")))?;
    if decoded(given).is_some_and(|given| given == expected) {
        return Ok(());
    }
    Err(RpcError::header_mismatch(&format!("{name} does not match the message")))
}

/// A header's decoded value; `None` if it cannot be decoded.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let (before, after) = ENCODED;
    let Some(encoded) = value.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)) else {
        return Some(value.into());
    };
    let bytes = BASE64_STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn request(method: &str, params: Value) -> Request {
        Request { id: json!(1), method: method.to_owned(), params: params.as_object().cloned().expect("an object") }
    }

    fn sent(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: http::HeaderName = name.parse().expect("a name");
            headers.append(name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn a_message_is_refused_unless_its_headers_match() {
        let call = request("tools/call", json!({"name": "résumé"}));
        for good in ["=?base64?csOpc3Vtw6k=?=", "  =?base64?csOpc3Vtw6k=?=\t"] {
            assert!(agree(&sent(&[("Mcp-Method", "tools/call"), ("mcp-name", good)]), &call).is_ok(), "{good}");
        }
        let list = request("tools/list", json!({}));
        assert!(agree(&sent(&[("MCP-METHOD", " tools/list ")]), &list).is_ok());
        for bad in
            [&[][..], &[("mcp-method", "TOOLS/LIST")], &[("mcp-method", "tools/list"), ("mcp-method", "tools/list")]]
        {
            assert!(agree(&sent(bad), &list).is_err(), "{bad:?}");
        }
        for bad in ["", "resume", "=?base64?csOpc3Vtw6k?=", "=?base64?/w==?=", "=?BASE64?csOpc3Vtw6k=?="] {
            assert!(agree(&sent(&[("mcp-method", "tools/call"), ("mcp-name", bad)]), &call).is_err(), "{bad}");
        }
        assert!(agree(&sent(&[("mcp-method", "tools/call")]), &call).is_err());
    }

    proptest! {
        #[test]
        fn any_name_can_be_sent(name in any::<String>()) {
            let encoded = format!("=?base64?{}?=", BASE64_STANDARD.encode(&name));
            prop_assert_eq!(decoded(&encoded), Some(name.into()));
        }
    }
}
