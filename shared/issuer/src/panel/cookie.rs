//! The cookie of a session. The browser sends it only to this service and hides it from scripts.

use base::Time;

use super::key::PanelKey;

/// The cookie's name in a local run, without TLS.
const NAME: &str = "waypost-panel";
/// The cookie's name over TLS. Because of its prefix, browsers accept it only from this host, so that no neighbouring
/// subdomain can plant one (RFC 6265bis §4.1.3.2).
const SECURE_NAME: &str = "__Host-waypost-panel";

/// Writes the cookies of a deployment.
#[derive(Debug, Clone, Copy)]
pub struct SessionCookies {
    is_secure: bool,
}

impl SessionCookies {
    /// The cookies of the deployment at this address. In a local run, without TLS, a browser would drop a secure
    /// cookie.
    pub fn of(base_url: &str) -> Self {
        Self { is_secure: base_url.starts_with("https:") }
    }

    /// The cookie's name.
    pub const fn name(self) -> &'static str {
        if self.is_secure { SECURE_NAME } else { NAME }
    }

    /// The key of the session among the values of the cookies with this name, if there is exactly one. Of several
    /// values, a page of another subdomain may have planted one, and nothing shows which (RFC 6265 §8.6).
    pub fn key<'a>(values: &[&'a str]) -> Option<&'a str> {
        match values {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The header `Set-Cookie` that gives the browser this key, until the session ends.
    pub fn give(self, key: &PanelKey, ends: Time, now: Time) -> String {
        self.header(&key.expose(), ends.since(now).as_secs())
    }

    /// The header `Set-Cookie` that removes the key.
    pub fn take(self) -> String {
        self.header("", 0)
    }

    /// `Strict`: only the panel's page uses it, from its own origin.
    fn header(self, value: &str, seconds: u64) -> String {
        // The prefix requires the path `/`.
        let (name, path) = if self.is_secure { (SECURE_NAME, "/") } else { (NAME, "/panel/session") };
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!("{name}={value}; Max-Age={seconds}; Path={path}; HttpOnly; SameSite=Strict{secure}")
    }
}

#[cfg(test)]
mod tests {
    use super::{super::key::tests::key, *};
    use std::time::Duration;

    #[test]
    fn a_cookie_that_comes_twice_is_no_key() {
        assert_eq!(SessionCookies::key(&["a"]), Some("a"));
        assert_eq!((SessionCookies::key(&[]), SessionCookies::key(&["a", "a"])), (None, None));
    }

    #[test]
    fn no_script_and_no_other_site_receives_the_cookie() {
        let key = key();
        let now = Time::from_millis(1_795_167_900_123);
        let secure = SessionCookies::of("https://api.example.com");
        let expected =
            format!("__Host-waypost-panel={}; Max-Age=3600; Path=/; HttpOnly; SameSite=Strict; Secure", key.expose());
        assert_eq!(secure.give(&key, now + Duration::from_secs(3600), now), expected);
        assert_eq!(
            SessionCookies::of("http://127.0.0.1:9000").take(),
            "waypost-panel=; Max-Age=0; Path=/panel/session; HttpOnly; SameSite=Strict"
        );
    }
}
