//! A JSON file of a catalogue. Values are slices of its text, so that a mistake in any of them has a line.

use std::{fmt, fs, path::PathBuf};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A mistake in a catalogue, shown as `file:line: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The file, or the folder if the mistake is in no file.
    pub path: PathBuf,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// The fault, and how to fix it.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(formatter, "{line}:")?;
        }
        write!(formatter, " {}", self.message)
    }
}

/// A file with its text.
#[derive(Debug)]
pub(crate) struct Source {
    pub path: PathBuf,
    text: String,
}

/// An object's members in their order, duplicates included.
#[derive(Debug, Clone, Default)]
pub(crate) struct Members<'a>(pub Vec<(String, &'a RawValue)>);

impl Source {
    pub(crate) fn read(path: PathBuf) -> Result<Self, Mistake> {
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self { path, text }),
            Err(error) => Err(Mistake { path, line: None, message: format!("cannot be read: {error}") }),
        }
    }

    /// Parses the file.
    pub(crate) fn parse<'a, T: Deserialize<'a>>(&'a self, expected: &str) -> Result<T, Mistake> {
        serde_json::from_str(&self.text).map_err(|error| {
            let message = if error.is_data() { format!("must be {expected}") } else { format!("is not JSON: {error}") };
            Mistake { path: self.path.clone(), line: Some(error.line()), message }
        })
    }

    /// A mistake in this value of the file, or in the value within it at a JSON Pointer.
    pub(crate) fn mistake(&self, at: &RawValue, pointer: &str, message: impl Into<String>) -> Mistake {
        // A value is a slice of the text, so its position is the difference between their addresses.
        let start = within(at, pointer).get().as_ptr() as usize - self.text.as_ptr() as usize;
        let line = self.text[..start].matches('\n').count() + 1;
        Mistake { path: self.path.clone(), line: Some(line), message: message.into() }
    }
}

impl<'a> Members<'a> {
    /// A value's members; `None` unless it is an object.
    pub(crate) fn of(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// The second of two members with the same name.
    pub(crate) fn repeated(&self) -> Option<&(String, &'a RawValue)> {
        let comes_earlier = |at: usize, name: &str| self.0[..at].iter().any(|(earlier, _)| earlier == name);
        self.0.iter().enumerate().find(|(at, (name, _))| comes_earlier(*at, name)).map(|(_, member)| member)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject;

        impl<'de> Visitor<'de> for OfObject {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(OfObject)
    }
}

/// A list's elements; `None` unless a value is a list.
pub(crate) fn elements(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// The value at a JSON Pointer, or its nearest ancestor that exists.
fn within<'a>(value: &'a RawValue, pointer: &str) -> &'a RawValue {
    let mut found = value;
    for name in pointer.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        let member = Members::of(found).and_then(|members| members.get(&name));
        let element = || elements(found)?.get(name.parse::<usize>().ok()?).copied();
        match member.or_else(element) {
            Some(next) => found = next,
            None => break,
        }
    }
    found
}
