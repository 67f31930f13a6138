//! An event's subject, such as a booking number, which people use to find its deliveries.

use std::{borrow::Cow, collections::BTreeMap, str::FromStr};

use serde_json::value::RawValue;

use crate::subscriptions::filter::decimal::Decimal;
use base::{Environment, FromEnvironment};
use problem::{JsonBody, Rule};

/// The maximum number of characters in a subject.
pub const MAX_CHARACTERS: usize = 256;

/// The members of an event's data that may contain its subject; the first one that is a string or a number counts. The
/// deployment chooses them in `SUBJECT_MEMBERS`, since the platform knows the identifiers that people look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectMembers(Vec<String>);

/// The maximum number of members that a deployment may list.
const MAX_MEMBERS: usize = 20;

impl Default for SubjectMembers {
    /// The identifiers of a booking, a payment and a property, the most specific first.
    fn default() -> Self {
        let names = [
            "bookingIdentifier",
            "reservationIdentifier",
            "bookingNumber",
            "confirmationNumber",
            "paymentIdentifier",
            "propertyIdentifier",
        ];
        Self(names.map(str::to_owned).to_vec())
    }
}

impl FromStr for SubjectMembers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
        let is_name = |name: &String| {
            !name.is_empty() && name.chars().all(|sign| sign.is_ascii_alphanumeric() || ['_', '-'].contains(&sign))
        };
        if names.len() > MAX_MEMBERS || !names.iter().all(is_name) {
            return Err(format!("not a list of 1 to {MAX_MEMBERS} names, separated by commas"));
        }
        Ok(Self(names))
    }
}

impl FromEnvironment for SubjectMembers {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        environment.parsed("SUBJECT_MEMBERS", Self::default())
    }
}

impl SubjectMembers {
    /// The subject within the data: the first of these members that is a string or a number, or else the value at the
    /// event type's JSON Pointer.
    pub(super) fn subject_of(&self, data: &RawValue, pointer: Option<&str>) -> Option<String> {
        let members = members_of(data)?;
        let listed = self.0.iter().find_map(|name| text_of(members.get(name.as_str())?));
        listed.or_else(|| text_of(value_at(&members, pointer?)?))
    }
}

type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

fn members_of(object: &RawValue) -> Option<Members<'_>> {
    serde_json::from_str(object.get()).ok()
}

/// The value at a JSON Pointer; the build refuses pointers with escapes.
fn value_at<'a>(members: &Members<'a>, pointer: &str) -> Option<&'a RawValue> {
    let path = pointer.strip_prefix('/')?;
    match path.find('/') {
        None => members.get(path).copied(),
        Some(end) => value_at(&members_of(members.get(&path[..end])?)?, &path[end..]),
    }
}

/// The value as a subject, if it is a string or a number.
fn text_of(value: &RawValue) -> Option<String> {
    let value = value.get();
    let text = match value.as_bytes().first()? {
        b'"' => serde_json::from_str(value).ok()?,
        b'-' | b'0'..=b'9' => text_of_number(value)?,
        _ => return None,
    };
    is_subject(&text).then_some(text)
}

/// The subject for a number: the shortest way to write its value, so that `20417.0` and `2.0417E4` are the booking
/// 20417. Beyond 2⁵³, the publisher's digits: a program with doubles may have rounded the number, and people look for
/// the digits that were sent. `None` if it is too long.
fn text_of_number(json: &str) -> Option<String> {
    let number = Decimal::read(json);
    if number.is_up_to_exact_double() { number.plain(MAX_CHARACTERS) } else { Some(json.to_owned()) }
}

