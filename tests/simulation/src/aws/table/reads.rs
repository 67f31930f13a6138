//! Reading items by key.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Conditions,
    refusal::{Invalid, Refusal},
    request::Request,
    store::{Store, View},
    value::object,
};

/// DynamoDB's limits on a batch: the number of keys, and the size of the items in bytes.
const MOST_KEYS: usize = 100;
const LARGEST_BATCH: usize = 16 * 1024 * 1024;

/// Handles `GetItem`.
pub(super) fn get(store: &Store, request: &Value, now: u64, conditions: &mut dyn Conditions) -> Result<Value, Refusal> {
    let request = Request::of(request, &["TableName", "Key", "ConsistentRead"])?;
    request.needed("TableName")?;
    let key = store.schema.key(request.needed("Key")?)?;
    if conditions.throttles(&key, None, false) {
        return Err(Refusal::throttled());
    }
    let found = store.seen(&key, view(request)?, now);
    Ok(found.map_or_else(|| json!({}), |found| json!({ "Item": object(&found.item) })))
}

/// Handles `BatchGetItem`.
pub(super) fn batch_get(
    store: &Store,
    request: &Value,
    now: u64,
    conditions: &mut dyn Conditions,
) -> Result<Value, Refusal> {
    let request = Request::of(request, &["RequestItems"])?;
    let tables = request.object("RequestItems")?;
    let (Some((table, request)), 1) = (tables.iter().next(), tables.len()) else {
        return Err(Invalid(format!("the simulated table is the only one: {tables:?}")).into());
    };
    let request = Request::of(request, &["Keys", "ConsistentRead"])?;
    let view = view(request)?;
    let keys = request.array("Keys")?;
    if keys.is_empty() || keys.len() > MOST_KEYS {
        return Err(Invalid(format!("a batch has between 1 and {MOST_KEYS} keys")).into());
    }
    let mut distinct = BTreeSet::new();
    let mut items = Vec::new();
    let mut left = Vec::new();
    let mut throttled = 0;
    let mut size = 0;
    let parsed = keys.iter().map(|key| store.schema.key(key)).collect::<Result<Vec<_>, _>>()?;
    if !parsed.iter().all(|key| distinct.insert(key)) {
        return Err(Invalid("Provided list of item keys contains duplicates".to_owned()).into());
    }
    for (key, parsed) in keys.iter().zip(&parsed) {
        let is_throttled = conditions.throttles(parsed, None, false);
        throttled += usize::from(is_throttled);
        let found = store.seen(parsed, view, now);
        size += found.map_or(0, |found| found.size);
        if is_throttled || conditions.leaves_out() || size > LARGEST_BATCH {
            left.push(key.clone());
        } else if let Some(found) = found {
            items.push(object(&found.item));
        }
    }
    if throttled == keys.len() {
        return Err(Refusal::nothing_read());
    }
    let mut response = json!({ "Responses": { table.as_str(): items }, "UnprocessedKeys": {} });
    if !left.is_empty() {
        let mut rest = json!({ "Keys": left });
        if let Some(consistent) = request.member("ConsistentRead") {
            rest["ConsistentRead"] = consistent.clone();
        }
        response["UnprocessedKeys"][table] = rest;
    }
    Ok(response)
}

/// The copy of the items that a read of the table uses.
pub(super) fn view(request: Request<'_>) -> Result<View, Invalid> {
    Ok(if request.flag("ConsistentRead")? == Some(true) { View::Present } else { View::Replica })
}
