//! Conditions on an item, for writes, queries and scans.

use super::value::{Path, Value};

/// A condition. If it does not hold, a write is lost and changes nothing, and a query leaves the item out.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// The attribute exists, and the comparison with the value holds.
    Is(Path, Comparison, Value),
    /// The attribute is a string with this prefix.
    BeginsWith(Path, Value),
    /// The attribute does not exist.
    Absent(Path),
    /// The attribute exists.
    Present(Path),
    /// At least one condition holds.
    Any(Vec<Condition>),
    /// All conditions hold.
    All(Vec<Condition>),
}

/// A comparison of an attribute with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Equal to the value.
    Equal,
    /// Less than the value.
    Less,
    /// Less than or equal to the value.
    AtMost,
    /// Greater than the value.
    More,
    /// Greater than or equal to the value.
    AtLeast,
}

impl Comparison {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
        }
    }
}

/// The item exists.
pub fn exists() -> Condition {
    present("pk")
}

/// The item does not exist.
pub fn is_new() -> Condition {
    absent("pk")
}

/// The attribute exists.
pub fn present(attribute: impl Into<Path>) -> Condition {
    Condition::Present(attribute.into())
}

/// The attribute does not exist.
pub fn absent(attribute: impl Into<Path>) -> Condition {
    Condition::Absent(attribute.into())
}

/// The attribute is a string with this prefix.
pub fn begins_with(attribute: impl Into<Path>, prefix: impl Into<Value>) -> Condition {
    Condition::BeginsWith(attribute.into(), prefix.into())
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident = $comparison:ident,)+) => {
        $($(#[$doc])*
        pub fn $name(attribute: impl Into<Path>, value: impl Into<Value>) -> Condition {
            Condition::Is(attribute.into(), Comparison::$comparison, value.into())
        })+
    };
}
comparisons! {
    /// The attribute is equal to this value.
    is = Equal,
    /// The attribute is less than this value.
    less = Less,
    /// The attribute is less than or equal to this value.
    at_most = AtMost,
    /// The attribute is greater than this value.
    more = More,
    /// The attribute is greater than or equal to this value.
    at_least = AtLeast,
}

impl Condition {
    /// This condition or another.
    pub fn or(self, other: Condition) -> Condition {
        Self::Any(vec![self, other])
    }

    /// This condition and another.
    pub fn and(self, other: Condition) -> Condition {
        Self::All(vec![self, other])
    }
}
