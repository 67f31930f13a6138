//! The address that a redirect leads to.

use http::{StatusCode, header, response};
use url::Url;

/// The longest address, in bytes, as for webhooks.
const MAX_LENGTH: usize = 2_048;

/// The absolute address in the `Location` of a redirect, without credentials and fragment. `None` if the response is
/// not a redirect, or if a webhook cannot have the address.
pub(crate) fn of_response(head: &response::Parts, url: &Url) -> Option<String> {
    let is_redirect = matches!(
        head.status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = head.headers.get(header::LOCATION).filter(|_| is_redirect)?;
    // Browsers and curl read the bytes as UTF-8.
    let mut location = url.join(std::str::from_utf8(location.as_bytes()).ok()?).ok()?;
    if !["http", "https"].contains(&location.scheme()) {
        return None;
    }
    location.set_username("").ok()?;
    location.set_password(None).ok()?;
    location.set_fragment(None);
    Some(location.into()).filter(|location: &String| location.len() <= MAX_LENGTH)
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn location(status: u16, value: &str) -> Option<String> {
        let response = Response::builder().status(status).header(header::LOCATION, value.as_bytes()).body(());
        let (head, ()) = response.expect("a response").into_parts();
        of_response(&head, &Url::parse("http://hotel.example.com:8080/hooks?token=1").expect("a URL"))
    }

    #[test]
    fn a_location_is_absolute_and_without_credentials() {
        for (value, absolute) in [
            ("https://hotel.example.com/hooks/", "https://hotel.example.com/hooks/"),
            ("/hooks/", "http://hotel.example.com:8080/hooks/"),
            ("hooks/?a=b", "http://hotel.example.com:8080/hooks/?a=b"),
            ("//other.example.com", "http://other.example.com/"),
            ("https://user:secret@other.example.com/#top", "https://other.example.com/"),
            ("https://other.example.com/é", "https://other.example.com/%C3%A9"),
        ] {
            for status in [301, 302, 303, 307, 308] {
                assert_eq!(location(status, value).as_deref(), Some(absolute), "{status} {value}");
            }
        }
    }

    #[test]
    fn a_location_that_a_webhook_cannot_have_is_left_out() {
        let long = format!("/{}", "x".repeat(MAX_LENGTH));
        for value in ["javascript:alert(1)", "mailto:a@b.example", "https://", "http://[", long.as_str()] {
            assert_eq!(location(302, value), None, "{value}");
        }
        for status in [200, 201, 300, 304, 503] {
            assert_eq!(location(status, "/hooks/"), None, "{status}");
        }
    }
}
