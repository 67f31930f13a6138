//! Fills the table directly with items like the service's, since filling it over HTTP would take days.

use std::time::Duration;

use base::{Clock, SystemClock, Time};
use fakes::stored;
use serde_json::{Value, json};

use crate::{
    bundle::Bundle,
    connection::{Connection, TaskResult},
    emulator::{Emulator, call},
};

/// The number of items that one call writes.
const WRITTEN_AT_ONCE: usize = 25;
/// The age of the oldest delivery, chosen so that all deliveries are in the past.
pub const AGE: Duration = Duration::from_secs(1_000);
const HOUR: i64 = 3_600_000;
/// The size of each entity's range of event numbers, larger than any entity needs.
const PER_ENTITY: usize = 1_000_000_000;

/// The table of a bundle, while it is being filled.
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

    /// Adds an entity's events, each with one successful delivery to this webhook. The oldest event has this age, and
    /// each event is a millisecond younger than the previous one.
    pub async fn deliveries(&mut self, entity: &str, webhook: &str, count: usize, age: Duration) -> TaskResult<()> {
        let began = SystemClock.now() - age;
        self.put_all(count, |number| event_and_head(entity, webhook, number, began)).await
    }

    /// Adds copies of the demo application with other identifiers.
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
        self.put_all(count, |number| [item(number)]).await
    }

    /// Adds `N` items for each number.
    async fn put_all<const N: usize>(&mut self, count: usize, items: impl Fn(usize) -> [Value; N]) -> TaskResult<()> {
        let numbers: Vec<usize> = (0..count).collect();
        for numbers in numbers.chunks(WRITTEN_AT_ONCE / N) {
            let items = numbers.iter().flat_map(|number| items(*number));
            let requests: Vec<Value> = items.map(|item| json!({ "PutRequest": { "Item": item } })).collect();
            let request = json!({ "RequestItems": { self.bundle.var("TABLE_NAME"): requests } });
            call(&self.emulator, &mut self.table, "DynamoDB_20120810.BatchWriteItem", &request).await?;
        }
        Ok(())
    }
}

/// An event with one delivery, which succeeded on the first attempt.
fn event_and_head(entity: &str, webhook: &str, number: usize, began: Time) -> [Value; 2] {
    let created = began + Duration::from_millis(number as u64);
    // The length of the entity's name becomes a digit, so that the filled entities have different event identifiers.
    let event = stored::event_id(created.as_millis(), entity.len() % 10 * PER_ENTITY + number);
    let delivery = stored::delivery_id(&event, 0);
    let created = created.to_string();
    let url = "https://hooks.example.com/bookings";
    let (pk, sk) = stored::event_key(&event);
    let subject = format!("B-{number}");
    let texts = [
        ("pk", pk),
        ("sk", sk),
        ("ownerIdentifier", entity.to_owned()),
        ("type", "booking.created".to_owned()),
        ("subject", subject.clone()),
        ("entityKey", format!("ENT#{entity}")),
        ("subjectKey", format!("ENT#{entity}#{subject}")),
    ];
    let target = json!({ "M": { "webhook": { "S": webhook }, "url": { "S": url } } });
    let body = json!({
        "id": event, "type": "booking.created", "timestamp": created, "managingEntityIdentifier": entity,
        "data": { "bookingNumber": subject },
    });
    let rest =
        [("targets", json!({ "L": [target] })), ("content", json!({ "M": { "plain": { "S": body.to_string() } } }))];
    let kept = item(texts, [], rest);
    let (pk, sk) = stored::head_key(&delivery);
    let texts = [
        ("pk", pk),
        ("sk", sk),
        ("createdDate", created.clone()),
        ("lastUpdate", created),
        ("id", delivery),
        ("ownerIdentifier", entity.to_owned()),
        ("webhookIdentifier", webhook.to_owned()),
        ("webhookKey", format!("DELIVERED#{webhook}")),
        ("status", "delivered".to_owned()),
        ("subject", subject),
        ("type", "booking.created".to_owned()),
        ("url", url.to_owned()),
    ];
    let numbers = [("attemptCount", 1), ("lastHttpStatus", 200), ("scheduleBase", 0), ("sweeps", 0)];
    [kept, item(texts, numbers, [])]
}

/// An item with these strings, numbers and other attributes, and a late expiry.
fn item<const T: usize, const N: usize, const R: usize>(
    texts: [(&str, String); T],
    numbers: [(&str, u32); N],
    rest: [(&str, Value); R],
) -> Value {
    let texts = texts.into_iter().map(|(name, value)| (name, json!({ "S": value })));
    let numbers = numbers.into_iter().map(|(name, value)| (name, json!({ "N": value.to_string() })));
    let end = [("expiresAt", json!({ "N": "4102444800" }))];
    let all = texts.chain(numbers).chain(rest).chain(end).map(|(name, value)| (name.to_owned(), value));
    all.collect::<serde_json::Map<_, _>>().into()
}
