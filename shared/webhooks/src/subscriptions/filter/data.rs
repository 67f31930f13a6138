//! An event's data, parsed once for all filters. Numbers stay exact, and unreadable values match nothing.

use std::{borrow::Cow, cell::OnceCell, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::decimal::Decimal;

/// An object's members; of duplicate members, the last one counts.
pub(super) type Object<'a> = BTreeMap<Cow<'a, str>, DataValue<'a>>;

/// A value in the data.
#[derive(Debug, Clone, PartialEq)]
pub enum DataValue<'a> {
    /// A value that a pattern can contain.
    Leaf(DataLeaf<'a>),
    /// An array with its elements.
    Array(Vec<DataValue<'a>>),
    /// An object with its members.
    Object(Object<'a>),
    /// A value that serde cannot read, such as a string with an unpaired surrogate. It equals nothing.
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
    /// A string.
    Text(Cow<'a, str>),
}

/// A leaf of the data, with its conversions for some conditions. Each conversion is made once for all filters: a
/// hundred conditions in each of two hundred filters may meet fifty thousand values.
#[derive(Debug, Clone, PartialEq)]
pub struct DataLeaf<'a> {
    pub(super) leaf: Leaf<'a>,
    number: OnceCell<Option<Decimal>>,
    lower: OnceCell<String>,
}

/// An event's data.
#[derive(Debug, Clone, PartialEq)]
pub struct EventData<'a>(pub(super) DataValue<'a>);

impl<'a> EventData<'a> {
    /// The data in an event body that the service wrote.
    pub fn of_body(body: &'a str) -> Self {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow)]
            data: &'a RawValue,
        }
        serde_json::from_str::<Body<'_>>(body).map_or(Self(DataValue::Unreadable), |body| Self::read(body.data))
    }

    /// Parses data. Bodies are at most 100 levels deep (`problem::json_body::MAX_DEPTH`), which limits this recursion.
    pub fn read(data: &'a RawValue) -> Self {
        Self(JsonReader { json: data.get(), at: 0 }.value())
    }
}

impl<'a> From<Leaf<'a>> for DataLeaf<'a> {
    fn from(leaf: Leaf<'a>) -> Self {
        Self { leaf, number: OnceCell::new(), lower: OnceCell::new() }
    }
}

impl DataLeaf<'_> {
    /// The value as a number. Amounts in the catalogue are strings.
    pub(super) fn number(&self) -> Option<&Decimal> {
        match &self.leaf {
            Leaf::Number(number) => Some(number),
            Leaf::Text(text) => self.number.get_or_init(|| Decimal::of_text(text)).as_ref(),
            Leaf::Null | Leaf::Bool(_) => None,
        }
    }

    /// The text in lower case; `None` for other values.
    pub(super) fn lower(&self) -> Option<&str> {
        match &self.leaf {
            Leaf::Text(text) => Some(self.lower.get_or_init(|| text.to_lowercase())),
            Leaf::Null | Leaf::Bool(_) | Leaf::Number(_) => None,
        }
    }
}

impl<'a> Leaf<'a> {
    /// Reads a value that is neither an object nor an array; `None` for a string that serde cannot read.
    pub(super) fn read(json: &'a str) -> Option<Self> {
        Some(match json.as_bytes().first()? {
            b'"' => Self::Text(read_text(json)?),
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

/// The text of a JSON string; `None` for one that serde cannot read.
fn read_text(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    // Only an escape makes the text differ from its JSON.
    Some(if inner.contains('\\') { Cow::Owned(serde_json::from_str(json).ok()?) } else { inner.into() })
}

/// Reads JSON that serde has found to be well-formed. serde's numbers are doubles, and its raw values would be parsed
/// again at each level.
struct JsonReader<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> JsonReader<'a> {
    fn value(&mut self) -> DataValue<'a> {
        match self.next() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            _ => Leaf::read(self.token()).map_or(DataValue::Unreadable, |leaf| DataValue::Leaf(leaf.into())),
        }
    }

    fn array(&mut self) -> DataValue<'a> {
        let mut elements = Vec::new();
        self.at += 1;
        while self.next().is_some_and(|byte| byte != b']') {
            elements.push(self.value());
        }
        self.at += 1;
        DataValue::Array(elements)
    }

