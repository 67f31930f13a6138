//! The query of a provider's redirect to the callback.

use problem::{InputPart, Problem, Rule, Violations};

/// The longest accepted value, in bytes. Providers send codes of several hundred characters, but not thousands.
const MAX_VALUE: usize = 4096;

/// A callback's query. Not `Debug` outside of tests, since state and code are secrets until they are spent.
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
pub struct CallbackQuery<'a> {
    pub(crate) state: &'a str,
    pub(crate) answer: ProviderAnswer<'a>,
    /// The provider's `iss` (RFC 9207).
    pub(crate) issuer: Option<&'a str>,
}

/// The provider's response: a code to exchange, or an error code.
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
pub(crate) enum ProviderAnswer<'a> {
    Code(&'a str),
    Error(&'a str),
}

impl<'a> CallbackQuery<'a> {
    /// Reads the query with `values`, which returns every value of a name. A repeated name is a violation (RFC 6749
    /// §3.1); an unknown one is ignored.
    pub fn read(values: impl Fn(&str) -> Vec<&'a str>) -> Result<Self, Problem> {
        let mut violations = Violations::of(InputPart::Query);
        let mut one = |name, needed| single(name, &values(name), needed, &mut violations);
        // If there is an error, no code is needed, even if the error is repeated, which is a violation.
        let failed = values("error").iter().any(|error| !error.is_empty());
        let error = one("error", false);
        let code = one("code", !failed);
        let state = one("state", true);
        let issuer = one("iss", false);
        violations.check()?;
        let answer = error.map(ProviderAnswer::Error).or(code.map(ProviderAnswer::Code));
        match (answer, state) {
            (Some(answer), Some(state)) => Ok(Self { state, answer, issuer }),
            _ => Err(Problem::internal("a value is missing without a violation")),
        }
    }
}

/// A parameter's only value. An empty value of an optional parameter counts as absent.
pub(crate) fn single<'a>(
    name: &'static str,
    values: &[&'a str],
    needed: bool,
    violations: &mut Violations,
) -> Option<&'a str> {
    match values {
        [] | [""] if !needed => return None,
        [] => violations.add(name, Rule::Required, "is missing from the query"),
        [""] => violations.add(name, Rule::Required, "must not be empty"),
        [value] if value.len() > MAX_VALUE => {
            violations.add(name, Rule::TooLong, format!("must not be longer than {MAX_VALUE} bytes"));
        }
        [value] => return Some(value),
        _ => violations.add(name, Rule::Duplicate, "must be given only once"),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::Violation;

    fn read<'a>(query: &'a [(&'a str, &'a str)]) -> Result<CallbackQuery<'a>, Vec<String>> {
        let values = |name: &str| query.iter().filter(|(given, _)| *given == name).map(|(_, value)| *value).collect();
        CallbackQuery::read(values).map_err(|problem| problem.violations().iter().map(Violation::name).collect())
    }

    #[test]
    fn a_code_or_an_error_comes_with_a_state() {
        let query = read(&[("code", "c"), ("state", "s"), ("scope", "x"), ("scope", "y")]).expect("read");
        assert_eq!(query, CallbackQuery { state: "s", answer: ProviderAnswer::Code("c"), issuer: None });
        let query = read(&[("error", "access_denied"), ("state", "s"), ("iss", "https://x")]).expect("read");
        let answer = ProviderAnswer::Error("access_denied");
        assert_eq!(query, CallbackQuery { state: "s", answer, issuer: Some("https://x") });
        let query = read(&[("error", ""), ("code", "c"), ("state", "s")]).expect("an empty error is none");
        assert_eq!(query.answer, ProviderAnswer::Code("c"));
    }

    #[test]
    fn an_error_counts_more_than_a_code() {
        let query = read(&[("error", "x"), ("code", "c"), ("state", "s")]).expect("read");
        assert_eq!(query.answer, ProviderAnswer::Error("x"));
    }

    #[test]
    fn every_violation_is_found_at_once() {
        let long = "x".repeat(MAX_VALUE + 1);
        assert_eq!(read(&[]), Err(vec!["code".into(), "state".into()]));
        assert_eq!(read(&[("code", ""), ("state", "")]), Err(vec!["code".into(), "state".into()]));
        assert_eq!(read(&[("code", "c"), ("code", "c"), ("state", "s")]), Err(vec!["code".into()]));
        assert_eq!(read(&[("code", "c"), ("state", &long)]), Err(vec!["state".into()]));
        assert_eq!(read(&[("error", "x")]), Err(vec!["state".into()]));
        assert_eq!(read(&[("error", "x"), ("error", "y"), ("state", "s")]), Err(vec!["error".into()]));
        let doubled = [("error", "x"), ("error", "y"), ("code", "c"), ("state", "s"), ("iss", "i"), ("iss", "i")];
        assert_eq!(read(&doubled), Err(vec!["error".into(), "iss".into()]));
    }
}
