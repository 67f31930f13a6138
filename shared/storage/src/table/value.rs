//! Values of attributes, and whole items, as the table keeps them. What is in them, this crate alone knows.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use base::clock::Time;
use serde::{Serialize, de::DeserializeOwned};

use super::TableError;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Value(pub(super) AttributeValue);

impl Value {
    /// A text.
    pub fn text(value: impl ToString) -> Self {
        Self(AttributeValue::S(value.to_string()))
    }

    /// A number.
    pub fn number(value: impl ToString) -> Self {
        Self(AttributeValue::N(value.to_string()))
    }

    /// A value as serde writes it. `doing` names the work in the error.
    pub fn of(value: &impl Serialize, doing: &'static str) -> Result<Self, TableError> {
        serde_dynamo::to_attribute_value(value).map(Self).map_err(|source| TableError::Item {
            doing,
            key: None,
            source: source.into(),
        })
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::text(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self(AttributeValue::S(value))
    }
}

/// As it is written in RFC 3339, so that values sort by time.
impl From<Time> for Value {
    fn from(value: Time) -> Self {
        Self::text(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self(AttributeValue::Bool(value))
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl From<$number> for Value {
            fn from(value: $number) -> Self {
                Self::number(value)
            }
        })+
    };
}
numbers!(u8, u16, u32, u64, usize, i32, i64);

/// The name of an attribute, or of something in it: a member of a map, an element of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(pub(super) Vec<Part>);

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Member(String),
    Element(usize),
}

impl Path {
    /// The path as text, with each name as `spell` writes it.
    pub(super) fn spelt(&self, mut spell: impl FnMut(&str) -> String) -> String {
        self.0.iter().fold(String::new(), |text, part| match part {
            Part::Member(name) if text.is_empty() => spell(name),
            Part::Member(name) => format!("{text}.{}", spell(name)),
            Part::Element(position) => format!("{text}[{position}]"),
        })
    }
}

impl From<&str> for Path {
    fn from(attribute: &str) -> Self {
        Self(vec![Part::Member(attribute.to_owned())])
    }
}

impl From<String> for Path {
    fn from(attribute: String) -> Self {
        Self(vec![Part::Member(attribute)])
    }
}

/// A member of a map.
impl From<(&str, &str)> for Path {
    fn from((attribute, member): (&str, &str)) -> Self {
        Self([attribute, member].map(|name| Part::Member(name.to_owned())).into())
    }
}

/// A member of an element of a list.
impl From<(&str, usize, &str)> for Path {
    fn from((attribute, position, member): (&str, usize, &str)) -> Self {
        Self(vec![Part::Member(attribute.to_owned()), Part::Element(position), Part::Member(member.to_owned())])
    }
}

/// Where an item is: its partition, and its place there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// `pk`.
    pub partition: String,
    /// `sk`.
    pub sort: String,
}

impl Key {
    /// The key of these two parts.
    pub fn new(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self { partition: partition.into(), sort: sort.into() }
    }

    pub(super) fn attributes(&self) -> HashMap<String, AttributeValue> {
        let parts = [("pk", &self.partition), ("sk", &self.sort)];
        parts.map(|(name, part)| (name.to_owned(), AttributeValue::S(part.clone()))).into()
    }

    pub(super) fn of(item: &HashMap<String, AttributeValue>) -> Option<Self> {
        let part = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
        Some(Self { partition: part("pk")?, sort: part("sk")? })
    }
}

impl From<(String, String)> for Key {
    fn from((partition, sort): (String, String)) -> Self {
        Self { partition, sort }
    }
}

/// Turns an item into the type that wrote it. The error names the item's key, so that an operator finds it.
pub fn read_item<T: DeserializeOwned>(
    item: HashMap<String, AttributeValue>,
    doing: &'static str,
) -> Result<T, TableError> {
    let key = Key::of(&item);
    serde_dynamo::from_item(item).map_err(|source| TableError::Item { doing, key, source: source.into() })
}
