//! A query's parameters, taken one by one, so that all violations are reported at once. Unknown parameters are
//! violations, since a misspelt filter must not pass as no filter.

use std::collections::BTreeMap;

use base::Time;

use crate::{
    InputPart, Problem, Rule, Violations,
    near::{self, MAX_COMPARED},
    time,
};

/// A reader of a query.
#[derive(Debug)]
pub struct Query<'a> {
    parameters: BTreeMap<&'a str, Vec<&'a str>>,
    /// The names that were requested from the reader.
    known: Vec<&'static str>,
    /// The violations found so far.
    pub violations: Violations,
}

impl<'a> Query<'a> {
    /// A reader of these decoded parameters.
    pub fn new(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut parameters = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in pairs {
            parameters.entry(name).or_default().push(value);
        }
        Self { parameters, known: Vec::new(), violations: Violations::of(InputPart::Query) }
    }

    /// Takes an optional parameter, which must not be repeated; `what` describes the expected value in the violation.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        what: &str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Option<T> {
        self.take(name, what, |_| Rule::InvalidFormat, read)
    }

    /// Takes an optional parameter that is a number in a range.
    pub fn number<T>(&mut self, name: &'static str, what: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let is_number = |text: &str| {
            let digits = text.strip_prefix('-').unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        self.take(name, what, |text| if is_number(text) { Rule::OutOfRange } else { Rule::InvalidType }, read)
    }

    /// Takes an optional parameter that is one of several words.
    pub fn one_of<T>(&mut self, name: &'static str, what: &str, read: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        self.take(name, what, |_| Rule::UnknownValue, read)
    }

    fn take<T>(
        &mut self,
        name: &'static str,
        what: &str,
        rule: impl FnOnce(&str) -> Rule,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Option<T> {
        self.known.push(name);
        match self.parameters.remove(name)?.as_slice() {
            [value] => self.violations.note(name, rule(value), read(value).ok_or_else(|| format!("must be {what}"))),
            _ => {
                self.violations.add(name, Rule::Duplicate, "must be given only once");
                None
            }
        }
    }

    /// Takes the number of items on a page, from 1 to `most`, in at most three digits; `default` if it is missing.
    pub fn limit(&mut self, default: usize, most: usize) -> usize {
        let within = |text: &str| {
            let limit =
                (text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())??;
            (1..=most).contains(&limit).then_some(limit)
        };
        self.number("limit", &format!("a number from 1 to {most}"), within).unwrap_or(default)
    }

    /// Takes an optional time.
    pub fn optional_time(&mut self, name: &'static str) -> Option<Time> {
        let text = self.optional(name, "a single string", Some)?;
        self.violations.note(name, Rule::InvalidFormat, time::of_query(text))
    }

    /// Takes an optional parameter that may be repeated and may have several values separated by commas. Duplicate
    /// values are dropped; `what` describes an expected value in the violation.
    pub fn list<T: PartialEq>(
        &mut self,
        name: &'static str,
        what: &str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Vec<T> {
        self.known.push(name);
        let mut list = Vec::new();
        for text in self.parameters.remove(name).into_iter().flatten().flat_map(|value| value.split(',')) {
            match read(text) {
                Some(value) if list.contains(&value) => {}
                Some(value) => list.push(value),
                None => {
                    self.violations.add(name, Rule::UnknownValue, format!("must be {what}"));
                    return Vec::new();
                }
            }
        }
        list
    }

    /// Fails with all violations, if there are any. A parameter that was not taken is unknown, which is a violation.
    pub fn finish(mut self) -> Result<(), Problem> {
        for (position, name) in self.parameters.into_keys().enumerate() {
            let known = if position < MAX_COMPARED { &self.known[..] } else { &[] };
            self.violations.add(name, Rule::Unknown, near::not_known("parameter", name, known));
        }
        self.violations.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_violation_is_found_at_once() {
        let mut query = Query::new([("a", "1"), ("b", "x"), ("c", "1"), ("c", "1"), ("d", ""), ("B", "1")]);
        let mut number = |name| query.optional(name, "a number", |text| text.parse::<u8>().ok());
        assert_eq!(["a", "b", "c", "d", "e"].map(&mut number), [Some(1), None, None, None, None]);
        let problem = query.finish().expect_err("violations");
        let violations = problem.violations();
        let found: Vec<_> = violations.iter().map(|found| (found.part, found.pointer.as_str(), found.rule)).collect();
        let expected =
            [("/b", Rule::InvalidFormat), ("/c", Rule::Duplicate), ("/d", Rule::InvalidFormat), ("/B", Rule::Unknown)];
        assert_eq!(found, expected.map(|(pointer, rule)| (InputPart::Query, pointer, rule)));
    }

    #[test]
    fn a_list_is_repeated_or_separated_by_commas_and_has_each_value_once() {
        let mut query =
            Query::new([("a", "1,2"), ("b", "1"), ("a", "3"), ("a", "2,1"), ("c", "1,"), ("d", ""), ("e", "1,x,y")]);
        let mut numbers = |name| query.list(name, "numbers", |text| text.parse::<u8>().ok());
        assert_eq!(["a", "b", "absent"].map(&mut numbers), [vec![1, 2, 3], vec![1], vec![]]);
        assert!(["c", "d", "e"].map(&mut numbers).iter().all(Vec::is_empty));
        let problem = query.finish().expect_err("violations");
        assert_eq!(problem.properties["violations"].as_array().map(Vec::len), Some(3), "one for each parameter");
    }

    #[test]
    fn a_number_is_out_of_its_range_or_no_number() {
        let mut query = Query::new([("a", "101"), ("b", "-1"), ("c", "x"), ("d", ""), ("e", "-"), ("f", "no")]);
        let mut number =
            |name| query.number(name, "1 to 100", |text| text.parse().ok().filter(|number| *number <= 100));
        assert_eq!(["a", "b", "c", "d", "e"].map(&mut number), [None::<u8>; 5]);
        assert_eq!(query.one_of("f", "`true` or `false`", |text| text.parse::<bool>().ok()), None);
        let violations = query.finish().expect_err("violations").violations();
        let rules: Vec<_> = violations.iter().map(|violation| violation.rule).collect();
        let [out, other] = [Rule::OutOfRange, Rule::InvalidType];
        assert_eq!(rules, [out, out, other, other, other, Rule::UnknownValue]);
    }

    #[test]
    fn a_limit_is_a_number_from_1_to_the_most() {
        for (text, number) in [("1", 1), ("25", 25), ("100", 100), ("007", 7)] {
            assert_eq!(Query::new([("limit", text)]).limit(20, 100), number);
        }
        assert_eq!(Query::new([]).limit(20, 100), 20);
        for text in ["", "0", "101", "-1", "+1", "1.0", "1e1", " 1", "١", "99999999999999999999", "ten"] {
            let mut query = Query::new([("limit", text)]);
            query.limit(20, 100);
            assert!(query.finish().is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_query_is_fine() {
        assert!(Query::new([]).finish().is_ok());
    }
}
