//! Bodies that operations receive, member by member.

use super::*;
use crate::{MAX_POINTER, violations::MAX_VIOLATIONS};
use proptest::prelude::*;

fn violations(problem: Problem) -> Vec<String> {
    problem.violations().iter().map(Violation::name).collect()
}

#[test]
fn every_violation_is_found_at_once() {
    let mut body = JsonBody::read(br#"{"name": 1, "enabled": null, "nmae": "x", "other": 2}"#).expect("an object");
    assert_eq!(body.required::<String>("name", "a string"), None);
    assert_eq!(body.optional::<bool>("enabled", "true or false"), None);
    assert_eq!(body.required::<String>("eventUrl", "a string"), None);
    let mut fields = violations(body.finish().expect_err("violations"));
    fields.sort();
    assert_eq!(fields, ["enabled", "eventUrl", "name", "nmae", "other"]);
}

#[test]
fn the_first_unknown_members_get_suggestions_and_the_rest_cost_little() {
    let many = (0..1_000).map(|number| format!("\"eventUrl{number}\":1")).collect::<Vec<_>>().join(",");
    let text = format!("{{{many}}}");
    let mut body = JsonBody::read(text.as_bytes()).expect("an object");
    body.required::<String>("eventUrl", "an address");
    let violations = body.into_violations().into_list();
    let hinted = violations.iter().filter(|violation| violation.detail.ends_with(" (did you mean eventUrl?)")).count();
    assert_eq!((violations.len(), hinted), (MAX_VIOLATIONS, MAX_COMPARED));
}

#[test]
fn a_refused_member_is_one_violation_with_its_reason() {
    let mut body = JsonBody::read(br#"{"timestamp":1}"#).expect("an object");
    body.refuse("timestamp", "is set by the service");
    body.refuse("id", "is set by the service");
    let violations = body.into_violations().into_list();
    let expected = Violation::body("timestamp", Rule::NotAllowed, "is set by the service");
    assert_eq!(violations, [expected]);
}

#[test]
fn the_code_of_a_value_names_its_fault() {
    let rule = |json: &str| {
        let text = format!(r#"{{"number":{json}}}"#);
        let mut body = JsonBody::read(text.as_bytes()).expect("an object");
        body.required::<u8>("number", "a number");
        body.into_violations().into_list().pop().map(|violation| violation.rule)
    };
    assert_eq!(["1", "256", "-1.0"].map(rule), [None, Some(Rule::OutOfRange), Some(Rule::OutOfRange)]);
    assert_eq!(["1.5", "\"1\"", "null"].map(rule), [Some(Rule::InvalidType); 3]);
    let mut absent = JsonBody::read(b"{}").expect("an object");
    absent.required::<u8>("number", "a number");
    assert_eq!(absent.into_violations().into_list()[0].rule, Rule::Required);
}

#[test]
fn a_member_reaches_its_taker_byte_for_byte() {
    let data = r#"{ "b" : 1.0e+10,"a":12345678901234567890.10, "u":"\u00e9é" , "a":1 }"#;
    let text = format!(r#"{{"type": "x", "data": {data}}}"#);
    let mut body = JsonBody::read(text.as_bytes()).expect("an object");
    assert_eq!(body.take_raw("data"), Some(data));
}

#[test]
fn an_unpaired_surrogate_is_the_reason_and_has_its_path() {
    let reasons = |body: &str, read: fn(&mut JsonBody<'_>)| {
        let problem = match JsonBody::read(body.as_bytes()) {
            Ok(mut body) => {
                read(&mut body);
                body.finish().expect_err("refused")
            }
            Err(problem) => problem,
        };
        let list = problem.violations();
        assert!(list.iter().all(|violation| violation.detail.contains("unpaired surrogate")), "{list:?}");
        list.iter().map(|violation| violation.pointer.as_str().to_owned()).collect::<Vec<_>>()
    };
    let text = |body: &mut JsonBody<'_>| drop(body.required::<String>("a", "a string"));
    assert_eq!(reasons(r#"{"a":"x\ud800"}"#, text), ["/a"]);
    let list = |body: &mut JsonBody<'_>| drop(body.optional::<Vec<BTreeMap<String, String>>>("a", "a list"));
    assert_eq!(
        reasons(r#"{"a":[{"b":"c"},{"b":"\udc00"},{"\ud800":"\ud83d\ude00"}]}"#, list),
        ["/a/1/b", "/a/2/\\ud800"]
    );
    let texts = |body: &mut JsonBody<'_>| drop(body.optional_texts("a", "an object of texts"));
    assert_eq!(reasons(r#"{"a":{"b":"\ud800","\ud800":""}}"#, texts), ["/a/b", "/a/\\ud800"]);
    assert_eq!(reasons(r#"{"a":1,"\ud800":1}"#, text), [""]);
    let mut other = JsonBody::read(br#"{"a":"\ud83d\ude00","b":"\ud800"}"#).expect("an object");
    assert_eq!(other.required::<String>("a", "a string").as_deref(), Some("😀"));
    assert_eq!(violations(other.finish().expect_err("b is unknown")), ["b"]);
}

#[test]
fn a_body_that_is_not_an_object_is_refused() {
    for bad in ["", " ", "[]", "1", "null", "{", r#"{"a":}"#, r#"{"a":1}x"#, "\u{feff}", "\u{feff}\u{feff}{}"] {
        assert_eq!(violations(JsonBody::read(bad.as_bytes()).expect_err(bad)), ["body"], "{bad}");
    }
    assert_eq!(violations(JsonBody::read(b"{\"a\": \"\xff\"}").expect_err("not UTF-8")), ["body"]);
    let mut doubled = JsonBody::read(br#"{"a":1,"a":2}"#).expect("read");
    doubled.take_raw("a");
    assert_eq!(violations(doubled.finish().expect_err("doubled")), ["a"]);
}

#[test]
fn a_member_that_the_parser_would_misread_is_refused_at_every_depth() {
    let wrapped = r#"{"data":{"a":[{"$serde_json::private::RawValue":"{\"valid\":1}"}]}}"#;
    let mut body = JsonBody::read(wrapped.as_bytes()).expect("an object");
    body.take_raw("data");
    let violations = body.into_violations().into_list();
    let found: Vec<_> = violations.iter().map(|violation| (violation.pointer.as_str(), violation.rule)).collect();
    assert_eq!(found, [("/data/a/0/$serde_json::private::RawValue", Rule::NotAllowed)]);
}

#[test]
fn a_byte_order_mark_before_the_body_is_ignored() {
    let mut body = JsonBody::read("\u{feff}{\"name\":\"x\"}".as_bytes()).expect("an object");
    assert_eq!(body.required_text("name").as_deref(), Some("x"));
    assert!(no_input("\u{feff}{}".as_bytes()).is_ok());
}

#[test]
fn an_integer_is_a_number_without_a_fraction_however_it_is_written() {
    let read = |number: &str| {
        let text = format!(r#"{{"version":{number}}}"#);
        let mut body = JsonBody::read(text.as_bytes()).expect("an object");
        let version = body.optional::<u64>("version", "an integer");
        body.finish().ok().and(version)
    };
    for (written, number) in [
        ("2", 2),
        ("2.0", 2),
        ("1e3", 1000),
        ("1E+3", 1000),
        ("1.5e1", 15),
        ("10e-1", 1),
        ("-0.0", 0),
        ("-0", 0),
        ("9007199254740993.0", 9_007_199_254_740_993),
        ("9007199254740993e0", 9_007_199_254_740_993),
        ("0.0018446744073709551615E22", 18_446_744_073_709_551_615),
        ("0e999999999999999999999", 0),
        ("0.00e-5", 0),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(read(written), Some(number), "{written}");
    }
    let bad = [
        "2.5",
        "-1.0",
        "1e-1",
        "1e300",
        "1.00000000000000001",
        "1.00000000000000001e0",
        "1e-400",
        "10e-99999999999999999999",
        "1e999999999",
        "4503599627370496.5",
        "18446744073709551616",
        "\"2\"",
        "\"2.0\"",
        "true",
        "null",
        "[2.0]",
    ];
    for bad in bad {
        assert_eq!(read(bad), None, "{bad}");
    }
    let mut text = JsonBody::read(br#"{"name":2.0}"#).expect("an object");
    assert_eq!(text.optional::<String>("name", "a string"), None, "a number is no text");
}

#[test]
fn doubled_names_in_an_object_of_texts_are_not_silently_lost() {
    let mut body =
        JsonBody::read(br#"{"headers":{"X-A":"1","X-A":"2"},"other":{"X-A":1},"list":[]}"#).expect("an object");
    body.optional_texts("headers", "an object of texts");
    body.optional_texts("other", "an object of texts");
    body.optional_texts("list", "an object of texts");
    assert_eq!(violations(body.finish().expect_err("violations")), ["headers.X-A", "other", "list"]);
}

#[test]
fn an_integer_that_is_too_large_is_out_of_range_however_it_is_written() {
    let nines = "9".repeat(100_000);
    let large = ["1e16", "-1E+400", "1e999999999", "1e99999999999999999999", "0.1e18446744073709551616", &nines];
    for number in large {
        let text = format!(r#"{{"limit":{number}}}"#);
        let mut body = JsonBody::read(text.as_bytes()).expect("an object");
        assert_eq!(body.optional::<u16>("limit", "a number"), None, "{number:.20}");
        assert_eq!(body.into_violations().into_list()[0].rule, Rule::OutOfRange, "{number:.20}");
    }
    for (written, digits) in [("1e16", "10000000000000000"), ("-1.50e2", "-150"), ("1e999999999", "1e999999999")] {
        assert_eq!(plain_integer(written).as_deref(), Some(digits));
    }
    for other in ["1e-999999999", "1e-99999999999999999999", "01", "1.", "-", "", "1 2", "true", "\"1\""] {
        assert_eq!(plain_integer(other), None, "{other}");
    }
}

#[test]
fn nothing_within_a_value_is_silently_lost() {
    let mut body = JsonBody::read(br#"{"key":{"a":1,"b":[{"c":null}],"a":2},"list":[null]}"#).expect("an object");
    assert_eq!(body.required::<serde_json::Value>("key", "an object"), None);
    assert_eq!(body.optional::<Vec<String>>("list", "a list"), None);
    assert_eq!(violations(body.finish().expect_err("violations")), ["key.a", "list"]);
}

#[test]
fn a_word_is_a_string() {
    #[derive(Debug, PartialEq, Eq, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        None,
    }
    let read = |json: &str| {
        let text = format!(r#"{{"word": {json} }}"#);
        let mut body = JsonBody::read(text.as_bytes()).expect("an object");
        let word = body.optional_word::<Word>("word", "`none`");
        (word, body.into_violations().into_list().pop().map(|violation| violation.rule))
    };
    assert_eq!(read("\"none\""), (Some(Word::None), None));
    for bad in [r#"{"none":null}"#, r#"{"none":{}}"#, r#"["none"]"#, r#""None""#, "null", "1"] {
        assert_eq!(read(bad), (None, Some(Rule::InvalidType)), "{bad}");
    }
}

#[test]
fn an_array_is_no_object() {
    #[derive(Debug, PartialEq, Eq, serde::Deserialize)]
    struct Named {
        name: String,
    }
    let named = |name: &str| Named { name: name.to_owned() };
    let text = r#"{"a":{"name":"x"},"b":["x"],"c":[{"name":"x"},["x"],{},null],"d":[{"name":"y"}],"e":{}}"#;
    let mut body = JsonBody::read(text.as_bytes()).expect("an object");
    let objects = ["a", "b"].map(|name| body.optional_object::<Named>(name, "an object"));
    assert_eq!(objects, [Some(named("x")), None]);
    let lists = ["c", "d", "e"].map(|name| body.optional_objects::<Named>(name, "an object with a name"));
    assert_eq!(lists, [None, Some(vec![named("y")]), None]);
    assert_eq!(violations(body.finish().expect_err("violations")), ["b", "c[1]", "c[2]", "c[3]", "e"]);
}

#[test]
fn a_body_without_input_is_absent_or_an_empty_object() {
    for good in ["", " \n", "{}", " { } "] {
        assert!(no_input(good.as_bytes()).is_ok(), "{good}");
    }
    for bad in ["[]", "null", "{", r#"{"scope":"x"}"#] {
        assert!(no_input(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn a_body_beyond_the_limits_is_neither_parsed_nor_echoed() {
    let many = (0..100_000).map(|number| format!("\"m{number}\":1")).collect::<Vec<_>>().join(",");
    let problem = JsonBody::read(format!("{{{many}}}").as_bytes()).expect_err("too large");
    assert_eq!(problem.kind, crate::ProblemKind::PayloadTooLarge);
    let some = (0..10_000).map(|number| format!("\"m{number}\":1")).collect::<Vec<_>>().join(",");
    let body = format!("{{{some},\"{}\":1}}", "n".repeat(1000));
    let listed = violations(JsonBody::read(body.as_bytes()).expect("an object").finish().expect_err("violations"));
    assert_eq!(listed.len(), MAX_VIOLATIONS);
    assert!(listed.iter().all(|name| name.len() <= MAX_POINTER));
}

#[test]
fn nesting_is_bounded_and_brackets_in_strings_do_not_count() {
    let nested = |depth: usize| format!(r#"{{"data":{}1{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert!(JsonBody::read(nested(MAX_DEPTH).as_bytes()).is_ok());
    assert!(JsonBody::read(nested(MAX_DEPTH + 1).as_bytes()).is_err());
    assert!(JsonBody::read(nested(100_000).as_bytes()).is_err());
    let text = format!(r#"{{"data":"\"{}"}}"#, "[".repeat(1000));
    assert!(JsonBody::read(text.as_bytes()).is_ok());
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = JsonBody::read(&bytes);
    }
}
