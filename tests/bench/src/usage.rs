//! The processor time and memory used by each process of a bundle.

use std::{collections::BTreeMap, error::Error, time::Duration};

use crate::process::{children, computed, computed_by_threads, memory};

/// The functions that publish and deliver.
pub const OURS: [&str; 2] = ["publish-event", "dispatch-deliveries"];
/// The table's threads in the program that runs the bundle.
const TABLE: &str = "local: table";
const REST: &str = "local: gateway, Lambda, queues, secrets";
const OTHERS: &str = "all other functions";
const BENCH: &str = "the bench: clients and endpoint";

/// All rows, in the tables' order.
pub const ROWS: [&str; 6] = [OURS[0], OURS[1], OTHERS, TABLE, REST, BENCH];

/// The processor time used so far, by row.
#[derive(Debug, Clone, Default)]
pub struct Usage(BTreeMap<&'static str, Duration>);

impl Usage {
    /// Reads a bundle's usage, given the id of its main process.
    pub fn of(process_id: u32) -> Result<Self, Box<dyn Error>> {
        let mut usage = BTreeMap::new();
        let table = computed_by_threads(process_id, "table")?;
        usage.insert(TABLE, table);
        usage.insert(REST, computed(process_id)?.saturating_sub(table));
        usage.insert(BENCH, computed(std::process::id())?);
        for (process, program) in children(process_id)? {
            *usage.entry(row(&program)).or_default() += computed(process).unwrap_or_default();
        }
        Ok(Self(usage))
    }

    /// The processor time since an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |(row, time): (&&'static str, &Duration)| (*row, time.saturating_sub(earlier.row(row)));
        Self(self.0.iter().map(difference).collect())
    }

    pub fn row(&self, row: &str) -> Duration {
        self.0.get(row).copied().unwrap_or_default()
    }

    /// The processor time of all rows except the bench.
    pub fn all(&self) -> Duration {
        self.0.iter().filter(|(row, _)| **row != BENCH).map(|(_, time)| *time).sum()
    }

    /// The processor time of the functions that publish and deliver.
    pub fn ours(&self) -> Duration {
        OURS.iter().map(|row| self.row(row)).sum()
    }
}

/// The resident memory in bytes, by row.
pub fn resident(process_id: u32) -> Result<BTreeMap<&'static str, u64>, Box<dyn Error>> {
    let mut resident =
        BTreeMap::from([(REST, memory(process_id, "VmRSS")?), (BENCH, memory(std::process::id(), "VmRSS")?)]);
    for (process, program) in children(process_id)? {
        *resident.entry(row(&program)).or_default() += memory(process, "VmRSS").unwrap_or_default();
    }
    Ok(resident)
}

fn row(program: &str) -> &'static str {
    OURS.into_iter().find(|known| *known == program).unwrap_or(OTHERS)
}
