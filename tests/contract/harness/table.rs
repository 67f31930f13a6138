//! Direct access to the bundle's table, using DynamoDB's protocol over HTTP.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{AwsCaller, aws_caller, clock::window_start, stored};

#[derive(Debug, Clone)]
pub struct Table {
    endpoint: String,
    name: String,
    caller: AwsCaller,
    http: reqwest::Client,
}

impl Table {
    /// The table named in service.env.
    pub fn of(env: &BTreeMap<String, String>) -> Self {
        Self {
            endpoint: env["DYNAMODB_ENDPOINT"].clone(),
            name: env["TABLE_NAME"].clone(),
            caller: aws_caller(env),
            http: reqwest::Client::builder().no_proxy().build().expect("a client needs nothing"),
        }
    }

    /// All items, in DynamoDB's JSON format.
    pub async fn scan(&self) -> Vec<Value> {
        let mut items = Vec::new();
        let mut start = Value::Null;
        loop {
            let mut request = json!({ "ConsistentRead": true });
            if !start.is_null() {
                request["ExclusiveStartKey"] = start;
            }
            let mut page = self.call("Scan", request).await.expect("a scan has no condition");
            items.extend(page["Items"].as_array_mut().into_iter().flat_map(std::mem::take));
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return items;
            }
        }
    }

    pub async fn item(&self, pk: &str, sk: &str) -> Option<Value> {
        let mut answer = self.call("GetItem", json!({ "Key": key(pk, sk), "ConsistentRead": true })).await?;
        Some(answer["Item"].take()).filter(|item| !item.is_null())
    }

    /// A delivery's head, once a worker has claimed the first attempt or the sweep has opened the delivery.
    pub async fn head(&self, delivery: &str) -> Option<Value> {
        let (pk, sk) = stored::head_key(delivery);
        self.item(&pk, &sk).await
    }

    /// An event's item.
    pub async fn event(&self, event: &str) -> Option<Value> {
        let (pk, sk) = stored::event_key(event);
        self.item(&pk, &sk).await
    }

    /// Writes an item unconditionally.
    pub async fn put(&self, item: Value) {
        self.call("PutItem", json!({ "Item": item })).await.expect("no condition was set");
    }

    /// Writes many items unconditionally.
    pub async fn put_all(&self, items: impl IntoIterator<Item = Value>) {
        /// The maximum number of items per call.
        const AT_ONCE: usize = 25;
        let requests: Vec<Value> = items.into_iter().map(|item| json!({ "PutRequest": { "Item": item } })).collect();
        for requests in requests.chunks(AT_ONCE) {
            let request = json!({ "RequestItems": { self.name.as_str(): requests } });
            let answer = self.send("BatchWriteItem", request).await.expect("no condition was set");
            assert_eq!(answer["UnprocessedItems"].as_object().map(serde_json::Map::len), Some(0), "{answer}");
        }
    }

    /// Sets the count of an allowance in the current window of this many seconds, and in the windows of the next twenty
    /// minutes, since a test may end in a later window than it began.
    pub async fn count_as_used(&self, allowance: &str, seconds: i64, count: u32) {
        const LONGEST_TEST: i64 = 20 * 60;
        let begun = window_start(seconds);
        let counts = (0..=LONGEST_TEST / seconds + 1).map(|number| {
            let window = begun + number * seconds;
            json!({
                "pk": { "S": format!("ALLOWANCE#{allowance}") }, "sk": { "S": format!("{window:010}") },
                "count": { "N": count.to_string() },
            })
        });
        self.put_all(counts).await;
    }

    /// Removes an item, whether or not it exists.
    pub async fn remove(&self, pk: &str, sk: &str) {
        self.call("DeleteItem", json!({ "Key": key(pk, sk) })).await.expect("no condition was set");
    }

    /// Sets one attribute of an item to this string, if the item exists and has no lease; returns whether it was set.
    pub async fn set(&self, pk: &str, sk: &str, attribute: &str, value: &str) -> bool {
        let request = json!({
            "Key": key(pk, sk),
            "UpdateExpression": "SET #attribute = :value",
            "ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(lease)",
            "ExpressionAttributeNames": { "#attribute": attribute },
            "ExpressionAttributeValues": { ":value": { "S": value } },
        });
        self.call("UpdateItem", request).await.is_some()
    }

    /// Sets one attribute of a delivery's head to this string, if there is a head without a lease; returns whether it
    /// was set.
    pub async fn set_of_head(&self, delivery: &str, attribute: &str, value: &str) -> bool {
        let (pk, sk) = stored::head_key(delivery);
        self.set(&pk, &sk, attribute, value).await
    }

    /// The response to a call; `None` if a condition does not hold.
    async fn call(&self, operation: &str, mut request: Value) -> Option<Value> {
        request["TableName"] = self.name.as_str().into();
        self.send(operation, request).await
    }

    async fn send(&self, operation: &str, request: Value) -> Option<Value> {
        let sent = self
            .http
            .post(&self.endpoint)
            .header("x-amz-target", format!("DynamoDB_20120810.{operation}"))
            .header("content-type", "application/x-amz-json-1.0")
            .body(request.to_string());
        let answer = self.caller.sign(sent).send().await.expect("the table answers");
        let status = answer.status();
        let text = answer.text().await.expect("the answer is text");
        if text.contains("ConditionalCheckFailedException") {
            return None;
        }
        assert!(status.is_success(), "{operation}: {status}: {text}");
        Some(serde_json::from_str(&text).expect("the answer is JSON"))
    }
}

fn key(pk: &str, sk: &str) -> Value {
    json!({ "pk": { "S": pk }, "sk": { "S": sk } })
}
