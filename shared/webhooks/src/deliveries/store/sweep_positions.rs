//! New events: those whose deliveries the sweep has not opened yet. Their deliveries may be in no index.
//!
//! The sweep reads the events of each shard in order of creation, and stores how far it has opened all of them. The
//! positions of all shards are one item, `SWEEP` / `OPENED`. The sweep reads each event once more a few minutes later,
//! with separate positions: an event's write may reach the table after its publisher gave up, and behind the first
//! position.

use serde::{Deserialize, Serialize};

use crate::{
    deliveries::{queries::range::KeyRange, store::Deliveries},
    events::store::SHARDS,
};
use storage::table::{Put, TableError, is, is_new};

const READING: &str = "reading the sweep's positions";
const WRITING: &str = "writing the sweep's positions";
/// How many times the positions are merged with those of another sweep.
const TRIES: usize = 5;

/// The positions up to which the sweep has opened the deliveries of all events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SweepPositions {
    pk: String,
    sk: String,
    version: u64,
    /// For each shard, the body of an identifier.
    bodies: Vec<String>,
}

/// The sweep's two passes over each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Soon after its publication.
    First,
    /// Once even the slowest write of its publication has arrived.
    Second,
}

impl Look {
    fn key(self) -> (String, String) {
        let sort = match self {
            Self::First => "OPENED",
            Self::Second => "OPENED-AGAIN",
        };
        ("SWEEP".to_owned(), sort.to_owned())
    }
}

impl SweepPositions {
    fn none(look: Look) -> Self {
        let (pk, sk) = look.key();
        Self { pk, sk, version: 0, bodies: vec![String::new(); usize::from(SHARDS)] }
    }

    /// The position in a shard.
    pub(crate) fn of_shard(&self, shard: u8) -> &str {
        self.bodies.get(usize::from(shard)).map_or("", String::as_str)
    }

    /// Moves the position in a shard forward.
    pub(crate) fn advance(&mut self, shard: u8, body: &str) {
        let position = self.bodies.get_mut(usize::from(shard));
        position.into_iter().filter(|position| position.as_str() < body).for_each(|position| body.clone_into(position));
    }

    /// Whether no pass has stored positions yet.
    pub(crate) fn is_none(&self) -> bool {
        self.version == 0
    }

    /// Whether the events of all shards are opened up to this body of an identifier.
    pub(crate) fn is_past(&self, body: &str) -> bool {
        self.bodies.iter().all(|position| position.as_str() >= body)
    }

    /// The range that contains all new events.
    pub(crate) fn new_events(&self) -> KeyRange {
        KeyRange::after_body(self.bodies.iter().min().map_or("", String::as_str))
    }
}

impl Deliveries {
    /// The positions of the sweep.
    pub(crate) async fn opened(&self, look: Look) -> Result<SweepPositions, TableError> {
        Ok(self.table.read(look.key(), READING).await?.unwrap_or_else(|| SweepPositions::none(look)))
    }

    /// The positions of the first pass. They may be a few seconds old, so that more events count as new.
    pub(crate) async fn opened_eventual(&self) -> Result<SweepPositions, TableError> {
        let opened = self.table.read_eventual(Look::First.key(), READING).await?;
        Ok(opened.unwrap_or_else(|| SweepPositions::none(Look::First)))
    }

    /// Stores these positions, unless another sweep has stored later ones.
    pub(crate) async fn keep_opened(&self, look: Look, mut opened: SweepPositions) -> Result<(), TableError> {
        for _ in 0..TRIES {
            let next = SweepPositions { version: opened.version + 1, ..opened.clone() };
            let condition = if opened.version == 0 { is_new() } else { is("version", opened.version) };
            if self.table.write(Put::item(&next, WRITING)?.only_if(condition), WRITING).await?.is_done() {
                return Ok(());
            }
            let mut found = self.opened(look).await?;
            (0..SHARDS).for_each(|shard| found.advance(shard, opened.of_shard(shard)));
            opened = found;
        }
        Err(TableError::code(WRITING, "ConditionalCheckFailedException"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::queries::range::{ListPosition, tests::position_at};
    use base::testing::CountingRandom;

    #[test]
    fn positions_only_move_forward() {
        let mut opened = SweepPositions::none(Look::First);
        opened.advance(3, "01b");
        opened.advance(3, "01a");
        assert_eq!((opened.of_shard(3), opened.of_shard(4)), ("01b", ""));
        assert!(!opened.is_past("01a"), "another shard is behind");
        (0..SHARDS).for_each(|shard| opened.advance(shard, "01b"));
        assert!(opened.is_past("01b") && !opened.is_past("01c"));
    }

    #[test]
    fn events_are_new_from_the_slowest_shard_on() {
        let random = CountingRandom::default();
        let mut opened = SweepPositions::none(Look::First);
        let [early, late] = [1_000, 2_000].map(|millis| position_at(millis, &random));
        let body = |position: &ListPosition| position.delivery().body().to_owned();
        (0..SHARDS).for_each(|shard| opened.advance(shard, &body(&late)));
        let mut one_behind = SweepPositions::none(Look::First);
        (0..SHARDS).for_each(|shard| one_behind.advance(shard, &body(if shard == 5 { &early } else { &late })));
        let holds = |opened: &SweepPositions, position: &ListPosition| opened.new_events().holds(position.delivery());
        assert!(!holds(&opened, &late) && holds(&one_behind, &late) && !holds(&one_behind, &early));
    }
}
