//! What an entity's history costs those requests that look for something rare in it: a page of the list that finds
//! nothing, a recovery of nothing, and a webhook that is made and removed. None may take longer the more deliveries
//! there are.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use base::{Clock, SystemClock, Time};
use serde_json::{Value, json};

use crate::{
    connection::Connection,
    emulators::{Emulator, call},
    report,
    stand::{Setup, Stand},
    times::Times,
};

/// How many deliveries an entity has.
const SIZES: [usize; 2] = [10_000, 200_000];
const REQUESTS: usize = 50;
/// All were made within this time, a while ago.
const AGO: i64 = 1_000_000;
/// As many as a call writes.
const WRITTEN_AT_ONCE: usize = 25;

/// The figures of one history.
pub struct Measured {
    pub deliveries: usize,
    /// The first page of those that have failed: there are none.
    pub page: Times,
    /// A recovery of nothing.
    pub recovery: Times,
    /// Making a webhook and removing it.
    pub removal: Times,
}

/// Measures and prints it all.
pub async fn measure() -> Result<(), Box<dyn Error>> {
    let stand = Stand::start(Setup {
        release: &["list-deliveries", "recover-deliveries", "create-webhook", "remove-webhook"],
        ..Setup::default()
    })
    .await?;
    let mut measured = Vec::new();
    for deliveries in SIZES {
        measured.push(measure_one(&stand, deliveries).await?);
    }
    report::history(&measured);
    Ok(())
}

async fn measure_one(stand: &Stand, deliveries: usize) -> Result<Measured, Box<dyn Error>> {
    let entity = format!("history-{deliveries}");
    fill(stand, &entity, deliveries).await?;
    let hook = stand.hook(&entity, "http://127.0.0.1:1/").await?;
    let range = json!({ "since": "2020-01-01T00:00:00Z" });
    let (mut page, mut recovery, mut removal) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REQUESTS {
        let began = Instant::now();
        let found = stand.get(&entity, "webhook/delivery/list?status=failed").await?;
        page.push(began.elapsed());
        if found["items"] != json!([]) {
            return Err(format!("something has failed: {found}").into());
        }
        let began = Instant::now();
        stand.post(&entity, &format!("webhook/{hook}/recover"), &range).await?;
        recovery.push(began.elapsed());
        let began = Instant::now();
        let made = stand.hook(&entity, "http://127.0.0.1:1/").await?;
        stand.delete(&entity, &format!("webhook/{made}")).await?;
        removal.push(began.elapsed());
    }
    let [page, recovery, removal] = [page, recovery, removal].map(Times::of);
    Ok(Measured { deliveries, page, recovery, removal })
}

/// Deliveries of another webhook, all delivered, as the table has them.
async fn fill(stand: &Stand, entity: &str, deliveries: usize) -> Result<(), Box<dyn Error>> {
    let emulator = Emulator::of(stand, "DYNAMODB_ENDPOINT");
    let mut table = Connection::open(&emulator.address).await.map_err(|error| error.to_string())?;
    let numbers: Vec<usize> = (0..deliveries).collect();
    let began = Time::from_millis(SystemClock.now().as_millis() - AGO);
    for numbers in numbers.chunks(WRITTEN_AT_ONCE) {
        let requests: Vec<Value> =
            numbers.iter().map(|number| json!({ "PutRequest": { "Item": head(entity, *number, began) } })).collect();
        let request = json!({ "RequestItems": { stand.var("TABLE_NAME"): requests } });
        let written = call(&emulator, &mut table, "DynamoDB_20120810.BatchWriteItem", &request).await;
        written.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn head(entity: &str, number: usize, began: Time) -> Value {
    // A digit for each entity, so that no two have a delivery in common.
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
