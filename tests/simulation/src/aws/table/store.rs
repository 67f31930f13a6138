//! The items with their recent versions, since someone who reads a copy may not see the latest version yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Conditions, Copy, Item, ItemKey, Version, schema::Schema, value::item_size};

/// The index of the replica among an item's copies. The indexes come after it.
const REPLICA: usize = 0;

/// The copy of the items that a read uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Present,
    Replica,
    Index(usize),
}

/// All items of the table. An item's earlier versions are kept until every copy has a later one.
#[derive(Debug)]
pub(super) struct Store {
    pub schema: Arc<Schema>,
    pub rows: BTreeMap<ItemKey, Row>,
    /// The items that may be in each index, by partition: those with a kept version that has these keys.
    pub candidates: Vec<BTreeMap<String, BTreeSet<(String, ItemKey)>>>,
    /// The items with an outdated copy, ordered by when all copies will have the latest version.
    unsettled: BTreeSet<(u64, ItemKey)>,
    pub log: Vec<Version>,
}

/// The versions of an item that are kept. The last one is the current state.
#[derive(Debug, Default)]
pub(super) struct Row {
    kept: Vec<Kept>,
}

#[derive(Debug)]
struct Kept {
    stored: Option<Stored>,
    /// When each copy receives this version. Empty once all copies have it.
    visible: Vec<u64>,
}

/// An item with its size, which counts towards the size of a page.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub item: Arc<Item>,
    pub size: usize,
}

impl Kept {
    fn is_visible(&self, copy: usize, now: u64) -> bool {
        self.visible.get(copy).is_none_or(|visible| *visible <= now)
    }

    fn is_settled(&self, now: u64) -> bool {
        self.visible.iter().all(|visible| *visible <= now)
    }
}

impl Row {
    pub fn present(&self) -> Option<&Stored> {
        self.kept.last()?.stored.as_ref()
    }

    /// The version of an item that this view shows; `None` if the view does not show the item.
    pub fn seen(&self, view: View, now: u64) -> Option<&Stored> {
        let copy = match view {
            View::Present => return self.present(),
            View::Replica => REPLICA,
            View::Index(index) => index + 1,
        };
        self.kept.iter().rev().find(|kept| kept.is_visible(copy, now))?.stored.as_ref()
    }
}

impl Store {
    pub fn new(schema: Schema) -> Self {
        let candidates = schema.indexes.iter().map(|_| BTreeMap::new()).collect();
        Self {
            schema: Arc::new(schema),
            rows: BTreeMap::new(),
            candidates,
            unsettled: BTreeSet::new(),
            log: Vec::new(),
        }
    }

    pub fn present(&self, key: &ItemKey) -> Option<&Arc<Item>> {
        Some(&self.rows.get(key)?.present()?.item)
    }

    pub fn seen(&self, key: &ItemKey, view: View, now: u64) -> Option<&Stored> {
        self.rows.get(key)?.seen(view, now)
    }

    /// Writes a version of an item, or removes the item. If `conditions` is `None`, the write is visible everywhere
    /// immediately.
    pub fn write(&mut self, key: ItemKey, item: Option<Arc<Item>>, now: u64, conditions: Option<&mut dyn Conditions>) {
        let row = self.rows.entry(key.clone()).or_default();
        let last = row.kept.last();
        let before = last.and_then(|kept| kept.stored.as_ref());
        let mut visible = Vec::new();
        if let Some(conditions) = conditions {
            visible.push(conditions.lag(Copy::Replica));
            visible.extend(self.schema.indexes.iter().map(|index| {
                let has = |item: &Item| index.entry(item).is_some();
                let is_concerned = before.is_some_and(|before| has(&before.item)) || item.as_deref().is_some_and(has);
                if is_concerned { conditions.lag(Copy::Index) } else { 0 }
            }));
        }
        visible.resize(self.schema.indexes.len() + 1, 0);
        for (copy, visible) in visible.iter_mut().enumerate() {
            let earlier = last.and_then(|kept| kept.visible.get(copy)).copied().unwrap_or_default();
            *visible = earlier.max(now.saturating_add(*visible));
        }
        if let Some(item) = &item {
            for (index, candidates) in self.schema.indexes.iter().zip(&mut self.candidates) {
                let Some(entry) = index.entry(item) else { continue };
                if before.and_then(|before| index.entry(&before.item)) != Some(entry) {
                    let (partition, sort) = entry;
                    candidates.entry(partition.to_owned()).or_default().insert((sort.to_owned(), key.clone()));
                }
            }
        }
        let settled_at = visible.iter().copied().max().unwrap_or_default();
        let stored = item.as_ref().map(|item| Stored { item: item.clone(), size: item_size(item) });
        row.kept.push(Kept { stored, visible });
        self.log.push(Version { at: now, key: key.clone(), item });
        self.settle(&key, now);
        if settled_at > now {
            self.unsettled.insert((settled_at, key));
        }
    }

    /// Drops the versions that no reader can see any more.
    pub fn settle_due(&mut self, now: u64) {
        while self.unsettled.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, key)) = self.unsettled.pop_first() {
                self.settle(&key, now);
            }
        }
    }

    fn settle(&mut self, key: &ItemKey, now: u64) {
        let Some(row) = self.rows.get_mut(key) else { return };
        let Some(settled) = row.kept.iter().rposition(|kept| kept.is_settled(now)) else { return };
        row.kept[settled].visible = Vec::new();
        let dropped: Vec<_> = row.kept.drain(..settled).filter_map(|kept| kept.stored).collect();
        for (index, candidates) in self.schema.indexes.iter().zip(&mut self.candidates) {
            for Stored { item, .. } in &dropped {
                let Some(entry) = index.entry(item) else { continue };
                let is_same =
                    |kept: &Kept| kept.stored.as_ref().and_then(|stored| index.entry(&stored.item)) == Some(entry);
                if row.kept.iter().any(is_same) {
                    continue;
                }
                let (partition, sort) = entry;
                if let Some(members) = candidates.get_mut(partition) {
                    members.remove(&(sort.to_owned(), key.clone()));
                    if members.is_empty() {
                        candidates.remove(partition);
                    }
                }
            }
        }
        if let [Kept { stored: None, visible }] = row.kept.as_slice()
            && visible.is_empty()
        {
            self.rows.remove(key);
        }
    }
}

#[cfg(test)]
impl Store {
    /// The number of versions and of index entries that are kept.
    pub fn kept(&self) -> (usize, usize) {
        let entries = self.candidates.iter().flat_map(BTreeMap::values).map(BTreeSet::len).sum();
        (self.rows.values().map(|row| row.kept.len()).sum(), entries)
    }
}
