//! The URL of an endpoint, checked without the network. [`crate::dial`] checks the resolved addresses at every attempt.

use std::fmt;

use url::{Host, Position, Url};

use crate::{addresses::AddressRules, client};

const HTTPS: &str = "https://";
const EITHER: &str = "https:// or http://";
const MAX_LENGTH: usize = 2048;
/// The longest name and the longest label in the DNS (RFC 1035 §2.3.4), without the trailing dot.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A URL that events may be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointUrl {
    url: Url,
    /// The path and query of requests.
    target: String,
}

/// Why a URL is refused, as the end of a sentence that begins with the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointUrlError {
    /// The URL is longer than 2048 characters.
    #[error("must have at most {MAX_LENGTH} characters")]
    TooLong,
    /// The string is not an absolute URL.
    #[error("must be an absolute URL, such as https://hotel.example.com/webhooks")]
    NotAUrl,
    /// The scheme is not one of these.
    #[error("must begin with {0}")]
    Scheme(&'static str),
    /// The URL contains a user name or a password.
    #[error("must not contain credentials; use a header for them")]
    Credentials,
    /// The path has the segment `.` or `..`, which would be removed from the request.
    #[error("must not have `.` or `..` as a segment of its path")]
    Dots,
    /// The URL has a fragment.
    #[error("must not have a fragment (`#…`)")]
    Fragment,
    /// The port is 0, on which no server can listen.
    #[error("must have a port from 1 to 65535, or none")]
    Port,
    /// The host is a name or an address of a private network, or a name that the DNS cannot have.
    #[error("must name a public host")]
    NotPublic,
}

impl EndpointUrl {
    /// Parses a URL and checks it against the rules.
    pub fn parse(text: &str, rules: &AddressRules) -> Result<Self, EndpointUrlError> {
        let endpoint = Self::at_any_host(text, rules.allow_http)?;
        let public = match endpoint.url.host() {
            Some(Host::Ipv4(address)) => rules.permit(address.into()),
            Some(Host::Ipv6(address)) => rules.permit(address.into()),
            Some(Host::Domain(name)) => may_be_public(name, rules),
            None => false,
        };
        if public { Ok(endpoint) } else { Err(EndpointUrlError::NotPublic) }
    }

    /// Parses a URL whose host may be private.
    pub fn at_any_host(text: &str, allow_http: bool) -> Result<Self, EndpointUrlError> {
        if text.chars().count() > MAX_LENGTH {
            return Err(EndpointUrlError::TooLong);
        }
        // The parser would silently drop tabs, line ends and outer spaces, but the URL shown must be the one that was
        // sent.
        if text.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err(EndpointUrlError::NotAUrl);
        }
        let url = Url::parse(text).map_err(|_| EndpointUrlError::NotAUrl)?;
        // The parser corrects URLs that other parsers reject: `https:host`, `https:\\host`, `https:///host`.
        let after_scheme = text.get(url.scheme().len()..).unwrap_or_default();
        let literal = after_scheme.strip_prefix("://").is_some_and(|rest| !rest.starts_with('/'));
        if url.has_host() && (!literal || text.contains('\\')) {
            return Err(EndpointUrlError::NotAUrl);
        }
        match url.scheme() {
            "https" => {}
            "http" if allow_http => {}
            _ => return Err(EndpointUrlError::Scheme(if allow_http { EITHER } else { HTTPS })),
        }
        let authority = after_scheme.trim_start_matches("://").split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(EndpointUrlError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(EndpointUrlError::Fragment);
        }
        let path = text.split('?').next().unwrap_or_default();
        if path.split('/').any(is_dots) {
            return Err(EndpointUrlError::Dots);
        }
        if url.port() == Some(0) {
            return Err(EndpointUrlError::Port);
        }
        let target = with_apostrophes(text, &url);
        Ok(Self { url, target })
    }

    /// The parsed URL.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The path and query of requests.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }
}

/// The URL of requests.
impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", &self.url[..Position::BeforePath], self.target)
    }
}

/// The path and query of a URL, with its original apostrophes. The parser escapes them in the query of `http` and
/// `https` (<https://url.spec.whatwg.org/#special-query-percent-encode-set>), although a query may contain them (RFC
/// 3986 §3.4): an endpoint that compares or signs the raw query would see a different one. It changes no other valid
/// character.
fn with_apostrophes(text: &str, url: &Url) -> String {
    let Some((_, query)) = text.split_once('?').filter(|(_, query)| query.contains('\'')) else {
        return client::target(url).to_owned();
    };
    let escaped = |part: &str| {
        let mut url = url.clone();
        url.set_query(Some(part));
        url.query().unwrap_or_default().to_owned()
    };
    let parts: Vec<_> = query.split('\'').map(escaped).collect();
    format!("{}?{}", url.path(), parts.join("'"))
}

/// Whether the parser would take a segment for `.` or `..` and remove it.
fn is_dots(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}

