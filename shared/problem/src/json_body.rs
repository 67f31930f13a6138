//! Request bodies: JSON objects whose members are taken one by one, so that all violations are reported at once.
//! Unknown members are violations. A member that must be passed on byte for byte is taken as text.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use base::Time;

use crate::{
    Members, Pointer, Problem, Rule, Violation, Violations,
    near::{self, MAX_COMPARED},
    private_names, surrogates, time,
};

/// The largest body that is read, in bytes. It is several times the size of the largest event, so that the response to
/// a slightly larger event states the event limit rather than this one.
pub const MAX_BYTES: usize = 1024 * 1024;

/// The deepest nesting of a body. Deeper bodies break receivers' parsers.
pub const MAX_DEPTH: usize = 100;

/// The length of the longest integer whose digits are written out: more than any integer type has.
const LONGEST_INTEGER: usize = 40;

/// Checks the body of an operation without input: it must be absent, or an object without members.
pub fn no_input(body: &[u8]) -> Result<(), Problem> {
    if body.trim_ascii().is_empty() { Ok(()) } else { JsonBody::read(body)?.finish() }
}

/// A reader of a JSON object.
#[derive(Debug)]
pub struct JsonBody<'a> {
    members: Vec<(String, &'a RawValue)>,
    /// The names that were requested from the reader.
    known: Vec<&'static str>,
    /// The violations found so far.
    pub violations: Violations,
}

impl<'a> JsonBody<'a> {
    /// Reads the body. Fails at once if it is not a JSON object in UTF-8.
    ///
    /// A byte order mark is ignored, as RFC 8259 §8.1 allows: editors and older .NET clients write one.
    pub fn read(body: &'a [u8]) -> Result<Self, Problem> {
        if body.len() > MAX_BYTES {
            return Err(Problem::too_large("The body", MAX_BYTES));
        }
        let body = without_byte_order_mark(body);
        let text =
            std::str::from_utf8(body).map_err(|_| Violation::whole_body(Rule::InvalidFormat, "must be valid UTF-8"))?;
        if text.trim().is_empty() {
            return Err(Violation::whole_body(Rule::Required, "must be a JSON object, but is empty").into());
        }
        if nests_deeper_than(MAX_DEPTH, text) {
            let detail = format!("must not be nested deeper than {MAX_DEPTH} levels");
            return Err(Violation::whole_body(Rule::TooLong, detail).into());
        }
        let Members { members, doubled } = serde_json::from_str(text).map_err(|error| {
            let is_well_formed = || serde_json::from_str::<&RawValue>(text).is_ok();
            if error.is_syntax() && !surrogates::unpaired(text).is_empty() && is_well_formed() {
                // The surrogate is in a member's name: one in a value is found when the value is read.
                let detail = format!("has a member with an invalid name: a name {}", surrogates::MESSAGE);
                return Violation::whole_body(Rule::InvalidFormat, detail);
            }
            // Only the position and the kind of the error are stated, since serde's message could repeat a value.
            let line = error.line();
            let column = error.column();
            let (rule, what) = match error.is_data() {
                true => (Rule::InvalidType, "must be a JSON object"),
                false => (Rule::InvalidFormat, "must be well-formed JSON"),
            };
            Violation::whole_body(rule, format!("{what} (line {line}, column {column})"))
        })?;
        let mut violations = Violations::default();
        for member in doubled {
            violations.add(member.as_str(), Rule::Duplicate, "must be given only once");
        }
        for pointer in private_names::find(text) {
            violations.add(pointer, Rule::NotAllowed, private_names::MESSAGE);
        }
        Ok(Self { members, known: Vec::new(), violations })
    }

    /// Takes a member's text as it was sent, including `null`.
    pub fn take_raw(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        self.take(name)
    }

    /// Takes a member if it is `null` and returns whether it was.
    pub fn take_null(&mut self, name: &'static str) -> bool {
        self.known.push(name);
        let is_null = self.members.iter().any(|(member, json)| member == name && json.get() == "null");
        if is_null {
            self.take(name);
        }
        is_null
    }

