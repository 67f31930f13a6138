//! The cost and the sequence of table calls.
//!
//! The proxy makes each call request the capacity that it consumes in the table and its indexes. This capacity depends
//! on sizes, indexes and the kind of call, but not on the machine or the build.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ConsumedCapacity.html>

use std::{ops::Range, time::Instant};

use serde_json::{Value, json};

use crate::AwsCall;

/// A call that has completed.
#[derive(Debug, Clone)]
pub struct Metered {
    /// The call.
    pub call: AwsCall,
    /// When the call began and ended.
    pub time: Range<Instant>,
    /// The number of read units.
    pub reads: f64,
    /// The number of write units.
    pub writes: f64,
}

/// Operations that only read, except SELECT statements.
pub(crate) const READS: [&str; 5] = ["GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems"];

/// The body of a table call, extended to request the consumed capacity; other calls' bodies are unchanged.
pub(crate) fn asking_for_capacity(call: &AwsCall, body: &[u8]) -> Vec<u8> {
    let of_table = ["TableName", "RequestItems", "Statements", "TransactItems"];
    if of_table.iter().all(|member| call.body.get(member).is_none()) {
        return body.to_vec();
    }
    let mut asking = call.body.clone();
    asking["ReturnConsumedCapacity"] = json!("INDEXES");
    asking.to_string().into_bytes()
}

impl Metered {
    pub(crate) fn of(call: &AwsCall, time: Range<Instant>, response: &[u8]) -> Self {
        let response: Value = serde_json::from_slice(response).unwrap_or_default();
        let units = units(&response["ConsumedCapacity"]);
        let is_read = READS.contains(&call.operation.as_str());
        let (reads, writes) = if is_read { (units, 0.0) } else { (0.0, units) };
        Self { call: call.clone(), time, reads, writes }
    }
}

/// The total over all tables; a table's units include those of its indexes.
fn units(consumed: &Value) -> f64 {
    match consumed {
        Value::Array(tables) => tables.iter().map(units).sum(),
        table => table["CapacityUnits"].as_f64().unwrap_or_default(),
    }
}

/// The length of the longest sequence of calls in which each call began after the previous one had ended.
pub fn in_a_row<'a>(calls: impl IntoIterator<Item = &'a Metered>) -> usize {
    let mut times: Vec<&Range<Instant>> = calls.into_iter().map(|call| &call.time).collect();
    times.sort_by_key(|time| time.end);
    let mut count = 0;
    let mut last = None;
    for time in times {
        if last.is_none_or(|end| end <= time.start) {
            (count, last) = (count + 1, Some(time.end));
        }
    }
    count
}
