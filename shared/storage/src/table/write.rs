//! Writes of one item, each written down once: alone, beside others in a shared call, or with others in a transaction.

use serde::{Serialize, de::DeserializeOwned};

use super::{
    error::TableError,
    key::{Item, Key},
    value::{Path, Value, read_item, write_item},
};

/// What must hold for a write. One that does not hold loses the write, and nothing is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// An attribute is there and compares so with a value.
    Is(Path, Comparison, Value),
    /// A text begins so.
    BeginsWith(Path, Value),
    /// A text contains another.
    Contains(Path, Value),
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
    /// It is another.
    Different,
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
            Self::Different => "<>",
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

/// The attribute is a text that contains this one.
pub fn contains(attribute: impl Into<Path>, part: impl Into<Value>) -> Condition {
    Condition::Contains(attribute.into(), part.into())
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
    /// The attribute has another value.
    differs = Different,
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

/// What a change does to an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Assignment {
    Set(Path, Value),
    SetIfAbsent(Path, Value),
    Add(Path, Value),
    Remove(Path),
}

/// A change of some attributes of one item. Without a condition it also makes the item, where there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub(super) key: Key,
    pub(super) assignments: Vec<Assignment>,
    pub(super) conditions: Vec<Condition>,
}

impl Change {
    /// A change of the item with this key, which does nothing yet.
    pub fn of(key: impl Into<Key>) -> Self {
        Self { key: key.into(), assignments: Vec::new(), conditions: Vec::new() }
    }

    /// Sets an attribute.
    pub fn set(mut self, attribute: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.assignments.push(Assignment::Set(attribute.into(), value.into()));
        self
    }

    /// Sets an attribute, or leaves it as it is.
    pub fn set_some(self, attribute: impl Into<Path>, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(attribute, value),
            None => self,
        }
    }

    /// Sets an attribute, or removes it.
    pub fn set_or_remove(self, attribute: impl Into<Path>, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(attribute, value),
            None => self.remove(attribute),
        }
    }

    /// Sets an attribute where it is not there yet.
    pub fn set_if_absent(mut self, attribute: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.assignments.push(Assignment::SetIfAbsent(attribute.into(), value.into()));
        self
    }

    /// Adds to a number; one that is not there counts as 0.
    pub fn add(mut self, attribute: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.assignments.push(Assignment::Add(attribute.into(), value.into()));
        self
    }

    /// Removes an attribute.
    pub fn remove(mut self, attribute: impl Into<Path>) -> Self {
        self.assignments.push(Assignment::Remove(attribute.into()));
        self
    }

    /// Does so only if this holds, too.
    pub fn only_if(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }
}

/// A whole item, written in the place of any that has its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    pub(super) item: Item,
    pub(super) conditions: Vec<Condition>,
}

impl Put {
    /// This item, with `pk` and `sk` among its members.
    pub fn item(item: &impl Serialize, doing: &'static str) -> Result<Self, TableError> {
        Ok(Self { item: write_item(item, doing)?, conditions: Vec::new() })
    }

    /// The same in the place of this key, for an item whose type does not name its key.
    pub fn at(key: impl Into<Key>, item: &impl Serialize, doing: &'static str) -> Result<Self, TableError> {
        let mut put = Self::item(item, doing)?;
        put.item.extend(key.into().attributes());
        Ok(put)
    }

    /// The same with one more attribute.
    pub fn with(mut self, attribute: impl Into<String>, value: impl Into<Value>) -> Self {
        self.item.insert(attribute.into(), value.into().0);
        self
    }

    /// The item as it is read once it is written.
    pub fn read_back<T: DeserializeOwned>(&self, doing: &'static str) -> Result<T, TableError> {
        read_item(self.item.clone(), doing)
    }

    /// Does so only if this holds, too.
    pub fn only_if(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }
}

/// The removal of one item. Without a condition, one that is not there counts as removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    pub(super) key: Key,
    pub(super) conditions: Vec<Condition>,
}

impl Delete {
    /// The removal of the item with this key.
    pub fn of(key: impl Into<Key>) -> Self {
        Self { key: key.into(), conditions: Vec::new() }
    }

    /// Does so only if this holds, too.
    pub fn only_if(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }
}

/// A write of one item.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Some attributes.
    Change(Change),
    /// The whole item.
    Put(Put),
    /// Its removal.
    Delete(Delete),
}

impl From<Change> for Write {
    fn from(change: Change) -> Self {
        Self::Change(change)
    }
}

impl From<Put> for Write {
    fn from(put: Put) -> Self {
        Self::Put(put)
    }
}

impl From<Delete> for Write {
    fn from(delete: Delete) -> Self {
        Self::Delete(delete)
    }
}

/// How a conditional write ended that the table did not refuse as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written<T> {
    /// It is written; for a change that is read back, the item as it is now.
    Done(T),
    /// Its condition did not hold, and nothing was written; the item as it is, if there is one and the write gives it back.
    Lost(Option<T>),
}

impl<T> Written<T> {
    /// Whether it is written.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// The same with another form of the item.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Written<U> {
        match self {
            Self::Done(value) => Written::Done(form(value)),
            Self::Lost(value) => Written::Lost(value.map(form)),
        }
    }

    /// What was read back of it; nothing when it was lost.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::Lost(_) => None,
        }
    }
}

/// Writes of several items, all of them or none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transaction(pub(super) Vec<Write>);

impl Transaction {
    /// One without a write yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more write.
    pub fn with(mut self, write: impl Into<Write>) -> Self {
        self.0.push(write.into());
        self
    }

    /// The same with these writes, too.
    pub fn with_all<W: Into<Write>>(mut self, writes: impl IntoIterator<Item = W>) -> Self {
        self.0.extend(writes.into_iter().map(Into::into));
        self
    }
}