    fn take(&mut self, name: &str) -> Option<&'a str> {
        let position = self.members.iter().position(|(member, _)| member == name)?;
        Some(self.members.swap_remove(position).1.get())
    }

    /// Takes an optional member, which must not be null; `what` describes the expected value in the violation. An
    /// integer is any number without a fraction, such as `2.0`. Duplicate members within the value are violations.
    pub fn optional<T: DeserializeOwned>(&mut self, name: &'static str, what: &str) -> Option<T> {
        let text = self.take_raw(name)?;
        if self.violations.note_duplicates(name, text) {
            return None;
        }
        let value = serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&plain_integer(text)?).ok());
        // A type that accepts 1 accepts integers, so it refuses this one because of its size.
        let is_out_of_range = || plain_integer(text).is_some() && serde_json::from_str::<T>("1").is_ok();
        let rule = if value.is_none() && is_out_of_range() { Rule::OutOfRange } else { Rule::InvalidType };
        self.value_or_violation(name, text, value, rule, what)
    }

    /// Takes an optional member that is one of several words. Serde would also accept an object for a word.
    pub fn optional_word<T: DeserializeOwned>(&mut self, name: &'static str, what: &str) -> Option<T> {
        let json = self.take_raw(name)?;
        self.value_or_violation(name, json, if_begins('"', json), Rule::InvalidType, what)
    }

    /// Takes an optional member that is an object. Serde would also accept an array for a struct.
    pub fn optional_object<T: DeserializeOwned>(&mut self, name: &'static str, what: &str) -> Option<T> {
        let json = self.take_raw(name)?;
        if self.violations.note_duplicates(name, json) {
            return None;
        }
        self.value_or_violation(name, json, if_begins('{', json), Rule::InvalidType, what)
    }

    /// Takes an optional member that is a list of objects; `what` describes one of them.
    pub fn optional_objects<T: DeserializeOwned>(&mut self, name: &'static str, what: &str) -> Option<Vec<T>> {
        let json = self.take_raw(name)?;
        if self.violations.note_duplicates(name, json) || self.violations.note_surrogates(name, json) {
            return None;
        }
        let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(json) else {
            self.violations.add(name, Rule::InvalidType, format!("must be a list; each element must be {what}"));
            return None;
        };
        let read: Vec<Option<T>> = elements.iter().map(|element| if_begins('{', element.get())).collect();
        for (position, _) in read.iter().enumerate().filter(|(_, object)| object.is_none()) {
            self.violations.add(Pointer::from(name).at(position), Rule::InvalidType, format!("must be {what}"));
        }
        read.into_iter().collect()
    }

    /// Takes an optional member that is an object of strings. A duplicate name in it is a violation.
    pub fn optional_texts(&mut self, name: &'static str, what: &str) -> Option<BTreeMap<String, String>> {
        let json = self.take_raw(name)?;
        let texts = serde_json::from_str::<Members<'_>>(json).ok().and_then(|Members { members, doubled }| {
            for member in doubled {
                self.violations.add(Pointer::from(name).member(&member), Rule::Duplicate, "must be given only once");
            }
            members.into_iter().map(|(member, text)| Some((member, serde_json::from_str(text.get()).ok()?))).collect()
        });
        self.value_or_violation(name, json, texts, Rule::InvalidType, what)
    }

    /// Returns the value that was read from a member's JSON, or adds a violation that says why it could not be read.
    fn value_or_violation<T>(&mut self, name: &str, json: &str, value: Option<T>, rule: Rule, what: &str) -> Option<T> {
        if value.is_none() && !self.violations.note_surrogates(name, json) {
            self.violations.add(name, rule, format!("must be {what}"));
        }
        value
    }

    /// Takes a required member.
    pub fn required<T: DeserializeOwned>(&mut self, name: &'static str, what: &str) -> Option<T> {
        if !self.has(name) {
            self.known.push(name);
            self.violations.add(name, Rule::Required, format!("is missing; it must be {what}"));
            return None;
        }
        self.optional(name, what)
    }

    /// Takes an optional time.
    pub fn optional_time(&mut self, name: &'static str) -> Option<Time> {
        let value = self.take_raw(name)?;
        self.violations.note(name, Rule::InvalidFormat, time::of_body(value))
    }

    /// Takes a required time.
    pub fn required_time(&mut self, name: &'static str) -> Option<Time> {
        if !self.has(name) {
            self.violations.add(name, Rule::Required, time::is_missing());
        }
        self.optional_time(name)
    }

    /// Whether the body has a member with this name that has not been taken yet.
    pub fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(member, _)| member == name)
    }

    /// Refuses a member, if present, for this reason. Use it to explain members that clients are likely to send by
    /// mistake.
    pub fn refuse(&mut self, name: &str, why: &str) {
        if self.take(name).is_some() {
            self.violations.add(name, Rule::NotAllowed, why);
        }
    }

    /// Takes a required string of at least one character.
    pub fn required_text(&mut self, name: &'static str) -> Option<String> {
        let text = self.required::<String>(name, "a string that is not empty")?;
        if text.is_empty() {
            self.violations.add(name, Rule::Required, "must not be empty");
            return None;
        }
        Some(text)
    }

    /// All violations, including one for each member that was not taken.
    pub fn into_violations(mut self) -> Violations {
        for (position, (member, _)) in self.members.into_iter().enumerate() {
            let known = if position < MAX_COMPARED { &self.known[..] } else { &[] };
            let message = near::not_known("member", &member, known);
            self.violations.add(member.as_str(), Rule::Unknown, message);
        }
        self.violations
    }

    /// Fails with all violations, if there are any.
    pub fn finish(self) -> Result<(), Problem> {
        self.into_violations().check()
    }

    /// Fails like [`finish`](Self::finish), or returns the value that was read from the members.
    pub fn finish_with<T>(self, value: Option<T>) -> Result<T, Problem> {
        self.finish()?;
        value.ok_or_else(|| Problem::internal("a value is missing without a violation"))
    }
}

