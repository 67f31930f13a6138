//! The origins whose pages may show the panel in a frame.

use std::{fmt, str::FromStr};

use base::{Environment, FromEnvironment};
use url::{Origin, Url};

/// The `PANEL_FRAME_ANCESTORS` setting: a list of origins, empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameAncestors(Vec<String>);

/// A string that is not a list of exact origins.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a list of exact origins separated by spaces: `{0}` is not an exact origin. An origin is `https://` and a \
     host, optionally with a port, in lower case, without a path, a trailing slash or `*`; `http://` is accepted for \
     `localhost` and `127.0.0.1`"
)]
pub struct NotOrigins(String);

impl FrameAncestors {
    /// Whether no page may show the panel in a frame.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sources for the `frame-ancestors` directive of a Content-Security-Policy.
    pub fn sources(&self) -> String {
        if self.is_empty() { "'none'".to_owned() } else { self.to_string() }
    }
}

/// The origins, with spaces between them.
impl fmt::Display for FrameAncestors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

impl FromStr for FrameAncestors {
    type Err = NotOrigins;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let origins = text.split_ascii_whitespace();
        origins
            .map(|origin| is_exact(origin).then(|| origin.to_owned()).ok_or_else(|| NotOrigins(origin.to_owned())))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl FromEnvironment for FrameAncestors {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        environment.parsed("PANEL_FRAME_ANCESTORS", Self::default())
    }
}

/// Whether a string is an origin as browsers write it, so that a page can compare it with a message's origin. A browser
/// sends the session's cookie only over TLS, or to this machine.
fn is_exact(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_safe = match url.scheme() {
        "https" => true,
        "http" => matches!(url.host_str(), Some("localhost" | "127.0.0.1")),
        _ => false,
    };
    // Neither a wildcard nor a character that ends the directive.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":/.-".contains(&byte));
    is_safe && is_plain && matches!(url.origin(), Origin::Tuple(..)) && url.origin().ascii_serialization() == text
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::environment::read_from;

    #[test]
    fn no_page_may_frame_the_panel_unless_the_deployment_lists_it() {
        let none = read_from::<FrameAncestors>(|_| None).expect("the default");
        assert!(none.is_empty());
        assert_eq!(none.sources(), "'none'");
        let two = "https://app.example.com  http://localhost:3000 ".parse::<FrameAncestors>().expect("origins");
        assert_eq!(two.sources(), "https://app.example.com http://localhost:3000");
    }

    #[test]
    fn only_exact_origins_are_accepted_as_ancestors() {
        for good in [
            "https://app.example.com:8443",
            "http://127.0.0.1:3000",
            "http://localhost",
            "https://xn--bcher-kva.example",
        ] {
            assert!(is_exact(good), "{good}");
        }
        for bad in [
            "*",
            "https://*",
            "https://*.example.com",
            "https://app.example.com/",
            "https://app.example.com/path",
            "https://app.example.com:443",
            "https://App.example.com",
            "https://user@app.example.com",
            "https://app.example.com;script-src",
            "https://app.example.com,https://b.example",
            "http://app.example.com",
            "http://localhost.example.com",
            "http://127.0.0.2",
            "app.example.com",
            "https:",
            "'self'",
            "data:",
            "https://bücher.example",
        ] {
            assert!(!is_exact(bad), "{bad}");
        }
        let error = read_from::<FrameAncestors>(|_| Some("https://a.example https://*.b.example".into()));
        let error = error.expect_err("a wildcard");
        let said = &error.0[0];
        assert!(said.starts_with("PANEL_FRAME_ANCESTORS is `https://a.example https://*.b.example`"), "{said}");
        assert!(said.contains("`https://*.b.example` is not an exact origin"), "{said}");
    }
}
