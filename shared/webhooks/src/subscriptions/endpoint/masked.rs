//! Masking an endpoint's secrets: the values of its headers and of its URL's query, which are often credentials. Names
//! stay readable, so that people recognise their settings. A client may send the masked text back: a mask in a change
//! means the stored value.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

/// The text that replaces a value of any length.
pub const MASK: &str = "***";

/// Headers by name.
pub type Headers = BTreeMap<String, String>;

/// A mask has no stored value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be the value itself: `{MASK}` keeps a stored value, but none is stored here")]
pub struct NothingKept;

/// Headers with their values masked.
pub fn headers(headers: &Headers) -> Headers {
    headers.keys().map(|name| (name.clone(), MASK.to_owned())).collect()
}

/// A URL with its query values masked. A query parameter without a name is masked completely.
pub fn url(url: &str) -> String {
    let Some((before, query)) = url.split_once('?') else { return url.to_owned() };
    let masked = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, _)) => format!("{name}={MASK}"),
        None if parameter.is_empty() => String::new(),
        None => MASK.to_owned(),
    });
    format!("{before}?{}", masked.collect::<Vec<_>>().join("&"))
}

/// Replaces masks in headers with stored values, matched by name regardless of case. The error contains the names of
/// masks that have no stored value.
pub fn unmask_headers(mut given: Headers, kept: &Headers) -> Result<Headers, Vec<String>> {
    let mut unknown = Vec::new();
    for (name, value) in given.iter_mut().filter(|(_, value)| *value == MASK) {
        match kept.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)) {
            Some((_, kept)) => value.clone_from(kept),
            None => unknown.push(name.clone()),
        }
    }
    if unknown.is_empty() { Ok(given) } else { Err(unknown) }
}

/// Whether any value of these headers is a mask.
pub fn masks_headers(headers: &Headers) -> bool {
    headers.values().any(|value| value == MASK)
}

/// Whether any value of this URL's query is a mask.
pub fn masks_url(url: &str) -> bool {
    parameters(url).any(is_masked)
}

/// Replaces masks in a URL's query with stored values, matched by name; repeated names are matched in order.
pub fn unmask_url(given: &str, kept: &str) -> Result<String, NothingKept> {
    let Some((before, query)) = given.split_once('?') else { return Ok(given.to_owned()) };
    let mut seen = Vec::new();
    let mut whole = Vec::new();
    for parameter in query.split('&') {
        let name = name(parameter);
        if is_masked(parameter) {
            let earlier = seen.iter().filter(|other| **other == name).count();
            let mut alike = parameters(kept).filter(|other| self::name(other) == name);
            let kept = alike.nth(earlier).ok_or(NothingKept)?;
            whole.push(match (parameter.split_once('='), kept.split_once('=')) {
                (Some((name, _)), Some((_, value))) => format!("{name}={value}"),
                _ => kept.to_owned(),
            });
        } else {
            whole.push(parameter.to_owned());
        }
        if !parameter.is_empty() {
            seen.push(name);
        }
    }
    Ok(format!("{before}?{}", whole.join("&")))
}

/// The parameters of a URL's query, without empty ones.
fn parameters(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter(|parameter| !parameter.is_empty())
}

/// A query parameter's name, if it has one.
fn name(parameter: &str) -> Option<Vec<u8>> {
    parameter.split_once('=').map(|(name, _)| percent_decode_str(name).collect())
}

/// Whether the value of a query parameter is a mask. Some clients escape every asterisk.
fn is_masked(parameter: &str) -> bool {
    let value = parameter.split_once('=').map_or(parameter, |(_, value)| value);
    percent_decode_str(value).eq(MASK.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(headers: &[(&str, &str)]) -> Headers {
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_url_shows_the_names_of_its_query_and_none_of_the_values() {
        for (plain, masked) in [
            ("https://example.com/a", "https://example.com/a"),
            ("https://example.com/?", "https://example.com/?"),
            ("https://example.com/a?token=s3cret", "https://example.com/a?token=***"),
            ("https://example.com?a=1&b=&a=2", "https://example.com?a=***&b=***&a=***"),
            ("https://example.com/?s3cret", "https://example.com/?***"),
            ("https://example.com/?=s3cret&&x", "https://example.com/?=***&&***"),
            ("https://example.com/?a=b=c?d=e", "https://example.com/?a=***"),
        ] {
            assert_eq!(url(plain), masked);
            assert_eq!(url(masked), masked, "masked twice is masked once");
        }
    }

    #[test]
    fn a_shown_url_is_replaced_by_the_stored_one() {
        let kept = "https://example.com/a?token=1&x=2&token=3&bare";
        for (given, meant) in [
            ("https://example.com/a?token=***&x=***&token=***&***", kept),
            ("https://example.com/a?token=%2A%2A%2A&x=%2a*%2A", "https://example.com/a?token=1&x=2"),
            ("https://example.com/a?to%6Ben=***", "https://example.com/a?to%6Ben=1"),
            ("https://example.com/b?x=***&new=y", "https://example.com/b?x=2&new=y"),
            ("https://example.com/a?token=new&token=***", "https://example.com/a?token=new&token=3"),
            ("https://example.com/a", "https://example.com/a"),
        ] {
            assert_eq!(unmask_url(given, kept).as_deref(), Ok(meant));
        }
        for given in ["https://example.com/a?y=***", "https://example.com/?x=***&x=***", "https://example.com/?***&***"]
        {
            assert_eq!(unmask_url(given, kept), Err(NothingKept), "{given}");
        }
        assert_eq!(unmask_url("https://example.com/?x=***", "https://example.com/"), Err(NothingKept));
    }

    #[test]
    fn a_masked_header_keeps_its_value_in_any_case_of_its_name() {
        let kept = map(&[("Authorization", "Bearer s3cret"), ("X-Old", "o")]);
        let meant = unmask_headers(map(&[("authorization", MASK), ("X-New", "n")]), &kept);
        assert_eq!(meant, Ok(map(&[("authorization", "Bearer s3cret"), ("X-New", "n")])));
        let unknown = unmask_headers(map(&[("X-New", MASK), ("X-Old", MASK)]), &kept);
        assert_eq!(unknown, Err(vec!["X-New".to_owned()]));
        assert_eq!(headers(&kept), map(&[("Authorization", MASK), ("X-Old", MASK)]));
    }

    proptest! {
        #[test]
        fn a_kept_query_comes_back_when_its_mask_does(query in "[a-c=&%2A*x]{0,30}") {
            let kept = format!("https://example.com/?{query}");
            prop_assert_eq!(unmask_url(&url(&kept), &kept), Ok(kept));
        }

        #[test]
        fn no_value_shows_through_a_mask(names in proptest::collection::vec("[a-z]{0,3}", 0..5)) {
            let query: Vec<_> = names.iter().map(|name| format!("{name}=S3CRET")).collect();
            let masked = url(&format!("https://example.com/?{}&S3CRET", query.join("&")));
            prop_assert!(!masked.contains("S3CRET"));
        }
    }
}