/// Whether a string can be a subject.
pub fn is_subject(text: &str) -> bool {
    (1..=MAX_CHARACTERS).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// Takes the subject that the publisher provides, if any.
pub(super) fn take(body: &mut JsonBody<'_>) -> Option<String> {
    let subject = body.optional::<String>("subject", "a string")?;
    if !is_subject(&subject) {
        let detail = format!("must have 1 to {MAX_CHARACTERS} characters, without control characters");
        body.violations.add("subject", Rule::InvalidFormat, detail);
    }
    Some(subject)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn subject_of(data: &str) -> Option<String> {
        let data = RawValue::from_string(data.to_owned()).expect("JSON");
        SubjectMembers::default().subject_of(&data, None)
    }

    #[test]
    fn the_type_names_the_subject_where_no_listed_member_does() {
        let of = |pointer, data: &str| {
            let data = RawValue::from_string(data.to_owned()).expect("JSON");
            SubjectMembers::default().subject_of(&data, Some(pointer))
        };
        let unit = r#"{"unitIdentifier":"U-7","unit":{"code":12,"inner":{}}}"#;
        assert_eq!(of("/unitIdentifier", unit).as_deref(), Some("U-7"));
        assert_eq!(of("/unit/code", unit).as_deref(), Some("12"));
        for pointer in ["/unit", "/unit/inner", "/unit/code/deeper", "/missing", "/missing/deeper"] {
            assert_eq!(of(pointer, unit), None, "{pointer}");
        }
        let both = r#"{"unitIdentifier":"U-7","propertyIdentifier":"P-1"}"#;
        assert_eq!(of("/unitIdentifier", both).as_deref(), Some("P-1"), "the deployment decides first");
    }

    #[test]
    fn the_first_listed_member_that_is_there_names_the_subject() {
        let of = |data| subject_of(data).unwrap_or_default();
        assert_eq!(of(r#"{"propertyIdentifier":"p-1","bookingNumber":"B-1001"}"#), "B-1001");
        assert_eq!(of(r#"{"bookingNumber":1152921504606846977}"#), "1152921504606846977");
        assert_eq!(of(r#"{"bookingNumber":null,"propertyIdentifier":"p-1"}"#), "p-1");
        for data in ["{}", r#"{"bookingNumber":""}"#, r#"{"bookingNumber":{}}"#, r#"{"data":{"bookingNumber":"1"}}"#] {
            assert_eq!(subject_of(data), None, "{data}");
        }
    }

    #[test]
    fn the_texts_of_one_number_are_one_subject() {
        let of = |number: &str| subject_of(&format!(r#"{{"bookingNumber": {number} }}"#));
        for number in ["20417", "20417.0", "20417.00", "2.0417E4", "204170e-1", "0.20417e+5"] {
            assert_eq!(of(number).as_deref(), Some("20417"), "{number}");
        }
        for (number, subject) in [
            ("-0", Some("0")),
            ("-7.50", Some("-7.5")),
            ("1e-2", Some("0.01")),
            ("9007199254740992.0", Some("9007199254740992")),
            ("9007199254740993.0", Some("9007199254740993.0")),
            ("1E20", Some("1E20")),
            ("1e-254", Some(&*format!("0.{}1", "0".repeat(253)))),
            ("1e-255", None),
            ("1e-99999999999999999999", None),
        ] {
            assert_eq!(of(number).as_deref(), subject, "{number}");
        }
        assert_eq!(subject_of(r#"{"bookingNumber":1e-300,"propertyIdentifier":"p-1"}"#).as_deref(), Some("p-1"));
    }

    proptest! {
        #[test]
        fn a_number_up_to_two_to_the_53_has_one_subject(whole in 0..=1_u64 << 53, zeros in 0_usize..5, is_negative: bool) {
            let sign = if is_negative && whole > 0 { "-" } else { "" };
            let of = |number: String| subject_of(&format!(r#"{{"bookingNumber":{number}}}"#));
            let plain = Some(format!("{sign}{whole}"));
            prop_assert_eq!(of(format!("{sign}{whole}.0{}", "0".repeat(zeros))), plain.clone());
            prop_assert_eq!(of(format!("{sign}{whole}{}E-{zeros}", "0".repeat(zeros))), plain);
        }

        #[test]
        fn no_number_of_data_makes_a_subject_that_is_none(number in "-?(0|[1-9][0-9]{0,300})(\\.[0-9]{1,300})?([eE][+-]?[0-9]{1,30})?") {
            let subject = subject_of(&format!(r#"{{"bookingNumber":{number}}}"#));
            prop_assert!(subject.is_none_or(|subject| is_subject(&subject)));
        }
    }

    #[test]
    fn a_subject_is_a_short_text_without_control_characters() {
        assert!(is_subject("B-1001") && is_subject(&"ü".repeat(MAX_CHARACTERS)));
        assert!(!is_subject("") && !is_subject("a\u{7}b"));
        assert!(!is_subject(&"x".repeat(MAX_CHARACTERS + 1)));
    }

    #[test]
    fn the_members_are_a_list_of_names() {
        assert_eq!("a, b".parse(), Ok(SubjectMembers(vec!["a".into(), "b".into()])));
        for text in ["", ",", "a,", "§", "a b", &["a"; MAX_MEMBERS + 1].join(",")] {
            assert!(text.parse::<SubjectMembers>().is_err(), "{text}");
        }
    }
}
