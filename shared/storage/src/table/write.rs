//! Writes of one item, which can be sent alone, in a batch, or in a transaction.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    condition::Condition,
    error::TableError,
    key::{Item, Key},
    value::{Path, Value, read_item, write_item},
};

/// One change to an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Assignment {
    Set(Path, Value),
    SetIfAbsent(Path, Value),
    Add(Path, Value),
    Remove(Path),
}

/// A change to some of an item's attributes. Without a condition, it also creates a missing item.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub(super) key: Key,
    pub(super) assignments: Vec<Assignment>,
    pub(super) conditions: Vec<Condition>,
}

impl Change {
    /// A change to the item with this key, with no assignments yet.
    pub fn of(key: impl Into<Key>) -> Self {
        Self { key: key.into(), assignments: Vec::new(), conditions: Vec::new() }
    }

    /// Sets an attribute.
    pub fn set(mut self, attribute: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.assignments.push(Assignment::Set(attribute.into(), value.into()));
        self
    }

    /// Sets an attribute to a value, or leaves it unchanged for `None`.
    pub fn set_some(self, attribute: impl Into<Path>, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(attribute, value),
            None => self,
        }
    }

    /// Sets an attribute to a value, or removes it for `None`.
    pub fn set_or_remove(self, attribute: impl Into<Path>, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(attribute, value),
            None => self.remove(attribute),
        }
    }

    /// Sets an attribute if it does not exist yet.
    pub fn set_if_absent(mut self, attribute: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.assignments.push(Assignment::SetIfAbsent(attribute.into(), value.into()));
        self
    }

    /// Adds to a number. A missing number counts as 0.
    pub fn add(mut self, attribute: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.assignments.push(Assignment::Add(attribute.into(), value.into()));
        self
    }

    /// Removes an attribute.
    pub fn remove(mut self, attribute: impl Into<Path>) -> Self {
        self.assignments.push(Assignment::Remove(attribute.into()));
        self
    }

    /// Whether the change neither sets nor removes anything, which the table refuses.
    pub fn is_empty(&self) -> bool {
        self.assignments.is_empty()
    }

    /// Sets and removes the attributes that differ between two forms of an item with this key.
    pub fn between<T: Serialize>(
        key: impl Into<Key>,
        (old, new): (&T, &T),
        doing: &'static str,
    ) -> Result<Self, TableError> {
        let (mut old, new) = (write_item(old, doing)?, write_item(new, doing)?);
        let mut change = Self::of(key);
        // Sorted, so that equal changes are equal statements.
        for (attribute, value) in new.into_iter().collect::<BTreeMap<_, _>>() {
            if old.remove(&attribute).as_ref() != Some(&value) {
                change = change.set(attribute, Value(value));
            }
        }
        Ok(old.into_keys().collect::<BTreeSet<_>>().into_iter().fold(change, Self::remove))
    }

    /// The item as it would be in the table after this change. The change may only set and remove attributes.
    #[cfg(any(test, feature = "testing"))]
    pub fn applied<T: Serialize + DeserializeOwned>(&self, item: &T) -> T {
        let mut item = write_item(item, "applying a change").expect("an item");
        for assignment in &self.assignments {
            match assignment {
                Assignment::Set(path, Value(value)) => drop(item.insert(path.spelt(str::to_owned), value.clone())),
                Assignment::Remove(path) => drop(item.remove(&path.spelt(str::to_owned))),
                other => panic!("{other:?} is neither set nor removed"),
            }
        }
        read_item(item, "applying a change").expect("a readable item")
    }
}

/// A whole item, which replaces any item with the same key.
#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    pub(super) item: Item,
    pub(super) conditions: Vec<Condition>,
}

impl Put {
    /// The write of this item, whose members include `pk` and `sk`.
    pub fn item(item: &impl Serialize, doing: &'static str) -> Result<Self, TableError> {
        Ok(Self { item: write_item(item, doing)?, conditions: Vec::new() })
    }

    /// The write of this item under this key, for a type without `pk` and `sk`.
    pub fn at(key: impl Into<Key>, item: &impl Serialize, doing: &'static str) -> Result<Self, TableError> {
        let mut put = Self::item(item, doing)?;
        put.item.extend(key.into().attributes());
        Ok(put)
    }

    /// Adds an attribute.
    pub fn with(mut self, attribute: impl Into<String>, value: impl Into<Value>) -> Self {
        self.item.insert(attribute.into(), value.into().0);
        self
    }

    /// Parses the item as a later read would.
    pub fn read_back<T: DeserializeOwned>(&self, doing: &'static str) -> Result<T, TableError> {
        read_item(self.item.clone(), doing)
    }
}

/// The removal of one item. Without a condition, a missing item counts as removed.
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
    /// A change to some attributes.
    Change(Change),
    /// A write of the whole item.
    Put(Put),
    /// The removal of the item.
    Delete(Delete),
}

macro_rules! conditional {
    ($($write:ident),+) => {$(
        impl $write {
            /// Adds a condition.
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

/// A conditional write's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written<T> {
    /// The write succeeded. Contains the new item if the write returns it.
    Done(T),
    /// A condition did not hold, and nothing was written. Contains the existing item if the write returns it.
    Lost(Option<T>),
}

impl<T> Written<T> {
    /// Whether the write succeeded.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// The write also counts as done if the existing item is as the write left it: the write was carried out twice
    /// because the first response was lost.
    pub fn or_own(self, is_own: impl FnOnce(&T) -> bool) -> Self {
        match self {
            Self::Lost(Some(item)) if is_own(&item) => Self::Done(item),
            written => written,
        }
    }

    /// Converts the item.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Written<U> {
        match self {
            Self::Done(value) => Written::Done(form(value)),
            Self::Lost(value) => Written::Lost(value.map(form)),
        }
    }

    /// The new item; `None` if the write was lost.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::Lost(_) => None,
        }
    }
}

/// Writes to several items, all or none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transaction(pub(crate) Vec<Write>);

impl Transaction {
    /// A transaction without writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write.
    pub fn with(mut self, write: impl Into<Write>) -> Self {
        self.0.push(write.into());
        self
    }

    /// Adds several writes.
    pub fn with_all<W: Into<Write>>(mut self, writes: impl IntoIterator<Item = W>) -> Self {
        self.0.extend(writes.into_iter().map(Into::into));
        self
    }
}
