//! The check that a request comes from the panel's own page.
//!
//! Otherwise, a page of another site could open its own link in a user's browser, and the user would unknowingly work
//! on a stranger's managing entity (login CSRF). The cookie does not prevent this: a code needs no cookie, and the
//! cookie for frames is not `SameSite=Strict`.

use http::{HeaderMap, HeaderName, header::ORIGIN};
use problem::{Problem, ProblemKind};
use url::Url;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a browser's request from an origin other than this service. Clients that are not browsers send no origin.
pub fn check(headers: &HeaderMap, base_url: &str) -> Result<(), Problem> {
    // `Sec-Fetch-Site` is correct even if the service was opened under another name.
    let is_own = match (headers.get(FETCH_SITE), headers.get(ORIGIN)) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => Url::parse(base_url).is_ok_and(|base| *origin == base.origin().ascii_serialization()),
        (None, None) => true,
    };
    if is_own {
        return Ok(());
    }
    let detail =
        "The request comes from a page on another origin; only the panel's own page can open, renew or end sessions.";
    Err(Problem::new(ProblemKind::ForeignOrigin, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_panels_own_page_is_accepted() {
        let passes = |headers: &[(HeaderName, &'static str)]| {
            let values = headers.iter().map(|(name, value)| (name.clone(), http::HeaderValue::from_static(value)));
            check(&values.collect(), "https://api.example.com").is_ok()
        };
        let (own, other) = ("https://api.example.com", "https://evil.example.com");
        assert!(passes(&[]) && passes(&[(ORIGIN, own)]) && passes(&[(FETCH_SITE, "same-origin"), (ORIGIN, other)]));
        for site in ["same-site", "cross-site", "none", ""] {
            assert!(!passes(&[(FETCH_SITE, site), (ORIGIN, own)]), "{site}");
        }
        for origin in [other, "null", "http://api.example.com", "https://api.example.com:8443", ""] {
            assert!(!passes(&[(ORIGIN, origin)]), "{origin}");
        }
    }
}
