//! The browser in which a connection is made, identified by a cookie (RFC 9700 §4.7).
//!
//! The start page gives a browser one cookie with a random value, for all its concurrent connections. When the person
//! continues to the provider, the value's hash is stored with the authorization, and the callback accepts no other
//! browser. The `__Host-` prefix keeps other hosts, including sibling subdomains, from setting the cookie.

use std::time::Duration;

use aws_lc_rs::{digest, hmac};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::state;
use base::{Random, random};

/// The cookie's name.
pub const COOKIE: &str = "__Host-waypost-connect";
/// How long a browser keeps the cookie. The state on a page is older than the cookie, so a state's lifetime is enough.
const KEPT: Duration = state::LIFETIME;
/// A value's length. 43 alphanumeric characters have about 256 random bits.
const LENGTH: usize = 43;

/// A browser. Not `Debug`, since its value is its proof.
#[derive(Clone, PartialEq, Eq)]
pub struct Browser(String);

impl Browser {
    /// A browser that opens a start page for the first time.
    pub fn new(random: &dyn Random) -> Self {
        Self(random::alphanumeric(random, LENGTH))
    }

    /// The browser that sent this value of [`COOKIE`]; `None` if the value is malformed.
    pub fn of_cookie(value: &str) -> Option<Self> {
        let ours = value.len() == LENGTH && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        ours.then(|| Self(value.to_owned()))
    }

    /// The value of the `Set-Cookie` header. `Lax`, since the provider sends people back from another site.
    pub fn cookie(&self) -> String {
        format!("{COOKIE}={}; Max-Age={}; Path=/; Secure; HttpOnly; SameSite=Lax", self.0, KEPT.as_secs())
    }

    /// The hash that the table stores.
    pub fn hash(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, self.0.as_bytes()))
    }

    /// A tag that authenticates a string for this browser, since creating it requires the browser's cookie.
    pub fn tag(&self, text: &str) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&self.key(), text.as_bytes()))
    }

    /// Whether this tag was made for this string with this browser's cookie.
    pub fn has_tagged(&self, text: &str, tag: &str) -> bool {
        let tag = BASE64_URL_SAFE_NO_PAD.decode(tag);
        tag.is_ok_and(|tag| hmac::verify(&self.key(), text.as_bytes(), &tag).is_ok())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;
    use proptest::prelude::*;

    #[test]
    fn a_browser_is_recognised_by_its_cookie() {
        let browser = Browser::new(&SystemRandom);
        let cookie = browser.cookie();
        let (pair, attributes) = cookie.split_once("; ").expect("a cookie has attributes");
        assert_eq!(attributes, "Max-Age=600; Path=/; Secure; HttpOnly; SameSite=Lax");
        let value = pair.strip_prefix("__Host-waypost-connect=").expect("the name");
        assert!(Browser::of_cookie(value) == Some(browser.clone()));
        assert!(browser != Browser::new(&SystemRandom));
        assert!(!browser.hash().contains(&browser.0));
    }

    #[test]
    fn a_foreign_cookie_is_no_browser() {
        let value = "A".repeat(43);
        assert!(Browser::of_cookie(&value).is_some());
        for foreign in ["", "=", COOKIE, &value[1..], &format!("{value}A"), &format!("\"{value}\""), &"é".repeat(43)] {
            assert!(Browser::of_cookie(foreign).is_none(), "{foreign}");
        }
    }

    #[test]
    fn a_tag_is_valid_for_one_browser_and_one_text() {
        let browser = Browser::new(&SystemRandom);
        let other = Browser::new(&SystemRandom);
        let tag = browser.tag("a text");
        assert!(browser.has_tagged("a text", &tag));
        assert!(!other.has_tagged("a text", &tag) && !browser.has_tagged("another text", &tag));
        for tag in ["", "x", &tag[1..], &other.tag("a text"), &browser.hash()] {
            assert!(!browser.has_tagged("a text", tag), "{tag}");
        }
    }

    proptest! {
        #[test]
        fn no_text_in_a_cookie_makes_the_reader_panic(value in any::<String>()) {
            let known = Browser::of_cookie(&value).is_some();
            prop_assert!(!known || value.len() == LENGTH);
        }
    }
}
