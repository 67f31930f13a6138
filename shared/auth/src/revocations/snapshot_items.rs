//! Snapshots in the table: one item for as many entries as fit, and further items that it names for the
//! rest. They are there before the first, and each snapshot has its own, so that a reading never mixes two.
//!
//! | item | pk / sk |
//! |---|---|
//! | the last snapshot, with its first entries | `REVOKED#SNAPSHOT` / `LAST` |
//! | further entries of a snapshot | `REVOKED#SNAPSHOT` / `PART#{millis:013}#{salt}#{number}` |

use futures::future::try_join_all;
use serde::{Deserialize, Serialize};

use super::{
    fingerprint::Salt,
    revocation::{Kind, LONGEST_LIFE},
    snapshot::{Damaged, Snapshot},
};
use base::Time;
use storage::table::{Put, Table, TableError};

const PK: &str = "REVOKED#SNAPSHOT";
const LAST: &str = "LAST";
const WRITING: &str = "writing a snapshot of the revocations";
const READING: &str = "reading the snapshot of the revocations";
/// As many records as an item has: 360 KB of the 400 KB that DynamoDB takes.
const PART: usize = 30_000;

/// The last snapshot.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LastItem {
    /// In milliseconds.
    taken: i64,
    /// In milliseconds.
    until: i64,
    /// What its maker could read. A release that knows another kind of revocation does not begin with it.
    kinds: String,
    salt: Salt,
    /// How many records it has, in all its items.
    count: usize,
    #[serde(with = "serde_bytes")]
    records: Vec<u8>,
    expires_at: i64,
}

/// Further records of a snapshot.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartItem {
    #[serde(with = "serde_bytes")]
    records: Vec<u8>,
    expires_at: i64,
}

/// Why a snapshot could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The table did not give it.
    #[error(transparent)]
    Table(#[from] TableError),
    /// It is not as it was written.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}

fn kinds() -> String {
    Kind::ALL.map(Kind::name).join(" ")
}

/// The key of a further item of a snapshot.
fn part_key(taken: i64, salt: &Salt, number: usize) -> (String, String) {
    (PK.to_owned(), format!("PART#{taken:013}#{:032x}#{number}", salt.number()))
}

/// Reads the last snapshot, if there is one for this release: its first item with what else is read at this moment, and all
/// further ones together. One that was written a moment ago may be missed: the one before it is as right.
pub(super) async fn read(table: &Table) -> Result<Option<Snapshot>, SnapshotError> {
    let last: Option<LastItem> = table.glance((PK.to_owned(), LAST.to_owned()), READING).await?;
    let Some(last) = last.filter(|last| last.kinds == kinds()) else { return Ok(None) };
    let further = (1..last.count.div_ceil(PART)).map(|number| part_key(last.taken, &last.salt, number));
    let further = try_join_all(further.map(|key| table.read::<PartItem>(key, READING))).await?;
    let mut records = last.records;
    // One that lacks an item is shorter than it says, and counts as damaged.
    records.extend(further.into_iter().flatten().flat_map(|part| part.records));
    let [taken, until] = [last.taken, last.until].map(Time::from_millis);
    Ok(Some(Snapshot::stored(taken, until, last.salt, records, last.count)?))
}

/// Writes a snapshot in the place of the last one, wherever a crash comes: its further items are there first.
pub(super) async fn write(table: &Table, snapshot: &Snapshot) -> Result<(), TableError> {
    for put in puts(snapshot)? {
        table.write(put, WRITING).await?;
    }
    Ok(())
}

/// The writes of a snapshot, in their order.
fn puts(snapshot: &Snapshot) -> Result<Vec<Put>, TableError> {
    // A start reads none that is older, and one that has come to its end still says that nothing counts.
    let expires_at = (snapshot.taken + LONGEST_LIFE).as_seconds() + 1;
    let taken = snapshot.taken.as_millis();
    let mut pieces = snapshot.parts(PART).map(<[u8]>::to_vec);
    let last = LastItem {
        taken,
        until: snapshot.until.as_millis(),
        kinds: kinds(),
        salt: snapshot.salt.clone(),
        count: snapshot.count(),
        records: pieces.next().unwrap_or_default(),
        expires_at,
    };
    let mut puts = Vec::new();
    for (number, records) in (1..).zip(pieces) {
        puts.push(Put::at(part_key(taken, &snapshot.salt, number), &PartItem { records, expires_at }, WRITING)?);
    }
    puts.push(Put::at((PK.to_owned(), LAST.to_owned()), &last, WRITING)?);
    Ok(puts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;

    const TAKEN: Time = Time::from_millis(1_795_167_900_123);

    fn snapshot(count: usize) -> Snapshot {
        let entries = (0..count as u64).map(|number| (number << 20, 1));
        Snapshot::of(TAKEN, TAKEN, Salt::fresh(&CountingRandom::default()), entries)
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kept {
        sk: String,
        expires_at: i64,
    }

    fn kept(put: &Put) -> Kept {
        put.read_back("").expect("an item")
    }

    #[test]
    fn the_item_that_names_the_others_is_written_last_and_each_fits_into_the_table() {
        for (count, items) in [(0, 1), (PART, 1), (PART + 1, 2), (3 * PART, 3)] {
            let puts = puts(&snapshot(count)).expect("items");
            assert_eq!(puts.len(), items, "{count}");
            let sort_keys: Vec<_> = puts.iter().map(|put| kept(put).sk).collect();
            assert_eq!(sort_keys.last().map(String::as_str), Some(LAST));
            assert!(sort_keys.is_sorted_by_key(|sk| sk == LAST), "{sort_keys:?}");
            let records: usize =
                puts.iter().map(|put| put.read_back::<PartItem>("").expect("records").records.len()).sum();
            assert_eq!(records, count * 12);
            assert!(puts.iter().all(|put| put.read_back::<PartItem>("").expect("records").records.len() <= 380_000));
        }
    }

    #[test]
    fn a_snapshot_comes_back_as_it_was() {
        let before = snapshot(3);
        let puts = puts(&before).expect("items");
        let LastItem { taken, until, kinds: found, salt, count, records, .. } = puts[0].read_back("").expect("an item");
        let [taken, until] = [taken, until].map(Time::from_millis);
        assert_eq!(found, kinds());
        assert_eq!(Snapshot::stored(taken, until, salt, records, count).expect("whole"), before);
        assert_eq!(kept(&puts[0]).expires_at, 1_795_257_901);
    }
}
