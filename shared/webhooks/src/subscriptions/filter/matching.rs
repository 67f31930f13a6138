//! Whether data match a pattern. Each node of a pattern is compared once with each value at its path, so the time is
//! limited by the sizes of both.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap};

use super::{
    data::{DataValue, EventData, Leaf},
    decimal::Decimal,
    pattern::{Comparison, Condition, Node, Pattern, TextTest},
};

type Object<'a> = BTreeMap<Cow<'a, str>, DataValue<'a>>;

impl Pattern {
    /// Whether the data of an event match.
    pub fn matches(&self, data: &EventData<'_>) -> bool {
        self.matches_value(Some(&data.0))
    }

    /// Whether a value matches. Of an array, one element must match as a whole. A value without members matches as an
    /// empty object does, so that `exists: false` is true within a missing object.
    fn matches_value(&self, value: Option<&DataValue<'_>>) -> bool {
        match value {
            Some(DataValue::Object(object)) => self.matches_object(object),
            Some(DataValue::Array(elements)) if !elements.is_empty() => {
                elements.iter().any(|element| self.matches_value(Some(element)))
            }
            _ => self.matches_object(&Object::new()),
        }
    }

    fn matches_object(&self, object: &Object<'_>) -> bool {
        let member = |(name, node): &(String, Node)| node.matches(object.get(name.as_str()));
        let alternatives = |patterns: &Vec<Self>| patterns.iter().any(|pattern| pattern.matches_object(object));
        self.members.iter().all(member) && self.any_of.as_ref().is_none_or(alternatives)
    }
}

impl Node {
    fn matches(&self, value: Option<&DataValue<'_>>) -> bool {
        match self {
            Self::Within(pattern) => pattern.matches_value(value),
            Self::OneOf(conditions) => conditions.iter().any(|condition| condition.matches(value)),
        }
    }
}

impl Condition {
    fn matches(&self, value: Option<&DataValue<'_>>) -> bool {
        match self {
            Self::Exists(wanted) => value.is_some() == *wanted,
            _ => value.is_some_and(|value| self.matches_a_leaf(value)),
        }
    }

    /// Whether the value, or an element of the array at any depth, fulfils the condition.
    fn matches_a_leaf(&self, value: &DataValue<'_>) -> bool {
        match value {
            DataValue::Leaf(leaf) => self.matches_leaf(leaf),
            DataValue::Array(elements) => elements.iter().any(|element| self.matches_a_leaf(element)),
            DataValue::Object(_) | DataValue::Unreadable => false,
        }
    }

    fn matches_leaf(&self, leaf: &Leaf<'_>) -> bool {
        match (self, leaf) {
            (Self::Equals(wanted), _) => wanted == leaf,
            (Self::Text(test), Leaf::Text(text)) => test.accepts(text),
            (Self::Numeric(comparisons), Leaf::Number(number)) => is_in_range(comparisons, number),
            // Amounts of the catalogue are texts.
            (Self::Numeric(comparisons), Leaf::Text(text)) => {
                Decimal::of_text(text).is_some_and(|number| is_in_range(comparisons, &number))
            }
            (Self::AnythingBut(refused), _) => !refused.iter().any(|condition| condition.matches_leaf(leaf)),
            (Self::Text(_) | Self::Numeric(_) | Self::Exists(_), _) => false,
        }
    }
}

fn is_in_range(comparisons: &[(Comparison, Decimal)], number: &Decimal) -> bool {
    comparisons.iter().all(|(comparison, limit)| comparison.accepts(number.cmp(limit)))
}

impl TextTest {
    fn accepts(&self, text: &str) -> bool {
        match self {
            Self::Prefix(prefix) => text.starts_with(prefix.as_str()),
            Self::Suffix(suffix) => text.ends_with(suffix.as_str()),
            Self::EqualsIgnoringCase(lower) => text.to_lowercase() == *lower,
        }
    }
}

impl Comparison {
    fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Equal => ordering.is_eq(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Greater => ordering.is_gt(),
        }
    }
}
