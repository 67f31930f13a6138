//! Writing one item: in a separate call, in a transaction, or in a batch of statements.

use std::{slice, sync::Arc};

use serde_json::{Value, json};

use super::{
    Conditions, Item, ItemKey,
    condition::Condition,
    parser::{Parser, Placeholders},
    refusal::{Checked, Fault, Invalid, Refusal},
    request::Request,
    schema::Schema,
    store::Store,
    update::{self, Action},
    value::object,
};

const NAMES: &str = "ExpressionAttributeNames";
const VALUES: &str = "ExpressionAttributeValues";
const ON_LOSS: &str = "ReturnValuesOnConditionCheckFailure";

/// A write that affects one item.
#[derive(Debug)]
pub(super) struct Write<'a> {
    pub key: ItemKey,
    pub change: Change<'a>,
    pub condition: Option<Condition<'a>>,
    /// Whether a failed condition's error contains the item.
    pub returns_lost: bool,
}

#[derive(Debug)]
pub(super) enum Change<'a> {
    Put(Arc<Item>),
    Update(Vec<Action<'a>>),
    Delete,
}

/// The item after a write that its condition and format permit.
#[derive(Debug)]
pub(super) struct Prepared {
    key: ItemKey,
    item: Option<Arc<Item>>,
    /// Whether the write changes anything. Removing an item that does not exist changes nothing.
    writes: bool,
}

impl<'a> Write<'a> {
    pub fn put(schema: &Schema, request: &'a Value, also: &[&str]) -> Checked<Self> {
        let request = read(request, &["Item"], also)?;
        let (key, item) = schema.whole_item(request.object("Item")?)?;
        schema.check(&item)?;
        Self::of(request, key, Change::Put(Arc::new(item)), Placeholders::of(request.0)?)
    }

    pub fn update(schema: &Schema, request: &'a Value, also: &[&str]) -> Checked<Self> {
        let request = read(request, &["Key", "UpdateExpression"], also)?;
        let key = schema.key(request.needed("Key")?)?;
        let mut placeholders = Placeholders::of(request.0)?;
        let actions = match request.text("UpdateExpression")? {
            Some(text) => update::read_expression(&mut Parser::new(text, &mut placeholders))?,
            None => Vec::new(),
        };
        check_actions(schema, &actions)?;
        Self::of(request, key, Change::Update(actions), placeholders)
    }

    pub fn delete(schema: &Schema, request: &'a Value, also: &[&str]) -> Checked<Self> {
        let request = read(request, &["Key"], also)?;
        let key = schema.key(request.needed("Key")?)?;
        Self::of(request, key, Change::Delete, Placeholders::of(request.0)?)
    }

    fn of(request: Request<'a>, key: ItemKey, change: Change<'a>, mut placeholders: Placeholders<'a>) -> Checked<Self> {
        let condition = request.condition("ConditionExpression", &mut placeholders)?;
        placeholders.finish()?;
        let returns_lost = returns_lost(request)?;
        Ok(Self { key, change, condition, returns_lost })
    }

    /// Computes the item after this write, without writing it. Nothing is written yet.
    pub fn prepare(&self, store: &Store) -> Result<Prepared, Fault> {
        let before = store.present(&self.key);
        let item = before.map(Arc::as_ref);
        if self.condition.as_ref().is_some_and(|condition| !condition.holds(item)) {
            return Err(Fault::Lost(before.filter(|_| self.returns_lost).cloned()));
        }
        let schema = &store.schema;
        let after = match &self.change {
            Change::Put(item) => Some(item.clone()),
            Change::Update(actions) => {
                let new = || schema.key_item(&self.key);
                let item = item.map_or_else(|| update::apply(actions, &new()), |item| update::apply(actions, item))?;
                schema.check(&item)?;
                Some(Arc::new(item))
            }
            Change::Delete => None,
        };
        Ok(Prepared { key: self.key.clone(), writes: before.is_some() || after.is_some(), item: after })
    }

