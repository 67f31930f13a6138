//! Attribute values in DynamoDB's JSON format, comparisons between them, and paths into them.

use std::{cmp::Ordering, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    Item,
    decimal::{self, Decimal},
    refusal::{Checked, Invalid},
};

/// DynamoDB's limit on the nesting of maps and lists.
const MOST_LEVELS: u32 = 32;

/// The path to an attribute, or to part of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Path<'a> {
    pub root: &'a str,
    pub steps: Vec<Step<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step<'a> {
    Member(&'a str),
    Element(usize),
}

/// An item as JSON.
pub(super) fn object(item: &Item) -> Value {
    Value::Object(item.iter().map(|(name, value)| (name.to_string(), Value::clone(value))).collect())
}

fn typed(value: &Value) -> Checked<(&str, &Value)> {
    let mut members = value.as_object().into_iter().flatten();
    match (members.next(), members.next()) {
        (Some((kind, content)), None) => Ok((kind, content)),
        _ => Err(Invalid(format!("a value must have exactly one type: {value}"))),
    }
}

/// A value, as the table stores it. As in DynamoDB, numbers become decimals without superfluous digits.
pub(super) fn stored(value: &Value) -> Checked<Value> {
    stored_at(value, 0)
}

fn stored_at(value: &Value, level: u32) -> Checked<Value> {
    if level > MOST_LEVELS {
        return Err(Invalid("Nesting Levels have exceeded supported limits".to_owned()));
    }
    match typed(value)? {
        // Bytes stay in Base64, since they are only compared for equality.
        ("S" | "B", Value::String(_)) | ("BOOL", Value::Bool(_)) | ("NULL", Value::Bool(true)) => Ok(value.clone()),
        ("N", Value::String(text)) if decimal::is_plain(text) => Ok(value.clone()),
        ("N", Value::String(text)) => match Decimal::read(text) {
            Some(number) => Ok(json!({ "N": number.to_string() })),
            None => Err(Invalid(format!("The parameter cannot be converted to a numeric value: {text}"))),
        },
        ("L", Value::Array(elements)) => {
            let elements = elements.iter().map(|element| stored_at(element, level + 1)).collect::<Checked<Vec<_>>>()?;
            Ok(json!({ "L": elements }))
        }
        ("M", Value::Object(members)) => {
            let member = |(name, value): (&String, &Value)| Ok((name.clone(), stored_at(value, level + 1)?));
            let members = members.iter().map(member).collect::<Checked<Map<_, _>>>()?;
            Ok(json!({ "M": members }))
        }
        (kind, _) => Err(Invalid::unknown("type of a value", format_args!("{kind} in {value}"))),
    }
}

/// An item, as the table stores it.
pub(super) fn stored_item(members: &Map<String, Value>) -> Checked<Item> {
    members.iter().map(|(name, value)| Ok((name.as_str().into(), Arc::new(stored(value)?)))).collect()
}

/// The string in a value; `None` for another type.
pub(super) fn text(value: &Value) -> Option<&str> {
    value.get("S")?.as_str()
}

/// Whether two values are equal.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (typed(one), typed(other)) {
        (Ok(("N", one)), Ok(("N", other))) => ordered("N", one, other) == Some(Ordering::Equal),
        (Ok(("L", Value::Array(one))), Ok(("L", Value::Array(other)))) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Ok(("M", Value::Object(one))), Ok(("M", Value::Object(other)))) => {
            let has = |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// The order of two strings or two numbers; `None` for any other values.
pub(super) fn compared(one: &Value, other: &Value) -> Option<Ordering> {
    let (kind, one) = typed(one).ok()?;
    ordered(kind, one, other.get(kind)?)
}

fn ordered(kind: &str, one: &Value, other: &Value) -> Option<Ordering> {
    let one = one.as_str()?;
    let other = other.as_str()?;
    match kind {
        "S" => Some(one.cmp(other)),
        "N" => decimal::order(one, other),
        _ => None,
    }
}

/// An item's size according to DynamoDB's rules.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
pub(super) fn item_size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + size(value)).sum()
}

