//! A session's cookie. The browser sends it only to this service and hides it from scripts.

use super::{frame_ancestors::FrameAncestors, key::PanelKey, new_link::LONGEST_LIFETIME};

/// The cookie's names in a local run, without TLS. A cookie for frames has another name: otherwise, a browser could
/// send both kinds after the setting was changed, and neither would count.
const NAME: &str = "waypost-panel";
const FRAMED_NAME: &str = "waypost-panel-framed";
/// The cookie's names over TLS. Because of the prefix, browsers accept it only from this host, so no neighbouring
/// subdomain can plant one (RFC 6265bis §4.1.3.2).
const SECURE_NAME: &str = "__Host-waypost-panel";
const SECURE_FRAMED_NAME: &str = "__Host-waypost-panel-framed";

/// Writes a deployment's cookies.
#[derive(Debug, Clone, Copy)]
pub struct SessionCookies {
    is_secure: bool,
    is_framed: bool,
}

impl SessionCookies {
    /// The cookies of the deployment at this address. Pages of these origins may show its panel in a frame.
    pub fn of(base_url: &str, ancestors: &FrameAncestors) -> Self {
        Self { is_secure: base_url.starts_with("https:"), is_framed: !ancestors.is_empty() }
    }

    /// The cookie's name.
    pub const fn name(self) -> &'static str {
        match (self.is_secure, self.is_framed) {
            (true, true) => SECURE_FRAMED_NAME,
            (true, false) => SECURE_NAME,
            (false, true) => FRAMED_NAME,
            (false, false) => NAME,
        }
    }

    /// The session's key, if there is exactly one cookie with this name. If there are several, a page on another
    /// subdomain may have planted one, and there is no way to know which one (RFC 6265 §8.6).
    pub fn key<'a>(values: &[&'a str]) -> Option<&'a str> {
        match values {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The `Set-Cookie` header with this key. The browser keeps the cookie for as long as any session can last, since
    /// the application may extend the session while the page is idle.
    pub fn give(self, key: &PanelKey) -> String {
        self.header(&key.expose(), LONGEST_LIFETIME.as_secs())
    }

    /// The `Set-Cookie` header that removes the key.
    pub fn take(self) -> String {
        self.header("", 0)
    }

    /// Only the panel's page uses the cookie, from its own origin. `Strict` enforces this, but would also withhold the
    /// cookie from a panel in a frame of another site. There, `Partitioned` gives each framing site a separate cookie
    /// (CHIPS), so that requests from any other site have none. It requires `Secure`, which browsers accept without TLS
    /// only from this machine; in other local runs they drop the cookie.
    fn header(self, value: &str, seconds: u64) -> String {
        let name = self.name();
        // The prefix requires the path `/`.
        let path = if self.is_secure { "/" } else { "/panel/session" };
        let sites = match (self.is_framed, self.is_secure) {
            (true, _) => "SameSite=None; Secure; Partitioned",
            (false, true) => "SameSite=Strict; Secure",
            (false, false) => "SameSite=Strict",
        };
        format!("{name}={value}; Max-Age={seconds}; Path={path}; HttpOnly; {sites}")
    }
}

#[cfg(test)]
mod tests {
    use super::{super::key::tests::key, *};

    #[test]
    fn a_cookie_that_comes_twice_is_no_key() {
        assert_eq!(SessionCookies::key(&["a"]), Some("a"));
        assert_eq!((SessionCookies::key(&[]), SessionCookies::key(&["a", "a"])), (None, None));
    }

    #[test]
    fn no_script_and_no_other_site_receives_the_cookie() {
        let key = key();
        let secure = SessionCookies::of("https://api.example.com", &FrameAncestors::default());
        let expected =
            format!("__Host-waypost-panel={}; Max-Age=86400; Path=/; HttpOnly; SameSite=Strict; Secure", key.expose());
        assert_eq!(secure.give(&key), expected);
        assert_eq!(
            SessionCookies::of("http://127.0.0.1:9000", &FrameAncestors::default()).take(),
            "waypost-panel=; Max-Age=0; Path=/panel/session; HttpOnly; SameSite=Strict"
        );
    }

    #[test]
    fn in_frames_each_site_has_a_separate_cookie() {
        let ancestors = "https://app.example.com".parse().expect("an origin");
        assert_eq!(
            SessionCookies::of("https://api.example.com", &ancestors).take(),
            "__Host-waypost-panel-framed=; Max-Age=0; Path=/; HttpOnly; SameSite=None; Secure; Partitioned"
        );
        assert_eq!(
            SessionCookies::of("http://127.0.0.1:9000", &ancestors).take(),
            "waypost-panel-framed=; Max-Age=0; Path=/panel/session; HttpOnly; SameSite=None; Secure; Partitioned"
        );
    }
}