    /// Performs this write alone, and returns the item before and after it.
    pub fn carry_out(
        &self,
        store: &mut Store,
        now: u64,
        conditions: &mut dyn Conditions,
    ) -> Result<[Option<Arc<Item>>; 2], Fault> {
        if conditions.throttles(&self.key, None, true) {
            return Err(Fault::Throttled);
        }
        if conditions.conflicts(slice::from_ref(&self.key)) {
            return Err(Fault::Conflict);
        }
        let before = store.present(&self.key).cloned();
        let prepared = self.prepare(store)?;
        if prepared.is_held_up(store, conditions) {
            return Err(Fault::Throttled);
        }
        let after = prepared.item.clone();
        prepared.commit(store, now, conditions);
        Ok([before, after])
    }
}

impl Prepared {
    /// Whether an index partition in which this write changes an entry is throttled: DynamoDB then also throttles the
    /// write to the table. <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/gsi-throttling.html>
    pub fn is_held_up(&self, store: &Store, conditions: &mut dyn Conditions) -> bool {
        let before = store.present(&self.key);
        store.schema.indexes.iter().any(|index| {
            let entry = |item: Option<&Arc<Item>>| {
                item.and_then(|item| index.entry(item)).map(|(partition, _)| partition.to_owned())
            };
            let after = entry(self.item.as_ref());
            let before = entry(before).filter(|before| Some(before) != after.as_ref());
            let mut partitions = before.into_iter().chain(after);
            partitions.any(|partition| conditions.throttles(&(partition, String::new()), Some(&index.name), true))
        })
    }

    pub fn commit(self, store: &mut Store, now: u64, conditions: &mut dyn Conditions) {
        if self.writes {
            store.write(self.key, self.item, now, Some(conditions));
        }
    }
}

/// Handles `PutItem`, `UpdateItem` or `DeleteItem`.
pub(super) fn single(
    store: &mut Store,
    operation: &str,
    request: &Value,
    now: u64,
    conditions: &mut dyn Conditions,
) -> Result<Value, Refusal> {
    let also = ["ReturnValues"];
    let (write, returned) = match operation {
        "PutItem" => (Write::put(&store.schema, request, &also)?, ["NONE", "ALL_OLD", "ALL_OLD"]),
        "UpdateItem" => (Write::update(&store.schema, request, &also)?, ["NONE", "ALL_OLD", "ALL_NEW"]),
        _ => (Write::delete(&store.schema, request, &also)?, ["NONE", "ALL_OLD", "ALL_OLD"]),
    };
    let returned = match request.get("ReturnValues").and_then(Value::as_str) {
        Some(other) if !returned.contains(&other) => return Err(Invalid::unknown("ReturnValues", other).into()),
        returned => returned,
    };
    let [before, after] = write.carry_out(store, now, conditions)?;
    let item = match returned {
        Some("ALL_OLD") => before,
        Some("ALL_NEW") => after,
        _ => None,
    };
    Ok(item.map_or_else(|| json!({}), |item| json!({ "Attributes": object(&item) })))
}

fn read<'a>(request: &'a Value, needed: &[&str], also: &[&str]) -> Checked<Request<'a>> {
    let known = [&["TableName", "ConditionExpression", NAMES, VALUES, ON_LOSS], needed, also].concat();
    let request = Request::of(request, &known)?;
    request.needed("TableName")?;
    Ok(request)
}

/// Whether a failed condition's error should contain the item.
pub(super) fn returns_lost(request: Request<'_>) -> Checked<bool> {
    Ok(request.one_of(ON_LOSS, &["NONE", "ALL_OLD"])? == Some("ALL_OLD"))
}

/// Checks that an update does not change the key.
pub(super) fn check_actions(schema: &Schema, actions: &[Action<'_>]) -> Checked<()> {
    let is_key = |action: &&Action<'_>| [&schema.partition, &schema.sort].iter().any(|key| *key == action.path.root);
    match actions.iter().find(is_key) {
        Some(action) => {
            Err(Invalid(format!("Cannot update attribute {}. This attribute is part of the key", action.path.root)))
        }
        None => Ok(()),
    }
}
