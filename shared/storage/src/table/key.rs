//! The keys of items.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

/// An item in the SDK's format.
pub type Item = HashMap<String, AttributeValue>;

/// An item's key.
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

    pub(super) fn attributes(&self) -> Item {
        let parts = [("pk", &self.partition), ("sk", &self.sort)];
        parts.map(|(name, part)| (name.to_owned(), AttributeValue::S(part.clone()))).into()
    }

    pub(super) fn of(item: &Item) -> Option<Self> {
        let part = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned();
        Some(Self { partition: part("pk")?, sort: part("sk")? })
    }
}

impl From<(String, String)> for Key {
    fn from((partition, sort): (String, String)) -> Self {
        Self { partition, sort }
    }
}
