//! The format of errors that a client prefers: a page, or JSON (RFC 9110 §12.5.1).

use http::{HeaderMap, header::ACCEPT};

/// The media type of pages.
const PAGE: (&str, &str) = ("text", "html");
/// The media types for programs.
const JSON: [(&str, &str); 2] = [("application", "problem+json"), ("application", "json")];

/// A media range with its quality, from 0 (not acceptable) to 1000.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: u16,
}

/// Whether the client prefers a page to JSON. JSON wins a tie, since many programs accept everything.
pub(crate) fn prefers_page(headers: &HeaderMap) -> bool {
    // A gateway joins repeated fields, so non-ASCII bytes in one must not hide the others.
    let fields: Vec<_> =
        headers.get_all(ACCEPT).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let ranges: Vec<Range<'_>> = fields.iter().flat_map(|field| split(field, ',')).filter_map(Range::read).collect();
    let json = JSON.map(|(kind, subtype)| quality_of(kind, subtype, &ranges)).into_iter().max();
    let (kind, subtype) = PAGE;
    Some(quality_of(kind, subtype, &ranges)) > json
}

/// The quality of a media type, from the most specific range that includes it.
fn quality_of(kind: &str, subtype: &str, ranges: &[Range<'_>]) -> u16 {
    let specificity = |range: &Range<'_>| match (range.kind, range.subtype) {
        ("*", "*") => Some(0),
        (given, "*") if given.eq_ignore_ascii_case(kind) => Some(1),
        (given, wanted) if given.eq_ignore_ascii_case(kind) && wanted.eq_ignore_ascii_case(subtype) => Some(2),
        _ => None,
    };
    let matching = ranges.iter().filter_map(|range| Some((specificity(range)?, range.quality)));
    matching.max().map_or(0, |(_, quality)| quality)
}

impl<'a> Range<'a> {
    /// Reads one range with its weight; `None` if it is malformed. Parameters other than `q` are ignored, since none of
    /// the service's media types depends on one.
    fn read(element: &'a str) -> Option<Self> {
        let mut parts = split(element, ';').map(|part| part.trim_matches([' ', '\t']));
        let (kind, subtype) = parts.next()?.split_once('/')?;
        if kind.is_empty() || subtype.is_empty() || (kind == "*" && subtype != "*") {
            return None;
        }
        let mut weights =
            parts.filter_map(|part| part.split_once('=').filter(|(name, _)| name.eq_ignore_ascii_case("q")));
        let quality = weights.next().map_or(Some(1000), |(_, weight)| thousandths(weight))?;
        Some(Self { kind, subtype, quality })
    }
}

/// Parses a weight (RFC 9110 §12.4.2): from `0` to `1`, with at most three decimals.
fn thousandths(weight: &str) -> Option<u16> {
    let (whole, decimals) = weight.split_once('.').unwrap_or((weight, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let decimals: u16 = format!("{decimals:0<3}").parse().ok()?;
    match (whole, decimals) {
        ("0", decimals) => Some(decimals),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

/// Splits a list, except at separators in quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |letter| {
        if escaped {
            escaped = false;
            return false;
        }
        match letter {
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => return letter == separator && !quoted,
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn prefers(fields: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(ACCEPT, HeaderValue::from_str(field).expect("a header's value"));
        }
        prefers_page(&headers)
    }

    #[test]
    fn browsers_get_pages() {
        for browser in [
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "text/html, */*; q=0.01",
            "TEXT/HTML",
            "text/*",
            "text/html;charset=utf-8",
            "application/json;q=0.2, text/html;q=0.201",
            "application/json;q=0, application/problem+json;q=0, */*",
        ] {
            assert!(prefers(&[browser]), "{browser}");
        }
        assert!(prefers(&["application/json;q=0.5", "text/html"]), "several headers are one list");
    }

    #[test]
    fn programs_and_ties_get_json() {
        for program in [
            "",
            "*/*",
            "application/json",
            "application/problem+json, text/html",
            "application/json, text/plain, */*",
            "text/html;q=0.5, application/json",
            "text/html;q=0, */*",
            "text/html;q=2",
            "text/html;q=0.1234",
            "text/html;q=",
            "text/html;q=-1",
            "text",
            "/html",
            "text/",
            "*/html",
            "text/plain;x=\",text/html,\"",
            "text/plain;x=\"\\\",text/html\"",
        ] {
            assert!(!prefers(&[program]), "{program}");
        }
        assert!(!prefers(&[]));
    }

    fn range() -> impl Strategy<Value = (&'static str, u16)> {
        let kinds = [
            "text/html",
            "text/*",
            "*/*",
            "application/json",
            "application/*",
            "application/problem+json",
            "image/png",
        ];
        (prop::sample::select(kinds.to_vec()), 0..=1000_u16)
    }

    /// A second implementation: the first of the matching ranges, by specificity and then by weight.
    fn expected(ranges: &[(&str, u16)]) -> bool {
        let of = |names: [&str; 3]| {
            let of_name =
                |name| ranges.iter().filter(move |(given, _)| *given == name).map(|(_, quality)| *quality).max();
            names.into_iter().find_map(of_name).unwrap_or(0)
        };
        of(["text/html", "text/*", "*/*"])
            > of(["application/json", "application/*", "*/*"]).max(of([
                "application/problem+json",
                "application/*",
                "*/*",
            ]))
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[ -~\\t]{0,300}") {
            prefers(&[&text]);
        }

        #[test]
        fn the_most_specific_range_decides_and_their_order_does_not(
            ranges in prop::collection::vec(range(), 0..6),
            space in prop::sample::select(vec!["", " ", "\t "]),
            upper in any::<bool>(),
        ) {
            let weight = |quality: u16| if quality == 1000 { "1".to_owned() } else { format!("0.{quality:03}") };
            let spelt = |(name, quality): &(&str, u16)| {
                let range = format!("{name}{space};{space}q={}", weight(*quality));
                if upper { range.to_uppercase() } else { range }
            };
            let mut fields: Vec<String> = ranges.iter().map(spelt).collect();
            let expected = expected(&ranges);
            prop_assert_eq!(prefers(&[&fields.join(&format!("{space},"))]), expected);
            fields.reverse();
            prop_assert_eq!(prefers(&fields.iter().map(String::as_str).collect::<Vec<_>>()), expected);
        }
    }
}
