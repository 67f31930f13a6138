//! Whether data match a pattern. Each node of a pattern is compared once with each value at its path, so the time is
//! limited by the sizes of both.

use std::{borrow::Cow, cell::OnceCell, cmp::Ordering, collections::BTreeMap};

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

    /// Whether a value matches. One element of an array must match as a whole. A value without members matches like an
    /// empty object, so that `exists: false` is true within a missing object.
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
            Self::OneOf(conditions) => {
                let exists =
                    |condition: &Condition| matches!(condition, Condition::Exists(is) if value.is_some() == *is);
                conditions.iter().any(exists) || value.is_some_and(|value| has_a_leaf(value, conditions))
            }
        }
    }
}

/// Whether the value, or an element of an array at any depth, fulfils one of the conditions.
fn has_a_leaf(value: &DataValue<'_>, conditions: &[Condition]) -> bool {
    match value {
        DataValue::Leaf(leaf) => {
            let leaf = TestedLeaf::of(leaf);
            conditions.iter().any(|condition| condition.accepts(&leaf))
        }
        DataValue::Array(elements) => elements.iter().any(|element| has_a_leaf(element, conditions)),
        DataValue::Object(_) | DataValue::Unreadable => false,
    }
}

/// A value that is compared with many conditions, and its conversions for some of them, made at most once.
struct TestedLeaf<'a> {
    leaf: &'a Leaf<'a>,
    number: OnceCell<Option<Decimal>>,
    lower: OnceCell<String>,
}

impl<'a> TestedLeaf<'a> {
    fn of(leaf: &'a Leaf<'a>) -> Self {
        Self { leaf, number: OnceCell::new(), lower: OnceCell::new() }
    }

    /// The value as a number. The catalogue's amounts are texts.
    fn number(&self) -> Option<&Decimal> {
        match self.leaf {
            Leaf::Number(number) => Some(number),
            Leaf::Text(text) => self.number.get_or_init(|| Decimal::of_text(text)).as_ref(),
            Leaf::Null | Leaf::Bool(_) => None,
        }
    }
}

impl Condition {
    fn accepts(&self, tested: &TestedLeaf<'_>) -> bool {
        match (self, tested.leaf) {
            (Self::Equals(wanted), leaf) => wanted == leaf,
            (Self::Text(TextTest::Prefix(prefix)), Leaf::Text(text)) => text.starts_with(prefix.as_str()),
            (Self::Text(TextTest::Suffix(suffix)), Leaf::Text(text)) => text.ends_with(suffix.as_str()),
            (Self::Text(TextTest::EqualsIgnoringCase(lower)), Leaf::Text(text)) => {
                tested.lower.get_or_init(|| text.to_lowercase()) == lower
            }
            (Self::Numeric(comparisons), _) => tested.number().is_some_and(|number| is_in_range(comparisons, number)),
            (Self::AnythingBut(refused), _) => !refused.iter().any(|condition| condition.accepts(tested)),
            (Self::Text(_) | Self::Exists(_), _) => false,
        }
    }
}

fn is_in_range(comparisons: &[(Comparison, Decimal)], number: &Decimal) -> bool {
    comparisons.iter().all(|(comparison, limit)| comparison.accepts(number.cmp(limit)))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred conditions may meet a hundred thousand values.
    #[test]
    fn a_value_is_read_once_for_all_conditions() {
        let text = Leaf::Text("830.00".into());
        let leaf = TestedLeaf::of(&text);
        let numbers = [leaf.number(), leaf.number()].map(|number| number.expect("it is a number"));
        assert!(std::ptr::eq(numbers[0], numbers[1]));
        let lower = Condition::Text(TextTest::EqualsIgnoringCase("830.00".into()));
        assert!(leaf.lower.get().is_none() && lower.accepts(&leaf) && leaf.lower.get().is_some());
    }
}
