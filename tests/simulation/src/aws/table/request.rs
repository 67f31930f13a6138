//! Access to the members of requests.

use serde_json::{Map, Value};

use super::{
    condition::Condition,
    parser::{Parser, Placeholders},
    refusal::{Checked, Invalid},
};

/// A request, or a part of one, whose members are all known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a>(pub &'a Map<String, Value>);

impl<'a> Request<'a> {
    /// A request that may have only these members.
    pub fn of(value: &'a Value, known: &[&str]) -> Checked<Self> {
        let members = value.as_object().ok_or_else(|| Invalid(format!("a request must be an object: {value}")))?;
        match members.iter().find(|(name, value)| !value.is_null() && !known.contains(&name.as_str())) {
            Some((name, value)) => Err(Invalid::unknown("member of a request", format_args!("{name}: {value}"))),
            None => Ok(Self(members)),
        }
    }

    pub fn member(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn needed(self, name: &str) -> Checked<&'a Value> {
        self.member(name).ok_or_else(|| Invalid(format!("a request needs the member {name}")))
    }

    pub fn object(self, name: &str) -> Checked<&'a Map<String, Value>> {
        self.needed(name)?.as_object().ok_or_else(|| wrong(name))
    }

    pub fn array(self, name: &str) -> Checked<&'a [Value]> {
        self.needed(name)?.as_array().map(Vec::as_slice).ok_or_else(|| wrong(name))
    }

    pub fn text(self, name: &str) -> Checked<Option<&'a str>> {
        self.member(name).map(|value| value.as_str().ok_or_else(|| wrong(name))).transpose()
    }

    /// The string in a member that may have only these values.
    pub fn one_of(self, name: &str, known: &[&str]) -> Checked<Option<&'a str>> {
        match self.text(name)? {
            Some(other) if !known.contains(&other) => Err(Invalid::unknown(name, other)),
            found => Ok(found),
        }
    }

    pub fn flag(self, name: &str) -> Checked<Option<bool>> {
        self.member(name).map(|value| value.as_bool().ok_or_else(|| wrong(name))).transpose()
    }

    /// The condition in this member.
    pub fn condition(self, name: &str, placeholders: &mut Placeholders<'a>) -> Checked<Option<Condition<'a>>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let mut parser = Parser::new(text, placeholders);
        let condition = Condition::read(&mut parser)?;
        parser.end()?;
        Ok(Some(condition))
    }
}

fn wrong(name: &str) -> Invalid {
    Invalid(format!("the member {name} has the wrong type"))
}
