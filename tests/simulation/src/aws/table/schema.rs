//! The table's keys and indexes.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    Item, ItemKey,
    refusal::{Checked, Invalid},
    value::{item_size, stored_item, text},
};

/// DynamoDB's limits.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>
const LARGEST_ITEM: usize = 400 * 1024;
const LONGEST_PARTITION: usize = 2048;
const LONGEST_SORT: usize = 1024;

/// The keys and indexes of a table. All keys are strings.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// The attribute that is the partition key.
    pub partition: String,
    /// The attribute that is the sort key.
    pub sort: String,
    /// The global secondary indexes.
    pub indexes: Vec<Index>,
    /// The attribute that holds an item's expiry in seconds since 1970; empty if items do not expire.
    pub expiry: String,
}

/// A global secondary index.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// The name that queries use.
    pub name: String,
    /// The attribute that is the partition key.
    pub partition: String,
    /// The attribute that is the sort key.
    pub sort: String,
    /// The attributes that the index contains.
    pub projection: Projection,
}

/// The attributes of an item that an index contains.
#[derive(Debug, Clone, PartialEq)]
pub enum Projection {
    /// All attributes.
    All,
    /// The keys of the index and the table.
    KeysOnly,
    /// The keys and these attributes.
    Include(Vec<String>),
}

impl Schema {
    /// The schema of a table with this definition, which has the format of a `CreateTable` request.
    pub fn of(definition: &Value, expiry: Option<&str>) -> Self {
        let indexes = definition["GlobalSecondaryIndexes"].as_array().into_iter().flatten();
        Self {
            partition: key_attribute(definition, "HASH"),
            sort: key_attribute(definition, "RANGE"),
            indexes: indexes.map(Index::of).collect(),
            expiry: expiry.unwrap_or_default().to_owned(),
        }
    }

    /// The key that consists of exactly these members.
    pub(super) fn key(&self, members: &Value) -> Checked<ItemKey> {
        match members.as_object() {
            Some(members) if members.len() == 2 => self.key_of(|name| members.get(name)),
            _ => Err(wrong_key()),
        }
    }

    /// The key of an item, which also has other members.
    pub(super) fn key_of<'v>(&self, member: impl Fn(&str) -> Option<&'v Value>) -> Checked<ItemKey> {
        let part = |name: &str, longest: usize| {
            let part = member(name).and_then(text).filter(|part| (1..=longest).contains(&part.len()));
            part.map(str::to_owned).ok_or_else(wrong_key)
        };
        Ok((part(&self.partition, LONGEST_PARTITION)?, part(&self.sort, LONGEST_SORT)?))
    }

    /// The attributes of a key.
    pub(super) fn key_item(&self, (partition, sort): &ItemKey) -> Item {
        [(&self.partition, partition), (&self.sort, sort)]
            .map(|(name, part)| (name.as_str().into(), Arc::new(json!({ "S": part }))))
            .into()
    }

    /// An item from a request, as the table stores it, with its key.
    pub(super) fn whole_item(&self, members: &Map<String, Value>) -> Checked<(ItemKey, Item)> {
        Ok((self.key_of(|name| members.get(name))?, stored_item(members)?))
    }

    /// Checks an item before it is written: its size, and its index keys, which must be strings if present.
    pub(super) fn check(&self, item: &Item) -> Checked<()> {
        if item_size(item) > LARGEST_ITEM {
            return Err(Invalid("Item size has exceeded the maximum allowed size".to_owned()));
        }
        for index in &self.indexes {
            let parts = [(&index.partition, LONGEST_PARTITION), (&index.sort, LONGEST_SORT)];
            for (name, longest) in parts {
                let is_valid = item
                    .get(name.as_str())
                    .is_none_or(|value| text(value).is_some_and(|part| (1..=longest).contains(&part.len())));
                if !is_valid {
                    return Err(Invalid(format!(
                        "One or more parameter values were invalid: Type mismatch for Index Key {name}, IndexName: {}",
                        index.name
                    )));
                }
            }
        }
        Ok(())
    }

    pub(super) fn index(&self, name: &str) -> Checked<usize> {
        let position = self.indexes.iter().position(|index| index.name == name);
        position.ok_or_else(|| Invalid(format!("The table does not have the specified index: {name}")))
    }

    /// The attributes of an item that this index contains.
    pub(super) fn projected(&self, index: &Index, item: &Item) -> Item {
        let has = |name: &str| index.projection == Projection::All || self.has(index, name);
        item.iter().filter(|(name, _)| has(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether an index contains this attribute, if it does not contain all.
    pub(super) fn has(&self, index: &Index, name: &str) -> bool {
        let included = match &index.projection {
            Projection::Include(included) => included.as_slice(),
            Projection::All => return true,
            Projection::KeysOnly => &[],
        };
        let keys = [&self.partition, &self.sort, &index.partition, &index.sort];
        keys.into_iter().chain(included).any(|included| included == name)
    }
}

impl Index {
    fn of(definition: &Value) -> Self {
        let projection = &definition["Projection"];
        let included = projection["NonKeyAttributes"].as_array().into_iter().flatten();
        let included = included.filter_map(Value::as_str).map(str::to_owned);
        Self {
            name: definition["IndexName"].as_str().unwrap_or_default().to_owned(),
            partition: key_attribute(definition, "HASH"),
            sort: key_attribute(definition, "RANGE"),
            projection: match projection["ProjectionType"].as_str() {
                Some("KEYS_ONLY") => Projection::KeysOnly,
                Some("INCLUDE") => Projection::Include(included.collect()),
                _ => Projection::All,
            },
        }
    }

    /// An item's keys in this index; `None` if the index does not contain the item.
    pub(super) fn entry<'i>(&self, item: &'i Item) -> Option<(&'i str, &'i str)> {
        Some((text(item.get(self.partition.as_str())?)?, text(item.get(self.sort.as_str())?)?))
    }
}

fn key_attribute(definition: &Value, kind: &str) -> String {
    let mut keys = definition["KeySchema"].as_array().into_iter().flatten();
    let key = keys.find(|key| key["KeyType"] == kind);
    key.and_then(|key| key["AttributeName"].as_str()).unwrap_or_default().to_owned()
}

fn wrong_key() -> Invalid {
    Invalid("The provided key element does not match the schema".to_owned())
}
