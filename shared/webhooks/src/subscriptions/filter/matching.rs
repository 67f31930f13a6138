//! Whether data matches a pattern. Each node of a pattern is compared once with each value at its path. This can mean a
//! hundred comparisons for each of a hundred thousand values, so the steps are counted and limited.

use std::cmp::Ordering;

use super::{
    data::{DataLeaf, DataValue, EventData, Leaf, Object},
    decimal::Decimal,
    pattern::{Comparison, Condition, Node, Pattern, TextTest},
};

/// The number of bytes of a string that one step compares.
const BYTES_OF_STEP: usize = 64;
/// The steps that starting on an array takes: its elements are elsewhere in memory.
const STEPS_OF_ARRAY: usize = 5;

/// The steps left for comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps(pub u32);

/// A comparison needs more steps than are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the comparison takes too many steps")]
pub struct TooManySteps;

/// The outcome of comparing an event with a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterOutcome {
    /// The event passes the filter.
    Matches,
    /// The event does not pass.
    Differs,
    /// The comparison would take too many steps, so the event is delivered: a receiver can ignore an event, but cannot
    /// notice a missing one.
    TooManySteps,
}

impl FilterOutcome {
    /// Whether the event is delivered.
    pub fn delivers(self) -> bool {
        self != Self::Differs
    }
}

/// Whether something matches, if the steps were enough to find out.
pub type Compared = Result<bool, TooManySteps>;

impl Steps {
    fn take(&mut self, steps: usize) -> Result<(), TooManySteps> {
        let left = u32::try_from(steps).ok().and_then(|steps| self.0.checked_sub(steps));
        self.0 = left.unwrap_or(0);
        left.map(drop).ok_or(TooManySteps)
    }

    /// Takes the steps for a comparison with a string of this length.
    fn take_for(&mut self, text: &str) -> Result<(), TooManySteps> {
        self.take(1 + text.len() / BYTES_OF_STEP)
    }
}

impl Pattern {
    /// Whether an event's data matches.
    ///
    /// # Errors
    /// If the comparison takes more steps than are left.
    pub fn matches(&self, data: &EventData<'_>, steps: &mut Steps) -> Compared {
        self.matches_value(Some(&data.0), steps)
    }

    /// Whether a value matches. One element of an array must match as a whole. A value without members matches like an
    /// empty object, so that `exists: false` is true within a missing object.
    fn matches_value(&self, value: Option<&DataValue<'_>>, steps: &mut Steps) -> Compared {
        match value {
            Some(DataValue::Object(object)) => self.matches_object(object, steps),
            Some(DataValue::Array(elements)) if !elements.is_empty() => {
                steps.take(STEPS_OF_ARRAY)?;
                any(elements, |element| self.matches_value(Some(element), steps))
            }
            _ => self.matches_object(&Object::new(), steps),
        }
    }

    fn matches_object(&self, object: &Object<'_>, steps: &mut Steps) -> Compared {
        steps.take(1)?;
        for (name, node) in &self.members {
            steps.take_for(name)?;
            if !node.matches(object.get(name.as_str()), steps)? {
                return Ok(false);
            }
        }
        match &self.any_of {
            Some(alternatives) => any(alternatives, |pattern| pattern.matches_object(object, steps)),
            None => Ok(true),
        }
    }
}

impl Node {
    fn matches(&self, value: Option<&DataValue<'_>>, steps: &mut Steps) -> Compared {
        match self {
            Self::Within(pattern) => pattern.matches_value(value, steps),
            Self::OneOf(conditions) => {
                steps.take(conditions.len())?;
                let exists =
                    |condition: &Condition| matches!(condition, Condition::Exists(is) if value.is_some() == *is);
                match value {
                    _ if conditions.iter().any(exists) => Ok(true),
                    Some(value) => has_a_leaf(value, conditions, steps),
                    None => Ok(false),
                }
            }
        }
    }
}

/// Whether the value, or an element of an array at any depth, satisfies one of the conditions.
fn has_a_leaf(value: &DataValue<'_>, conditions: &[Condition], steps: &mut Steps) -> Compared {
    steps.take(1)?;
    match value {
        DataValue::Leaf(leaf) => any(conditions, |condition| condition.accepts(leaf, steps)),
        DataValue::Array(elements) => {
            steps.take(STEPS_OF_ARRAY)?;
            any(elements, |element| has_a_leaf(element, conditions, steps))
        }
        DataValue::Object(_) | DataValue::Unreadable => Ok(false),
    }
}

impl Condition {
    fn accepts(&self, tested: &DataLeaf<'_>, steps: &mut Steps) -> Compared {
        Ok(match self {
            Self::Equals(wanted) => {
                steps.take_for(if let Leaf::Text(text) = wanted { text } else { "" })?;
                *wanted == tested.leaf
            }
            Self::Text(test) => {
                steps.take_for(test.text())?;
                test.accepts(tested)
            }
            Self::Numeric(comparisons) => {
                steps.take(comparisons.len())?;
                tested.number().is_some_and(|number| is_in_range(comparisons, number))
            }
            Self::AnythingBut(refused) => !any(refused, |condition| condition.accepts(tested, steps))?,
            Self::Exists(_) => false,
        })
    }
}

impl TextTest {
    fn text(&self) -> &str {
        match self {
            Self::Prefix(text) | Self::Suffix(text) | Self::EqualsIgnoringCase(text) => text,
        }
    }

    fn accepts(&self, tested: &DataLeaf<'_>) -> bool {
        match (self, &tested.leaf) {
            (Self::Prefix(prefix), Leaf::Text(text)) => text.starts_with(prefix.as_str()),
            (Self::Suffix(suffix), Leaf::Text(text)) => text.ends_with(suffix.as_str()),
            (Self::EqualsIgnoringCase(lower), _) => tested.lower() == Some(lower),
            _ => false,
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

/// Whether the test holds for one of the items. Stops at the first item for which it holds or fails.
fn any<T>(items: impl IntoIterator<Item = T>, mut test: impl FnMut(T) -> Compared) -> Compared {
    for item in items {
        if test(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}
