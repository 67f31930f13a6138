//! Conditions on an item: for writing it, or for giving it among those that a query or a scan finds.

use super::value::{Path, Value};

/// A condition. If it does not hold, a write is lost and changes nothing, and a query leaves the item out.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// An attribute is there and compares so with a value.
    Is(Path, Comparison, Value),
    /// A text begins so.
    BeginsWith(Path, Value),
    /// An attribute is not there.
    Absent(Path),
    /// An attribute is there.
    Present(Path),
    /// One of these holds.
    Any(Vec<Condition>),
    /// All of these hold.
    All(Vec<Condition>),
}

/// How an attribute compares with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// It is equal.
    Equal,
    /// It is less.
    Less,
    /// It is less or equal.
    AtMost,
    /// It is more.
    More,
    /// It is more or equal.
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

/// The attribute is there.
pub fn present(attribute: impl Into<Path>) -> Condition {
    Condition::Present(attribute.into())
}

/// The attribute is not there.
pub fn absent(attribute: impl Into<Path>) -> Condition {
    Condition::Absent(attribute.into())
}

/// The attribute is a text that begins so.
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
    /// The attribute has this value.
    is = Equal,
    /// The attribute is less than this value.
    less = Less,
    /// The attribute is this value or less.
    at_most = AtMost,
    /// The attribute is more than this value.
    more = More,
    /// The attribute is this value or more.
    at_least = AtLeast,
}

impl Condition {
    /// This one or another.
    pub fn or(self, other: Condition) -> Condition {
        Self::Any(vec![self, other])
    }

    /// This one and another.
    pub fn and(self, other: Condition) -> Condition {
        Self::All(vec![self, other])
    }
}
