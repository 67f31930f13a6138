//! Fills the table directly with items as the service writes them, since filling it over HTTP would take days.

use std::time::Duration;

use base::{Clock, SystemClock, Time};
use serde_json::{Value, json};

use crate::{
    bundle::Bundle,
    connection::{Connection, TaskResult},
    emulator::{Emulator, call},
};

/// The items that one call writes.
const WRITTEN_AT_ONCE: usize = 25;
/// The age of the oldest delivery, in milliseconds.
const AGO: i64 = 1_000_000;
const HOUR: i64 = 3_600_000;

/// A bundle's table.
pub struct Filling<'a> {
    bundle: &'a Bundle,
    emulator: Emulator,
    table: Connection,
}

impl<'a> Filling<'a> {
    pub async fn of(bundle: &'a Bundle) -> TaskResult<Self> {
        let emulator = Emulator::of(bundle, "DYNAMODB_ENDPOINT");
        Ok(Self { bundle, table: Connection::open(&emulator.address).await?, emulator })
    }

    /// Adds delivered deliveries of an entity, to a webhook that does not exist.
    pub async fn deliveries(&mut self, entity: &str, count: usize) -> TaskResult<()> {
        let began = Time::from_millis(SystemClock.now().as_millis() - AGO);
        self.put(count, |number| head(entity, number, began)).await
    }

    /// Adds copies of the demo application under other identifiers.
    pub async fn applications(&mut self, count: usize) -> TaskResult<()> {
        let client = self.bundle.var("CLIENT_ID").to_owned();
        let key = json!({ "pk": { "S": format!("APP#{client}") }, "sk": { "S": "APP" } });
        let request = json!({ "TableName": self.bundle.var("TABLE_NAME"), "Key": key });
        let found = call(&self.emulator, &mut self.table, "DynamoDB_20120810.GetItem", &request).await?;
        let item = found["Item"].to_string();
        let other = |number| item.replace(&client, &format!("app{number:022}"));
        self.put(count, |number| serde_json::from_str(&other(number)).expect("an identifier is a text")).await
    }

    /// Adds valid revocations of removed applications.
    pub async fn revocations(&mut self, count: usize) -> TaskResult<()> {
        let now = SystemClock.now().as_millis();
        self.put(count, |number| {
            let made = now - HOUR + number as i64 % HOUR;
            let expires_at = (now + HOUR) / 1000;
            json!({
                "pk": { "S": "REVOKED" }, "sk": { "S": format!("{made:013}#client#app{number:022}") },
                "expiresAt": { "N": expires_at.to_string() },
            })
        })
        .await
    }

    async fn put(&mut self, count: usize, item: impl Fn(usize) -> Value) -> TaskResult<()> {
        let numbers: Vec<usize> = (0..count).collect();
        for numbers in numbers.chunks(WRITTEN_AT_ONCE) {
            let put = |number: &usize| json!({ "PutRequest": { "Item": item(*number) } });
            let requests: Vec<Value> = numbers.iter().map(put).collect();
            let request = json!({ "RequestItems": { self.bundle.var("TABLE_NAME"): requests } });
            call(&self.emulator, &mut self.table, "DynamoDB_20120810.BatchWriteItem", &request).await?;
        }
        Ok(())
    }
}

fn head(entity: &str, number: usize, began: Time) -> Value {
    // A digit for each entity, so that entities share no delivery.
    let id = format!("dlv_0{}{number:024}", entity.len() % 10);
    let created = (began + Duration::from_millis(number as u64)).to_string();
    let texts = [
        ("pk", format!("DLV#{id}")),
        ("sk", "HEAD".to_owned()),
        ("entityKey", format!("ENT#{entity}")),
        ("createdKey", format!("{created}#{id}")),
        ("createdDate", created.clone()),
        ("lastUpdate", created),
        ("id", id),
        ("event", "evt_00000000000000000000000000".to_owned()),
        ("ownerIdentifier", entity.to_owned()),
        ("webhookIdentifier", "whk_00000000000000000000000000".to_owned()),
        ("status", "delivered".to_owned()),
        // The index lists a delivery that arrived at its first attempt as new.
        ("listedStatus", "new".to_owned()),
        ("type", "booking.created".to_owned()),
        ("url", "https://hooks.example.com/bookings".to_owned()),
    ];
    let numbers = [("attemptCount", 1), ("lastHttpStatus", 200), ("scheduleBase", 0), ("sweeps", 0)];
    let texts = texts.into_iter().map(|(name, value)| (name, json!({ "S": value })));
    let numbers = numbers.into_iter().map(|(name, value)| (name, json!({ "N": value.to_string() })));
    let end = [("expiresAt", json!({ "N": "4102444800" }))];
    texts
        .chain(numbers)
        .chain(end)
        .map(|(name, value)| (name.to_owned(), value))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
