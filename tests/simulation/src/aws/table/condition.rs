//! Conditions on writes, in queries, and in statements.

use std::cmp::Ordering;

use serde_json::Value;

use super::{
    Item,
    parser::{Parser, Token},
    refusal::{Checked, Invalid},
    value::{self, Path},
};

/// A condition that an item may meet.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Condition<'a> {
    Is(Path<'a>, Comparison, &'a Value),
    Between(Path<'a>, &'a Value, &'a Value),
    BeginsWith(Path<'a>, &'a Value),
    Present(Path<'a>),
    Absent(Path<'a>),
    All(Vec<Condition<'a>>),
    Any(Vec<Condition<'a>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl<'a> Condition<'a> {
    /// Reads a whole condition, in the syntax of expressions or of PartiQL.
    pub fn read(parser: &mut Parser<'a, '_>) -> Checked<Self> {
        Self::several(parser, "OR", Self::Any, |parser| Self::several(parser, "AND", Self::All, Self::one))
    }

    fn several<'p>(
        parser: &mut Parser<'a, 'p>,
        word: &str,
        joined: fn(Vec<Self>) -> Self,
        one: impl Fn(&mut Parser<'a, 'p>) -> Checked<Self>,
    ) -> Checked<Self> {
        let first = one(parser)?;
        if parser.peek()? != Token::Word(word) {
            return Ok(first);
        }
        let mut all = vec![first];
        while parser.takes(Token::Word(word))? {
            all.push(one(parser)?);
        }
        Ok(joined(all))
    }

    fn one(parser: &mut Parser<'a, '_>) -> Checked<Self> {
        if parser.takes(Token::Sign("("))? {
            let inner = Self::read(parser)?;
            parser.sign(")")?;
            return Ok(inner);
        }
        for (name, condition) in [
            ("attribute_exists", Self::Present as fn(Path<'a>) -> Self),
            ("attribute_not_exists", Self::Absent as fn(Path<'a>) -> Self),
        ] {
            if parser.takes(Token::Word(name))? {
                parser.sign("(")?;
                let path = parser.path()?;
                parser.sign(")")?;
                return Ok(condition(path));
            }
        }
        if parser.takes(Token::Word("begins_with"))? {
            parser.sign("(")?;
            let path = parser.path()?;
            parser.sign(",")?;
            let prefix = parser.value()?;
            parser.sign(")")?;
            value::text(prefix).ok_or_else(|| Invalid("begins_with needs a text".to_owned()))?;
            return Ok(Self::BeginsWith(path, prefix));
        }
        let path = parser.path()?;
        let comparison = match parser.next()? {
            Token::Sign("=") => Comparison::Equal,
            Token::Sign("<") => Comparison::Less,
            Token::Sign("<=") => Comparison::AtMost,
            Token::Sign(">") => Comparison::More,
            Token::Sign(">=") => Comparison::AtLeast,
            Token::Word("IS") => {
                let negated = parser.takes(Token::Word("NOT"))?;
                parser.words(&["MISSING"])?;
                return Ok(if negated { Self::Present(path) } else { Self::Absent(path) });
            }
            Token::Word("BETWEEN") => {
                let from = orderable(parser.value()?)?;
                parser.words(&["AND"])?;
                let to = orderable(parser.value()?)?;
                if value::compared(from, to) == Some(Ordering::Greater) {
                    return Err(Invalid(format!("the bounds of BETWEEN are in the wrong order: {from}, {to}")));
                }
                return Ok(Self::Between(path, from, to));
            }
            _ => return Err(parser.unknown("comparison or function")),
        };
        let value = parser.value()?;
        value::stored(value)?;
        if comparison != Comparison::Equal {
            orderable(value)?;
        }
        Ok(Self::Is(path, comparison, value))
    }

    /// Whether the item, if any, meets this condition.
    pub fn holds(&self, item: Option<&Item>) -> bool {
        let found = |path: &Path<'_>| item.and_then(|item| path.of(item));
        match self {
            Self::Is(path, comparison, value) => found(path).is_some_and(|found| comparison.holds(found, value)),
            Self::Between(path, from, to) => found(path)
                .is_some_and(|found| Comparison::AtLeast.holds(found, from) && Comparison::AtMost.holds(found, to)),
            Self::BeginsWith(path, prefix) => {
                let text = found(path).and_then(value::text).zip(value::text(prefix));
                text.is_some_and(|(text, prefix)| text.starts_with(prefix))
            }
            Self::Present(path) => found(path).is_some(),
            Self::Absent(path) => found(path).is_none(),
            Self::All(conditions) => conditions.iter().all(|condition| condition.holds(item)),
            Self::Any(conditions) => conditions.iter().any(|condition| condition.holds(item)),
        }
    }

    /// The conditions that must all be met.
    pub fn parts(self) -> Vec<Self> {
        match self {
            Self::All(conditions) => conditions.into_iter().flat_map(Self::parts).collect(),
            other => vec![other],
        }
    }

    /// The attributes that the condition mentions, in order.
    pub fn attributes(&self) -> Vec<&'a str> {
        match self {
            Self::Is(path, ..)
            | Self::Between(path, ..)
            | Self::BeginsWith(path, _)
            | Self::Present(path)
            | Self::Absent(path) => vec![path.root],
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().flat_map(Condition::attributes).collect()
            }
        }
    }

    /// The string, as an attribute value, that this condition requires a top-level attribute to have.
    pub fn demanded(&self, attribute: &str) -> Option<&'a Value> {
        match self {
            Self::Is(path, Comparison::Equal, value) if path.root == attribute && path.steps.is_empty() => {
                value::text(value).map(|_| *value)
            }
            _ => None,
        }
    }
}

impl Comparison {
    fn holds(self, found: &Value, value: &Value) -> bool {
        let order = || value::compared(found, value);
        match self {
            Self::Equal => value::equal(found, value),
            Self::Less => order().is_some_and(Ordering::is_lt),
            Self::AtMost => order().is_some_and(Ordering::is_le),
            Self::More => order().is_some_and(Ordering::is_gt),
            Self::AtLeast => order().is_some_and(Ordering::is_ge),
        }
    }
}

/// Checks that a value is a string or a number. DynamoDB also orders binary values, and refuses to compare any others.
fn orderable(value: &Value) -> Checked<&Value> {
    value::stored(value)?;
    let is_orderable = value.get("S").is_some() || value.get("N").is_some();
    if is_orderable { Ok(value) } else { Err(Invalid(format!("a comparison with this value has no order: {value}"))) }
}
