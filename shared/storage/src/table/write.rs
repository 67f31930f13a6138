//! Writes of one item, each written down once: alone, beside others in a shared call, or with others in a transaction.

use serde::{Serialize, de::DeserializeOwned};

use super::{
    condition::Condition,
    error::TableError,
    key::{Item, Key},
    value::{Path, Value, read_item, write_item},
};

/// One change of an attribute.
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

macro_rules! conditional {
    ($($write:ident),+) => {$(
        impl $write {
            /// Does so only if this holds, too.
            pub fn only_if(mut self, condition: Condition) -> Self {
                self.conditions.push(condition);
                self
            }
        }

        impl From<$write> for Write {
            fn from(write: $write) -> Self {
                Self::$write(write)
            }
        }
    )+};
}
conditional!(Change, Put, Delete);

/// The outcome of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written<T, L = T> {
    /// It is written; for a change that is read back, the item as it is now.
    Done(T),
    /// Its condition did not hold, and nothing was written; the item as it is, if there is one and the write gives it
    /// back.
    Lost(Option<L>),
}

impl<T, L> Written<T, L> {
    /// Whether it is written.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

impl<T> Written<T> {
    /// The same with another form of the item.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Written<U> {
        match self {
            Self::Done(value) => Written::Done(form(value)),
            Self::Lost(value) => Written::Lost(value.map(form)),
        }
    }

    /// The item that was read back; nothing when the write was lost.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::Lost(_) => None,
        }
    }
}

/// Writes of several items, all of them or none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transaction(pub(crate) Vec<Write>);

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
