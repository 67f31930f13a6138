//! The table's size, in the bytes that DynamoDB charges for.
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>

use serde_json::{Value, json};

use crate::{
    bundle::Bundle,
    connection::{Connection, TaskResult},
    emulator::{Emulator, call},
};

/// The bytes that DynamoDB adds to each item of the table or an index.
const ITEM_OVERHEAD: usize = 100;

/// The size of the table and of its indexes, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Stored {
    pub table: f64,
    pub indexes: f64,
}

impl Stored {
    /// Reads a bundle's entire table.
    pub async fn of(bundle: &Bundle) -> TaskResult<Self> {
        let emulator = Emulator::of(bundle, "DYNAMODB_ENDPOINT");
        let mut connection = Connection::open(&emulator.address).await?;
        let table = json!({ "TableName": bundle.var("TABLE_NAME") });
        let described = call(&emulator, &mut connection, "DynamoDB_20120810.DescribeTable", &table).await?;
        let mut stored = Self { table: scanned(&emulator, &mut connection, table.clone()).await?, indexes: 0.0 };
        for index in described["Table"]["GlobalSecondaryIndexes"].as_array().into_iter().flatten() {
            let mut request = table.clone();
            request["IndexName"] = index["IndexName"].clone();
            stored.indexes += scanned(&emulator, &mut connection, request).await?;
        }
        Ok(stored)
    }

    /// The bytes added since an earlier reading.
    pub fn since(self, earlier: Self) -> Self {
        Self { table: self.table - earlier.table, indexes: self.indexes - earlier.indexes }
    }

    /// The number of bytes per delivery.
    pub fn each(self, deliveries: usize) -> Self {
        Self { table: self.table / deliveries as f64, indexes: self.indexes / deliveries as f64 }
    }
}

async fn scanned(emulator: &Emulator, connection: &mut Connection, mut request: Value) -> TaskResult<f64> {
    let mut bytes = 0;
    loop {
        let page = call(emulator, connection, "DynamoDB_20120810.Scan", &request).await?;
        bytes += page["Items"].as_array().into_iter().flatten().map(item).sum::<usize>();
        if page["LastEvaluatedKey"].is_null() {
            return Ok(bytes as f64);
        }
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"].clone();
    }
}

fn item(item: &Value) -> usize {
    ITEM_OVERHEAD + members(item)
}

fn members(map: &Value) -> usize {
    map.as_object().into_iter().flatten().map(|(name, attribute)| name.len() + value(attribute)).sum()
}

fn value(attribute: &Value) -> usize {
    let Some((kind, value)) = attribute.as_object().and_then(|attribute| attribute.iter().next()) else { return 0 };
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    // A list or map takes three bytes, plus one for each element.
    match (kind.as_str(), value) {
        ("N", number) => text(number).div_ceil(2) + 1,
        // The bytes are in Base64.
        ("B", bytes) => text(bytes) * 3 / 4,
        ("M", map) => 3 + map.as_object().map_or(0, |map| map.len()) + members(map),
        ("L", Value::Array(list)) => 3 + list.iter().map(|element| 1 + self::value(element)).sum::<usize>(),
        (_, Value::Array(set)) => set.iter().map(text).sum(),
        (_, Value::String(text)) => text.len(),
        _ => 1,
    }
}
