//! A plain evaluation of patterns, without a limit, a cache or a custom JSON parser. Tests compare the filters with it.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::value::RawValue;

use super::{
    data::{DataValue, Leaf},
    decimal::Decimal,
    pattern::{Comparison, Condition, Node, Pattern, TextTest},
};

/// Reads data with serde, level by level.
pub fn read(json: &RawValue) -> DataValue<'_> {
    let text = json.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            serde_json::from_str::<BTreeMap<String, &RawValue>>(text).map_or(DataValue::Unreadable, |members| {
                DataValue::Object(members.into_iter().map(|(name, value)| (Cow::Owned(name), read(value))).collect())
            })
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).expect("an array");
            DataValue::Array(elements.into_iter().map(read).collect())
        }
        _ => Leaf::read(text).map_or(DataValue::Unreadable, |leaf| DataValue::Leaf(leaf.into())),
    }
}

/// Whether the data matches.
pub fn matches(pattern: &Pattern, data: &RawValue) -> bool {
    value_matches(pattern, Some(&read(data)))
}

fn value_matches(pattern: &Pattern, value: Option<&DataValue<'_>>) -> bool {
    match value {
        Some(DataValue::Array(elements)) if !elements.is_empty() => {
            elements.iter().any(|element| value_matches(pattern, Some(element)))
        }
        value => object_matches(pattern, value),
    }
}

fn object_matches(pattern: &Pattern, value: Option<&DataValue<'_>>) -> bool {
    let member = |name: &str| if let Some(DataValue::Object(members)) = value { members.get(name) } else { None };
    let all = pattern.members.iter().all(|(name, node)| match (node, member(name)) {
        (Node::Within(inner), value) => value_matches(inner, value),
        (Node::OneOf(conditions), value) => {
            let exists = Condition::Exists(value.is_some());
            conditions.contains(&exists)
                || leaves(value).iter().any(|leaf| conditions.iter().any(|condition| accepts(condition, leaf)))
        }
    });
    let any_of = pattern.any_of.as_ref();
    all && any_of.is_none_or(|patterns| patterns.iter().any(|pattern| object_matches(pattern, value)))
}

/// The leaf, or the leaves of an array at any depth.
fn leaves<'v, 'a>(value: Option<&'v DataValue<'a>>) -> Vec<&'v Leaf<'a>> {
    match value {
        Some(DataValue::Leaf(leaf)) => vec![&leaf.leaf],
        Some(DataValue::Array(elements)) => elements.iter().flat_map(|element| leaves(Some(element))).collect(),
        _ => Vec::new(),
    }
}

fn accepts(condition: &Condition, leaf: &Leaf<'_>) -> bool {
    match (condition, leaf) {
        (Condition::Equals(wanted), leaf) => wanted == leaf,
        (Condition::AnythingBut(refused), leaf) => refused.iter().all(|condition| !accepts(condition, leaf)),
        (Condition::Text(TextTest::Prefix(prefix)), Leaf::Text(text)) => text.starts_with(prefix.as_str()),
        (Condition::Text(TextTest::Suffix(suffix)), Leaf::Text(text)) => text.ends_with(suffix.as_str()),
        (Condition::Text(TextTest::EqualsIgnoringCase(lower)), Leaf::Text(text)) => text.to_lowercase() == *lower,
        (Condition::Numeric(comparisons), Leaf::Number(number)) => is_in_range(comparisons, number),
        (Condition::Numeric(comparisons), Leaf::Text(text)) => {
            Decimal::of_text(text).is_some_and(|number| is_in_range(comparisons, &number))
        }
        _ => false,
    }
}

fn is_in_range(comparisons: &[(Comparison, Decimal)], number: &Decimal) -> bool {
    comparisons.iter().all(|(comparison, limit)| match comparison {
        Comparison::Less => number < limit,
        Comparison::LessOrEqual => number <= limit,
        Comparison::Equal => number == limit,
        Comparison::GreaterOrEqual => number >= limit,
        Comparison::Greater => number > limit,
    })
}
