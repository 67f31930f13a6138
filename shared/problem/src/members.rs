//! The members of a JSON object.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of a JSON object as they were sent. Of duplicate members, the first counts.
#[derive(Debug)]
pub struct Members<'a> {
    /// The names and values, in order.
    pub members: Vec<(String, &'a RawValue)>,
    /// The duplicate names.
    pub doubled: Vec<String>,
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                let mut doubled = Vec::new();
                let mut names = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value()?;
                    if !names.insert(name.clone()) {
                        doubled.push(name);
                    } else {
                        members.push((name, value));
                    }
                }
                Ok(Members { members, doubled })
            }
        }

        deserializer.deserialize_map(Object)
    }
}