fn size(value: &Value) -> usize {
    match typed(value) {
        Ok(("S", Value::String(text))) => text.len(),
        Ok(("B", Value::String(text))) => text.len() / 4 * 3,
        Ok(("N", Value::String(text))) => text.len().div_ceil(2) + 1,
        Ok(("L", Value::Array(elements))) => 3 + elements.iter().map(|element| 1 + size(element)).sum::<usize>(),
        Ok(("M", Value::Object(members))) => {
            3 + members.iter().map(|(name, value)| 1 + name.len() + size(value)).sum::<usize>()
        }
        _ => 1,
    }
}

impl Path<'_> {
    /// The value at this path.
    pub fn of<'i>(&self, item: &'i Item) -> Option<&'i Value> {
        self.steps.iter().try_fold(item.get(self.root)?.as_ref(), |value, step| match step {
            Step::Member(name) => value.get("M")?.get(name),
            Step::Element(position) => value.get("L")?.get(position),
        })
    }

    /// Sets the value at this path. The map or list that contains it must exist. An element beyond a list's end is
    /// appended.
    pub fn set(&self, item: &mut Item, value: Value) -> Checked<()> {
        let Some(last) = self.steps.last() else {
            match item.get_mut(self.root) {
                Some(present) => *present = Arc::new(value),
                None => {
                    item.insert(self.root.into(), Arc::new(value));
                }
            }
            return Ok(());
        };
        match (last, self.parent(item)?) {
            (Step::Member(name), Value::Object(members)) => {
                members.insert((*name).to_owned(), value);
            }
            (Step::Element(position), Value::Array(elements)) => match elements.get_mut(*position) {
                Some(element) => *element = value,
                None => elements.push(value),
            },
            _ => return Err(wrong_path()),
        }
        Ok(())
    }

    /// Removes the value at this path, if it exists.
    pub fn remove(&self, item: &mut Item) -> Checked<()> {
        let Some(last) = self.steps.last() else {
            item.remove(self.root);
            return Ok(());
        };
        match (last, self.parent(item)?) {
            (Step::Member(name), Value::Object(members)) => {
                members.remove(*name);
            }
            (Step::Element(position), Value::Array(elements)) => {
                if *position < elements.len() {
                    elements.remove(*position);
                }
            }
            _ => return Err(wrong_path()),
        }
        Ok(())
    }

    /// The contents of the map or list that contains the last step of this path.
    fn parent<'i>(&self, item: &'i mut Item) -> Checked<&'i mut Value> {
        let content = |value: &'i mut Value, step: &Step<'_>| {
            value.get_mut(if matches!(step, Step::Member(_)) { "M" } else { "L" })
        };
        let mut steps = self.steps.iter();
        let mut found =
            item.get_mut(self.root).zip(steps.next()).and_then(|(value, step)| content(Arc::make_mut(value), step));
        let mut step = self.steps.first();
        for next in steps {
            let value = match (found, step) {
                (Some(members), Some(Step::Member(name))) => members.get_mut(*name),
                (Some(elements), Some(Step::Element(position))) => elements.get_mut(*position),
                _ => None,
            };
            found = value.and_then(|value| content(value, next));
            step = Some(next);
        }
        found.ok_or_else(wrong_path)
    }

    /// The list position where this path ends.
    pub fn position(&self) -> Option<usize> {
        match self.steps.last() {
            Some(Step::Element(position)) => Some(*position),
            _ => None,
        }
    }

    /// Whether one of the paths leads through the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.root == other.root && self.steps.iter().zip(&other.steps).all(|(one, other)| one == other)
    }
}

fn wrong_path() -> Invalid {
    Invalid("The document path provided in the update expression is invalid for update".to_owned())
}
