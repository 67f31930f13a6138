//! The tests, and the helpers that they share.

mod batches;
mod both;
mod conformance;
mod differences;
mod freedoms;
mod labels;
mod random;

use serde_json::{Value, json};

use super::{Conditions, Copy, ItemKey, Schema, Table};

/// The definition of the service's table.
pub(super) fn definition() -> Value {
    let key = |hash: &str, range: &str| json!([{ "AttributeName": hash, "KeyType": "HASH" }, { "AttributeName": range, "KeyType": "RANGE" }]);
    let index = |name: &str, hash: &str, range: &str, projection: Value| json!({ "IndexName": name, "KeySchema": key(hash, range), "Projection": projection });
    let include = |names: &[&str]| json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": names });
    let attributes = ["pk", "sk", "entityKey", "createdKey", "dueShard", "dueAt", "webhookKey"];
    json!({
        "TableName": "waypost-local",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": attributes.map(|name| json!({ "AttributeName": name, "AttributeType": "S" })),
        "KeySchema": key("pk", "sk"),
        "GlobalSecondaryIndexes": [
            index("byOwner", "entityKey", "createdKey", include(&["listedStatus", "type", "webhookIdentifier"])),
            index("byDue", "dueShard", "dueAt", include(&["attemptCount", "webhookIdentifier", "sweeps"])),
            index("byWebhook", "webhookKey", "createdKey", json!({ "ProjectionType": "KEYS_ONLY" })),
        ],
    })
}

pub(super) fn table() -> Table {
    Table::new(Schema::of(&definition(), Some("expiresAt")))
}

/// Conditions that a test can set.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// The partition that is throttled, in the table or in the index with this name.
    pub throttled: Option<(&'static str, Option<&'static str>)>,
    pub conflict: Option<&'static str>,
    /// The positions where something is left out, counted over all calls.
    pub left_out: Vec<usize>,
    pub replica_lag: u64,
    pub index_lag: u64,
    asked: usize,
}

impl Conditions for Given {
    fn throttles(&mut self, key: &ItemKey, index: Option<&str>, _write: bool) -> bool {
        self.throttled.is_some_and(|(partition, of)| key.0 == partition && index == of)
    }

    fn conflicts(&mut self, keys: &[ItemKey]) -> bool {
        keys.iter().any(|(partition, _)| Some(partition.as_str()) == self.conflict)
    }

    fn leaves_out(&mut self) -> bool {
        self.asked += 1;
        self.left_out.contains(&(self.asked - 1))
    }

    fn lag(&mut self, copy: Copy) -> u64 {
        match copy {
            Copy::Replica => self.replica_lag,
            Copy::Index => self.index_lag,
        }
    }
}

/// An attribute value: a string, a number, a flag, null, or a map of values.
pub(super) fn value(plain: &Value) -> Value {
    match plain {
        Value::Null => json!({ "NULL": true }),
        Value::Bool(flag) => json!({ "BOOL": flag }),
        Value::Number(number) => json!({ "N": number.to_string() }),
        Value::String(text) => json!({ "S": text }),
        Value::Array(elements) => json!({ "L": elements.iter().map(value).collect::<Vec<_>>() }),
        Value::Object(_) => json!({ "M": item(plain.clone()) }),
    }
}

/// An item with these members.
pub(super) fn item(plain: Value) -> Value {
    let members = plain.as_object().into_iter().flatten();
    Value::Object(members.map(|(name, plain)| (name.clone(), value(plain))).collect())
}

/// A request with a table name; maps of plain values become maps of attribute values.
pub(super) fn request(mut members: Value) -> Value {
    for (name, member) in members.as_object_mut().into_iter().flatten() {
        if ["Key", "Item", "ExpressionAttributeValues", "ExclusiveStartKey"].contains(&name.as_str()) {
            *member = item(member.take());
        }
    }
    members["TableName"] = json!("waypost-local");
    members
}

pub(super) fn key(pk: &str, sk: &str) -> ItemKey {
    (pk.to_owned(), sk.to_owned())
}

/// A statement with its parameters.
pub(super) fn statement(text: &str, parameters: Value) -> Value {
    let parameters: Vec<_> = parameters.as_array().into_iter().flatten().map(value).collect();
    json!({ "Statement": text, "Parameters": parameters })
}
