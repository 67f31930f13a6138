//! Times in requests, with one message about all invalid ones.

use base::Time;

const FORM: &str = "must be a time in RFC 3339 that ends with `Z` or an offset, such as 2026-11-20T09:45:00.123Z";

/// Reads a time from a JSON value.
///
/// # Errors
/// The fault, as the second half of a sentence that begins with the field's name.
pub(crate) fn of_body(value: &str) -> Result<Time, &'static str> {
    let text: Option<String> = serde_json::from_str(value).ok();
    text.and_then(|text| Time::of_client(&text)).ok_or(FORM)
}

/// Reads a time from a query. The `+` of an offset arrives as a space unless the client encodes it.
///
/// # Errors
/// As in [`of_body`].
pub(crate) fn of_query(text: &str) -> Result<Time, String> {
    Time::of_client(text).ok_or_else(|| match text.rsplit_once(' ') {
        Some((time, offset)) if Time::of_client(&format!("{time}+{offset}")).is_some() => {
            format!("{FORM}; its `+` arrived as a space: write it as `%2B` in a query")
        }
        _ => FORM.to_owned(),
    })
}

/// The message about a missing time.
pub(crate) fn is_missing() -> String {
    format!("is missing; it {FORM}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_time_is_refused_with_the_expected_format() {
        for bad in ["1795391258", "null", "\"\"", "\"2026-11-22 23:50:57\"", "\"2026-11-22T23:50:57\"", "[]"] {
            assert_eq!(of_body(bad), Err(FORM), "{bad}");
        }
        assert!(of_body("\"2026-11-22T23:50:57Z\"").is_ok() && of_body("\"2026-11-22T23:50:57+0000\"").is_ok());
    }

    #[test]
    fn a_plus_that_became_a_space_has_a_message_about_encoding() {
        assert!(of_query("2026-11-22T23:50:00+00:00").is_ok());
        for bad in ["2026-11-22T23:50:00 00:00", "2026-11-22T23:50:00 0000"] {
            assert!(of_query(bad).expect_err("a space").contains("%2B"), "{bad}");
        }
        for bad in ["2026-11-22 23:50:00Z", "yesterday", "2026-11-22T23:50:00", " "] {
            assert_eq!(of_query(bad), Err(FORM.to_owned()), "{bad}");
        }
    }
}