/// The value of this JSON, if it begins like this: `"` for a string, `{` for an object.
fn if_begins<T: DeserializeOwned>(begin: char, json: &str) -> Option<T> {
    json.starts_with(begin).then(|| serde_json::from_str(json).ok())?
}

/// The digits of a JSON number that is an integer: one whose exact value has no fraction, in any notation. `2.0` and
/// `1e3` are integers in JSON Schema 2020-12 (§4.2.3), and clients that have only doubles write them. `None` for other
/// values. A number of more than `LONGEST_INTEGER` digits is left as it was written: no integer type can hold it.
pub fn plain_integer(json: &str) -> Option<String> {
    let json = json.trim();
    // `RawValue` accepts numbers beyond a double's range as well.
    let is_number = json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(json).is_ok();
    let (mantissa, exponent) = is_number.then(|| json.split_once(['e', 'E']).unwrap_or((json, "0")))?;
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".to_owned());
    }
    // How many zeros follow the significant digits; negative if some of these are behind the point.
    let shift = i128::try_from(digits.len() - significant.len()).ok()? - i128::try_from(fraction.len()).ok()?;
    let zeros = match exponent.parse::<i64>() {
        Ok(exponent) => i128::from(exponent) + shift,
        Err(_) if exponent.starts_with('-') => return None,
        Err(_) => return Some(json.to_owned()),
    };
    if zeros < 0 {
        return None;
    }
    let significant = significant.trim_start_matches('0');
    let zeros = usize::try_from(zeros).ok().filter(|zeros| significant.len().saturating_add(*zeros) <= LONGEST_INTEGER);
    Some(zeros.map_or_else(|| json.to_owned(), |zeros| format!("{sign}{significant}{}", "0".repeat(zeros))))
}

/// The text without the byte order mark at its beginning, if it has one.
pub fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Whether brackets outside of strings nest deeper than the limit. The JSON parser finds all other faults.
fn nests_deeper_than(limit: usize, json: &str) -> bool {
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
#[path = "json_body_tests.rs"]
mod tests;
