//! The order in which a shard of the outbox is emptied, so that no entity waits for another's events.
//!
//! A shard is sorted by entity, and read a few entries at a time. The entity's further entries wait for the end of its
//! turn, while the reading goes on with the next entity: so an entity waits for a few events of each other entity at
//! most.

use std::collections::VecDeque;

/// Between an entity's place in a shard and the event.
const SEPARATOR: char = '#';
/// Sorts right after the separator, and so after all events of an entity.
const AFTER: char = '$';
/// Sorts before all characters of keys.
const BEFORE: char = '!';
/// Places are hexadecimal numbers: these two sort before and after all of them.
const FIRST: &str = "0";
const LAST: &str = "g";

/// The sort key of an event: its entity's place, then the event.
pub fn sort_key(place: u64, event: &str) -> String {
    format!("{place:016x}{SEPARATOR}{event}")
}

/// A part of a shard that is still to be read: the keys between its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// The least key.
    pub from: String,
    /// The greatest.
    pub to: String,
}

impl KeyRange {
    fn is_empty(&self) -> bool {
        self.from >= self.to
    }
}

/// The parts of a shard that are still to be read, in the order of their turns.
#[derive(Debug)]
pub struct Turns(VecDeque<KeyRange>);

impl Turns {
    /// A whole shard, from a place on and around. The place is random, so that sweeps which run out of time leave out
    /// different entities.
    pub fn from(place: u64) -> Self {
        let place = format!("{place:016x}");
        let first = KeyRange { from: place.clone(), to: LAST.to_owned() };
        Self(VecDeque::from([first, KeyRange { from: FIRST.to_owned(), to: place }]))
    }

    /// The stretch to read next.
    pub fn next(&mut self) -> Option<KeyRange> {
        self.0.pop_front()
    }

    /// Notes that a stretch was read as far as this key, and that more follows: the other entities are next. Returns
    /// the rest of the last entity, which the caller puts back at the end of its turn.
    pub fn read_up_to(&mut self, last: &str, read: KeyRange) -> KeyRange {
        let place = last.split_once(SEPARATOR).map_or(last, |(place, _)| place);
        let rest = KeyRange { from: format!("{last}{BEFORE}"), to: format!("{place}{AFTER}") };
        let others = KeyRange { from: format!("{place}{AFTER}"), to: read.to };
        if !others.is_empty() {
            self.0.push_front(others);
        }
        rest
    }

    /// Puts the rest of an entity behind all others.
    pub fn put_back(&mut self, rest: KeyRange) {
        self.0.push_back(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const AT_ONCE: usize = 4;

    /// Reads as the table does: a few entries in their order, and the last of them if more may follow.
    fn page(shard: &BTreeSet<String>, stretch: &KeyRange) -> (Vec<String>, Option<String>) {
        let page: Vec<_> = shard.range(stretch.from.clone()..=stretch.to.clone()).take(AT_ONCE).cloned().collect();
        let last = (page.len() == AT_ONCE).then(|| page.last().cloned()).flatten();
        (page, last)
    }

    /// The keys in the order in which they are published, with one turn at a time.
    fn emptied(shard: &BTreeSet<String>, start: u64) -> Vec<String> {
        let (mut turns, mut published) = (Turns::from(start), Vec::new());
        while let Some(stretch) = turns.next() {
            let (events, last) = page(shard, &stretch);
            published.extend(events);
            if let Some(last) = last {
                let rest = turns.read_up_to(&last, stretch);
                turns.put_back(rest);
            }
        }
        published
    }

    fn place_of(key: &str) -> &str {
        key.split_once(SEPARATOR).expect("a key has a place").0
    }

    fn shard_of(entities: &[(u64, usize)]) -> BTreeSet<String> {
        let keys = entities
            .iter()
            .flat_map(|(place, events)| (0..*events).map(|event| sort_key(*place, &format!("evt_{event:04}"))));
        keys.collect()
    }

    proptest! {
        #[test]
        fn everything_is_published_once_and_each_entity_waits_for_a_few_events_of_the_others_at_most(
            entities in proptest::collection::vec((any::<u64>(), 0usize..60), 0..12),
            start: u64,
        ) {
            let shard = shard_of(&entities);
            let published = emptied(&shard, start);
            prop_assert_eq!(published.iter().cloned().collect::<BTreeSet<_>>(), shard);
            prop_assert_eq!(published.len(), published.iter().collect::<BTreeSet<_>>().len());
            let places: BTreeSet<_> = published.iter().map(|key| place_of(key)).collect();
            for place in &places {
                let first = published.iter().position(|key| place_of(key) == *place).expect("it is among them");
                prop_assert!(first < AT_ONCE * places.len(), "{place} waits for {first} events");
                // Nor does it wait longer later: between two of its turns every other entity has one.
                let mine: Vec<_> = published.iter().enumerate().filter(|(_, key)| place_of(key) == *place).collect();
                for pair in mine.windows(2) {
                    prop_assert!(pair[1].0 - pair[0].0 <= AT_ONCE * places.len());
                }
            }
        }

        #[test]
        fn an_entity_whose_turn_never_ends_holds_up_no_other(
            entities in proptest::collection::vec((any::<u64>(), 1usize..20), 1..8),
            slow: u64,
            start: u64,
        ) {
            let shard = shard_of(&[entities.clone(), vec![(slow, 1_000)]].concat());
            let (mut turns, mut published) = (Turns::from(start), BTreeSet::new());
            let slow = format!("{slow:016x}");
            while let Some(stretch) = turns.next() {
                let (events, last) = page(&shard, &stretch);
                published.extend(events.into_iter().filter(|key| place_of(key) != slow));
                if let Some(rest) = last.map(|last| turns.read_up_to(&last, stretch))
                    && place_of(&rest.to.replace(AFTER, "#")) != slow
                {
                    turns.put_back(rest);
                }
            }
            prop_assert_eq!(published, shard_of(&entities).into_iter().filter(|key| place_of(key) != slow).collect());
        }
    }
}