    fn object(&mut self) -> DataValue<'a> {
        let mut members = Object::new();
        let mut is_readable = true;
        self.at += 1;
        while self.next().is_some_and(|byte| byte != b'}') {
            let name = read_text(self.token());
            let value = self.value();
            match name {
                Some(name) => drop(members.insert(name, value)),
                None => is_readable = false,
            }
        }
        self.at += 1;
        if is_readable { DataValue::Object(members) } else { DataValue::Unreadable }
    }

    /// The first byte of the next value or name, or the end of an array or object.
    fn next(&mut self) -> Option<u8> {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b':');
        self.at += self.json.as_bytes()[self.at..].iter().take_while(|byte| is_between(byte)).count();
        self.json.as_bytes().get(self.at).copied()
    }

    /// Reads a string, a number or a word.
    fn token(&mut self) -> &'a str {
        let rest = &self.json.as_bytes()[self.at..];
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
        let length = match rest.first() {
            Some(b'"') => length_of_string(rest),
            _ => rest.iter().position(is_end).unwrap_or(rest.len()),
        };
        let begin = self.at;
        self.at += length;
        &self.json[begin..self.at]
    }
}

/// The length of the JSON string at the beginning, with its quotes.
fn length_of_string(json: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = json.iter().skip(1).position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
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
        let leaf = |leaf: Leaf<'static>| DataValue::Leaf(leaf.into());
        let number = |text: &str| leaf(Leaf::Number(Decimal::read(text)));
        assert_eq!(members["b"], DataValue::Array(vec![number("1e999"), leaf(Leaf::Text("é".into()))]));
        assert_eq!(members["c"], number("2"));
    }

    #[test]
    fn the_data_of_a_body_are_its_member() {
        let body = r#"{"id":"evt_1","type":"booking.created","data":{"a":1}}"#;
        let data = RawValue::from_string(r#"{"a":1}"#.into()).expect("JSON");
        assert_eq!(EventData::of_body(body), EventData::read(&data));
        assert_eq!(EventData::of_body("{}"), EventData(DataValue::Unreadable));
    }
    /// The strings and numbers in the data, if they can be read, in any layout.
    #[test]
    fn white_space_and_escapes_do_not_change_the_data() {
        let compact = r#"{"a":["x\\",-1.5e3,true,null,[]," , ]} "],"b\"":{},"c":{"d":[[1]]}}"#;
        let spaced = r#" { "a" : [ "x\\" , -1.5e3,
            true , null , [ ] , " , ]} " ] , "\u0062\"" : { } ,"c":{"d":[[1 ] ]} } "#;
        let [compact, spaced] = [compact, spaced].map(|json| RawValue::from_string(json.trim().into()).expect("JSON"));
        assert_eq!(EventData::read(&compact), EventData::read(&spaced));
        let DataValue::Object(members) = EventData::read(&compact).0 else { panic!("an object") };
        assert_eq!(members.keys().collect::<Vec<_>>(), ["a", "b\"", "c"]);
        let DataValue::Array(elements) = &members["a"] else { panic!("an array") };
        assert_eq!(elements.len(), 6);
        assert_eq!(elements[5], DataValue::Leaf(Leaf::Text(" , ]} ".into()).into()));
    }

    #[test]
    fn the_conversions_of_a_value_are_made_once() {
        let leaf = DataLeaf::from(Leaf::Text("830.00".into()));
        assert!(leaf.number.get().is_none() && leaf.lower.get().is_none());
        let numbers = [leaf.number(), leaf.number()].map(|number| number.expect("it is a number"));
        assert!(std::ptr::eq(numbers[0], numbers[1]));
        let texts = [leaf.lower(), leaf.lower()].map(|text| text.expect("it is a text"));
        assert!(std::ptr::eq(texts[0], texts[1]));
    }
}
