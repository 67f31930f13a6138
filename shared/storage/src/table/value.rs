//! Values of attributes, and whole items. Only this crate uses DynamoDB's types for them.

use std::{collections::HashMap, sync::Arc};

use aws_sdk_dynamodb::types::AttributeValue;
use base::Time;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    error::TableError,
    key::{Item, Key},
};

/// An attribute's value.
#[derive(Debug, Clone, PartialEq)]
pub struct Value(pub(super) AttributeValue);

impl Value {
    /// A string.
    pub fn text(value: impl ToString) -> Self {
        Self(AttributeValue::S(value.to_string()))
    }

    /// A number.
    pub fn number(value: impl ToString) -> Self {
        Self(AttributeValue::N(value.to_string()))
    }

    /// A value serialized by serde. `doing` names the work in the error.
    pub fn of(value: &impl Serialize, doing: &'static str) -> Result<Self, TableError> {
        serde_dynamo::to_attribute_value(value).map(Self).map_err(|source| TableError::Item {
            doing,
            key: None,
            source: Arc::new(source),
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

/// A string in RFC 3339, so that values sort by time.
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

/// `None` is DynamoDB's null.
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self(AttributeValue::Null(true)), Into::into)
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

/// The path to an attribute, or to a member of a map or list in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(pub(super) Vec<Part>);

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Member(String),
    Element(usize),
}

impl Path {
    /// The path as text, with each name written by `spell`.
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

/// A member of a list's element.
impl From<(&str, usize, &str)> for Path {
    fn from((attribute, position, member): (&str, usize, &str)) -> Self {
        Self(vec![Part::Member(attribute.to_owned()), Part::Element(position), Part::Member(member.to_owned())])
    }
}

/// A member of a map in a list's element.
impl From<(&str, usize, &str, &str)> for Path {
    fn from((attribute, position, member, inner): (&str, usize, &str, &str)) -> Self {
        let Self(mut parts) = Self::from((attribute, position, member));
        parts.push(Part::Member(inner.to_owned()));
        Self(parts)
    }
}

/// An item that is not parsed yet, since its sort key determines its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Row(pub(super) HashMap<String, AttributeValue>);

impl Row {
    /// The item's sort key.
    pub fn sort(&self) -> &str {
        self.0.get("sk").and_then(|sort| sort.as_s().ok()).map(String::as_str).unwrap_or_default()
    }

    /// Parses the item.
    pub fn read<T: DeserializeOwned>(self, doing: &'static str) -> Result<T, TableError> {
        read_item(self.0, doing)
    }
}

/// Parses an item. The error names the item's key, so that an operator can find it.
pub(super) fn read_item<T: DeserializeOwned>(item: Item, doing: &'static str) -> Result<T, TableError> {
    let key = Key::of(&item);
    serde_dynamo::from_item(item).map_err(|source| TableError::Item { doing, key, source: Arc::new(source) })
}

/// Serializes a value as an item.
pub(super) fn write_item(value: &impl Serialize, doing: &'static str) -> Result<Item, TableError> {
    serde_dynamo::to_item(value).map_err(|source| TableError::Item { doing, key: None, source: Arc::new(source) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Named {
        name: String,
    }

    #[test]
    fn a_row_has_a_sort_key_and_the_error_of_an_unreadable_one_its_whole_key() {
        let item = |name: Value| {
            let members = [("pk", Value::from("DLV#1")), ("sk", Value::from("HEAD")), ("name", name)];
            Row(members.map(|(member, value)| (member.to_owned(), value.0)).into())
        };
        assert_eq!(item("a".into()).sort(), "HEAD");
        assert_eq!(item("a".into()).read::<Named>("reading").expect("read"), Named { name: "a".to_owned() });
        let error = item(5_u32.into()).read::<Named>("reading").expect_err("a number is no name");
        assert!(error.to_string().contains("`DLV#1` / `HEAD`"), "{error}");
    }

    #[test]
    fn none_is_null() {
        assert_eq!(Value::from(None::<u16>), Value(AttributeValue::Null(true)));
        assert_eq!(Value::from(Some(5_u16)), Value::number(5));
    }

    /// Some stores have attributes whose names contain the counted day or hour.
    #[test]
    fn numbers_reach_flattened_members_as_numbers() {
        #[derive(serde::Deserialize)]
        struct Row {
            sk: String,
            #[serde(flatten)]
            health: Health,
            #[serde(flatten)]
            rest: HashMap<String, serde_json::Value>,
        }
        #[derive(serde::Deserialize, Default)]
        #[serde(default)]
        struct Health {
            failures: u32,
            since: Option<String>,
        }
        let mut row = Item::from([("sk".to_owned(), Value::from("HEAD").0)]);
        row.extend([("failures".to_owned(), Value::number(5).0), ("d14".to_owned(), Value::number(7).0)]);
        let row: Row = read_item(row, "reading").expect("read");
        assert_eq!((row.sk.as_str(), row.health.failures, row.health.since), ("HEAD", 5, None));
        assert_eq!(row.rest["d14"].as_u64(), Some(7));
    }
}