/// Whether a name could be in the public DNS: it has a dot and a valid form, and is not reserved for machines and
/// private networks (RFC 6761, RFC 6762, RFC 8375, RFC 9476).
fn may_be_public(name: &str, rules: &AddressRules) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    if last == "localhost" {
        return rules.permit(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let is_label = |label: &str| {
        // A hyphen is allowed only inside a label (RFC 1123 §2.1).
        (1..=MAX_LABEL).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    let fits = name.len() <= MAX_NAME && name.split('.').all(is_label);
    fits && name.contains('.')
        && !["local", "internal", "alt", "onion"].contains(&last)
        && name != "home.arpa"
        && !name.ends_with(".home.arpa")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strict() -> AddressRules {
        AddressRules::default()
    }

    fn on_one_machine() -> AddressRules {
        AddressRules { allow_http: true, allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")] }
    }

    #[test]
    fn public_addresses_over_https_are_taken() {
        for good in [
            "https://hotel.example.com/hooks?x=1",
            "https://93.184.216.34:8443/",
            "https://[2606:4700::1111]/x",
            "HTTPS://EXAMPLE.COM",
        ] {
            assert!(EndpointUrl::parse(good, &strict()).is_ok(), "{good}");
        }
    }

    #[test]
    fn an_address_that_is_not_public_is_refused_in_every_spelling() {
        for bad in [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://0/",
            "https://10.0.0.1/",
            "https://169.254.169.254/",
            "https://[::1]/",
            "https://[::]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:a00:1]/",
            "https://[::127.0.0.1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://[2001:0:1::1]/",
            "https://[fe80::1]/",
            "https://[fd00::1]/",
            "https://localhost/",
            "https://api.localhost/",
            "https://localhost./",
            "https://intranet/",
            "https://printer.local/",
            "https://x.internal/",
            "https://router.home.arpa/",
            "https://１２７.0.0.1/",
        ] {
            assert_eq!(EndpointUrl::parse(bad, &strict()), Err(EndpointUrlError::NotPublic), "{bad}");
        }
    }

    #[test]
    fn every_other_fault_has_its_own_sentence() {
        for (bad, fault) in [
            ("", EndpointUrlError::NotAUrl),
            ("example.com/x", EndpointUrlError::NotAUrl),
            ("/x", EndpointUrlError::NotAUrl),
            ("https://", EndpointUrlError::NotAUrl),
            ("https://exa mple.com/", EndpointUrlError::NotAUrl),
            ("https:example.com", EndpointUrlError::NotAUrl),
            ("https:///example.com", EndpointUrlError::NotAUrl),
            ("https:\\\\example.com\\x", EndpointUrlError::NotAUrl),
            ("https://@example.com/", EndpointUrlError::Credentials),
            ("https://example.com/\n", EndpointUrlError::NotAUrl),
            ("https://[fe80::1%25eth0]/", EndpointUrlError::NotAUrl),
            ("http://example.com/", EndpointUrlError::Scheme(HTTPS)),
            ("ftp://example.com/", EndpointUrlError::Scheme(HTTPS)),
            ("javascript:alert(1)", EndpointUrlError::Scheme(HTTPS)),
            ("https://user@example.com/", EndpointUrlError::Credentials),
            ("https://user:secret@example.com/", EndpointUrlError::Credentials),
            ("https://example.com/#x", EndpointUrlError::Fragment),
            ("https://example.com/a/../b", EndpointUrlError::Dots),
            ("https://example.com/.", EndpointUrlError::Dots),
            ("https://example.com/%2E%2e?x", EndpointUrlError::Dots),
            ("https://example.com:0/", EndpointUrlError::Port),
            ("https://example.com:65536/", EndpointUrlError::NotAUrl),
            ("https://a..example.com/", EndpointUrlError::NotPublic),
            ("https://.example.com/", EndpointUrlError::NotPublic),
            ("https://-.com/", EndpointUrlError::NotPublic),
            ("https://-a.example.com/", EndpointUrlError::NotPublic),
            ("https://a.example-.com/", EndpointUrlError::NotPublic),
        ] {
            assert_eq!(EndpointUrl::parse(bad, &strict()), Err(fault), "{bad}");
        }
        for name in ["x".repeat(64) + ".com", "x.".repeat(126) + "com"] {
            let url = format!("https://{name}/");
            assert_eq!(EndpointUrl::parse(&url, &strict()), Err(EndpointUrlError::NotPublic), "{url}");
        }
        let long = format!("https://example.com/{}", "x".repeat(MAX_LENGTH));
        assert_eq!(EndpointUrl::parse(&long, &strict()), Err(EndpointUrlError::TooLong));
    }

    #[test]
    fn a_request_has_the_path_and_the_query_that_the_owner_wrote() {
        for target in [
            "/",
            "/?",
            "/a%27b'c?x='",
            "/?name='O'Brien'&y=%27",
            "/a/~;,:@!$&'()*+=-._?a=~;,:@!$&'()*+=-._/?",
            "/%C3%A9?%c3%a9'",
        ] {
            let url = format!("https://hotel.example.com{target}");
            let endpoint = EndpointUrl::parse(&url, &strict()).expect("a URL");
            assert_eq!((endpoint.target(), endpoint.to_string()), (target, url), "{target}");
        }
        let endpoint = EndpointUrl::parse("https://hotel.example.com?a='é\"'", &strict()).expect("a URL");
        assert_eq!(endpoint.target(), "/?a='%C3%A9%22'");
    }

    #[test]
    fn on_one_machine_its_own_address_is_allowed_and_no_other() {
        assert!(EndpointUrl::parse("http://127.0.0.1:8080/x", &on_one_machine()).is_ok());
        assert!(EndpointUrl::parse("http://localhost:8080/x", &on_one_machine()).is_ok());
        let fault = EndpointUrl::parse("localhost:8080", &on_one_machine()).expect_err("no scheme");
        assert_eq!(fault.to_string(), "must begin with https:// or http://");
        assert_eq!(EndpointUrl::parse("http://127.0.0.2/", &on_one_machine()), Err(EndpointUrlError::NotPublic));
        assert_eq!(EndpointUrl::parse("http://[::1]/", &on_one_machine()), Err(EndpointUrlError::NotPublic));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,60}") {
            let _ = EndpointUrl::parse(&text, &strict());
        }
    }
}
