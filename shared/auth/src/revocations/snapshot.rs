//! The revocations that counted at one moment, in as little as tells them apart: what a function
//! reads at its start in place of an item for each of them.

use super::fingerprint::Salt;
use base::Time;

/// A fingerprint, and the second up to which tokens must have been issued to be revoked, both with
/// the highest byte first, so that their order is that of the fingerprints.
const RECORD: usize = 12;
const FINGERPRINT: usize = 8;

/// A snapshot. It never changes, and is right by itself: the list is read from a while before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// It has every revocation that a reading of the list at this time would have found and that counted then.
    pub(super) taken: Time,
    /// When nothing in it counts any more.
    pub(super) until: Time,
    pub(super) salt: Salt,
    /// In the order of their fingerprints.
    records: Vec<u8>,
}

/// A snapshot of which something is missing or in disorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the snapshot has {found} bytes in the place of {count} sorted records")]
pub struct Damaged {
    found: usize,
    count: usize,
}

impl Snapshot {
    /// One of these entries: fingerprints, and the seconds up to which tokens must have been issued.
    pub(super) fn of(taken: Time, until: Time, salt: Salt, entries: impl Iterator<Item = (u64, u32)>) -> Self {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_unstable();
        let records = entries.into_iter().flat_map(|(fingerprint, issued_until)| {
            fingerprint.to_be_bytes().into_iter().chain(issued_until.to_be_bytes())
        });
        Self { taken, until, salt, records: records.collect() }
    }

    /// One as it was stored, with so many records.
    pub(super) fn stored(
        taken: Time,
        until: Time,
        salt: Salt,
        records: Vec<u8>,
        count: usize,
    ) -> Result<Self, Damaged> {
        let (sorted, rest) = records.as_chunks::<RECORD>();
        let whole = sorted.len() == count && rest.is_empty() && sorted.is_sorted();
        if whole { Ok(Self { taken, until, salt, records }) } else { Err(Damaged { found: records.len(), count }) }
    }

    pub(super) fn count(&self) -> usize {
        self.records.len() / RECORD
    }

    /// The records in parts of so many.
    pub(super) fn parts(&self, records: usize) -> impl Iterator<Item = &[u8]> {
        self.records.chunks(records * RECORD)
    }

    /// Up to which second tokens must have been issued to be revoked by the entry of this fingerprint.
    pub(super) fn issued_until(&self, fingerprint: u64) -> Option<u32> {
        let (records, _) = self.records.as_chunks::<RECORD>();
        let wanted = fingerprint.to_be_bytes();
        let found = records.binary_search_by(|record| record[..FINGERPRINT].cmp(&wanted)).ok()?;
        let (_, issued_until) = records[found].split_last_chunk()?;
        Some(u32::from_be_bytes(*issued_until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::CountingRandom;

    const TAKEN: Time = Time::from_millis(1_795_167_900_000);

    fn snapshot(entries: &[(u64, u32)]) -> Snapshot {
        Snapshot::of(TAKEN, TAKEN, Salt::fresh(&CountingRandom::default()), entries.iter().copied())
    }

    #[test]
    fn every_entry_is_found_with_its_time_and_no_other() {
        let entries = [(u64::MAX, 1), (0, 2), (1 << 32, u32::MAX), (7, 4)];
        let snapshot = snapshot(&entries);
        for (fingerprint, issued_until) in entries {
            assert_eq!(snapshot.issued_until(fingerprint), Some(issued_until));
        }
        assert!([1, 6, 8, u64::MAX - 1].iter().all(|other| snapshot.issued_until(*other).is_none()));
    }

    #[test]
    fn one_that_is_short_long_or_in_disorder_is_damaged() {
        let whole = snapshot(&[(1, 1), (2, 2), (3, 3)]);
        let stored = |records: Vec<u8>| Snapshot::stored(TAKEN, TAKEN, whole.salt.clone(), records, 3);
        assert_eq!(stored(whole.records.clone()), Ok(whole.clone()));
        let mut disorder = whole.records.clone();
        disorder.swap(7, 19);
        for records in [Vec::new(), whole.records[..24].to_vec(), [&whole.records[..], &[0]].concat(), disorder] {
            assert!(stored(records.clone()).is_err(), "{records:?}");
        }
    }
}
