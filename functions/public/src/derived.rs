//! Addresses that clients derive from other addresses, and redirects to the intended ones.
//!
//! A client of the Model Context Protocol may add a slash to the server's address. It inserts the server's path into
//! the addresses of the issuer's metadata (RFC 8414 §3.1) and the resource's metadata (RFC 9728 §3.1).

use gate::Reply;
use http::{
    Method, StatusCode,
    header::{ACCESS_CONTROL_ALLOW_ORIGIN, LOCATION},
};

const SERVER: &str = "/mcp";
const ISSUER: &str = "/.well-known/oauth-authorization-server";
const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";

/// The derived addresses, each with its canonical address.
const MEANT: &[(&str, &str)] = &[
    ("/mcp/", SERVER),
    ("/.well-known/oauth-authorization-server/mcp", ISSUER),
    ("/.well-known/oauth-authorization-server/mcp/", ISSUER),
    ("/.well-known/oauth-protected-resource/mcp/", RESOURCE),
];

/// The reply at a derived address; `None` at any other. The redirect preserves the verb and the body (308), and stays
/// on the host that the client called, so the client does not drop its token.
pub fn answer(method: &Method, path: &str) -> Option<Reply> {
    let (_, meant) = *MEANT.iter().find(|(derived, _)| *derived == path)?;
    let redirect = || Reply::bare(StatusCode::PERMANENT_REDIRECT).with_header(LOCATION, meant);
    Some(match *method {
        _ if meant == SERVER => redirect(),
        // Browsers do not follow a preflight's redirects.
        Method::OPTIONS => Reply::preflight(),
        _ => redirect().with_header(ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gate::verbs;

    fn header(reply: &Reply, name: &http::HeaderName) -> Option<String> {
        let (_, value) = reply.headers.iter().find(|(known, _)| known == name)?;
        Some(value.to_str().expect("a text").to_owned())
    }

    #[test]
    fn a_derived_address_redirects_to_one_that_has_a_route() {
        for &(derived, meant) in MEANT {
            assert!(verbs::verbs_of(derived).is_empty(), "{derived}");
            for verb in verbs::verbs_of(meant).into_iter().filter(|verb| *verb != "OPTIONS") {
                let reply = answer(&verb.parse().expect("a verb"), derived).expect("a redirect");
                assert_eq!(reply.status, StatusCode::PERMANENT_REDIRECT);
                assert_eq!(header(&reply, &LOCATION).as_deref(), Some(meant));
                let origin = header(&reply, &ACCESS_CONTROL_ALLOW_ORIGIN);
                assert_eq!(origin.as_deref(), verbs::is_open(meant).then_some("*"), "{derived}");
            }
        }
        for other in ["/mcp", "/mcp//", "/", "/.well-known/oauth-authorization-server", "/openapi.json/"] {
            assert!(answer(&Method::GET, other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_preflight_at_a_derived_address_of_a_document_is_answered() {
        let of = |path| answer(&Method::OPTIONS, path).expect("a reply").status;
        assert_eq!(of("/.well-known/oauth-authorization-server/mcp"), StatusCode::NO_CONTENT);
        assert_eq!(of("/mcp/"), StatusCode::PERMANENT_REDIRECT);
    }
}
