//! The data of an event, parsed once for all filters. Numbers stay exact, and unreadable values match nothing.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::decimal::Decimal;

/// A value of the data.
#[derive(Debug, Clone, PartialEq)]
pub enum DataValue<'a> {
    /// A value that a pattern can name.
    Leaf(Leaf<'a>),
    /// An array with its elements.
    Array(Vec<DataValue<'a>>),
    /// An object with its members; of duplicate members, the last counts.
    Object(BTreeMap<Cow<'a, str>, DataValue<'a>>),
    /// A value that serde cannot read, such as a text with an unpaired surrogate. It equals nothing.
    Unreadable,
}

/// A value without members or elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Decimal),
    /// A text.
    Text(Cow<'a, str>),
}

/// The data of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventData<'a>(pub(super) DataValue<'a>);

impl<'a> EventData<'a> {
    /// The data within the body of an event that the service wrote.
    pub fn of_body(body: &'a str) -> Self {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            data: &'a RawValue,
        }
        serde_json::from_str::<Body<'_>>(body).map_or(Self(DataValue::Unreadable), |body| Self::read(body.data))
    }

    /// Parses data.
    pub fn read(data: &'a RawValue) -> Self {
        Self(DataValue::read(data))
    }
}

impl<'a> DataValue<'a> {
    /// Reads a value. Bodies are at most 100 levels deep (`problem::json_body::MAX_DEPTH`), and so is this recursion.
    fn read(json: &'a RawValue) -> Self {
        let text = json.get();
        match text.as_bytes().first() {
            Some(b'{') => serde_json::from_str::<BTreeMap<Cow<'a, str>, &'a RawValue>>(text)
                .map_or(Self::Unreadable, |members| {
                    Self::Object(members.into_iter().map(|(name, value)| (name, Self::read(value))).collect())
                }),
            Some(b'[') => serde_json::from_str::<Vec<&'a RawValue>>(text)
                .map_or(Self::Unreadable, |elements| Self::Array(elements.into_iter().map(Self::read).collect())),
            _ => Leaf::read(text).map_or(Self::Unreadable, Self::Leaf),
        }
    }
}

impl<'a> Leaf<'a> {
    /// Reads a value that is neither an object nor an array; `None` for a text that serde cannot read.
    pub(super) fn read(json: &'a str) -> Option<Self> {
        Some(match json.as_bytes().first()? {
            b'"' => {
                let inner = json.strip_prefix('"')?.strip_suffix('"')?;
                // Only an escape makes the text differ from its JSON.
                let text =
                    if inner.contains('\\') { Cow::Owned(serde_json::from_str(json).ok()?) } else { inner.into() };
                Self::Text(text)
            }
            b't' => Self::Bool(true),
            b'f' => Self::Bool(false),
            b'n' => Self::Null,
            _ => Self::Number(Decimal::read(json)),
        })
    }

    /// The value without its source.
    pub(super) fn into_owned(self) -> Leaf<'static> {
        match self {
            Self::Null => Leaf::Null,
            Self::Bool(value) => Leaf::Bool(value),
            Self::Number(number) => Leaf::Number(number),
            Self::Text(text) => Leaf::Text(text.into_owned().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_values_do_not_hide_their_neighbours() {
        let data = RawValue::from_string(r#"{"a":"\ud800","b":[1e999,"\u00e9"],"b2":{"\ud800":1},"c":1,"c":2}"#.into());
        let data = data.expect("JSON");
        let DataValue::Object(members) = EventData::read(&data).0 else { panic!("an object") };
        assert_eq!((&members["a"], &members["b2"]), (&DataValue::Unreadable, &DataValue::Unreadable));
        let number = DataValue::Leaf(Leaf::Number(Decimal::read("1e999")));
        assert_eq!(members["b"], DataValue::Array(vec![number, DataValue::Leaf(Leaf::Text("é".into()))]));
        assert_eq!(members["c"], DataValue::Leaf(Leaf::Number(Decimal::read("2"))));
    }

    #[test]
    fn the_data_of_a_body_are_its_member() {
        let body = r#"{"id":"evt_1","type":"booking.created","data":{"a":1}}"#;
        let data = RawValue::from_string(r#"{"a":1}"#.into()).expect("JSON");
        assert_eq!(EventData::of_body(body), EventData::read(&data));
        assert_eq!(EventData::of_body("{}"), EventData(DataValue::Unreadable));
    }
}
