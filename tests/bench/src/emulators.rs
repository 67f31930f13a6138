//! The speed of table and queue by themselves on this machine: it shows which part of a delivery's cost is
//! the emulators', and which is ours.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use doubles::AwsCaller;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    connection::{Connection, TaskResult},
    stand::Stand,
};

const CLIENTS: usize = 32;
const TIME: Duration = Duration::from_secs(4);

/// The figures, each a second.
pub struct Measured {
    /// Items of 500 bytes, put one by one.
    pub puts: f64,
    /// The same, 25 statements in a call.
    pub statements: f64,
    /// Consistent reads of single items.
    pub gets: f64,
    /// Messages that were sent, received and deleted one by one.
    pub messages: f64,
    /// The same, ten in a call.
    pub batched_messages: f64,
}

/// An emulator, and the credentials that it asks for.
#[derive(Clone)]
pub struct Emulator {
    pub address: Arc<str>,
    caller: AwsCaller,
}

impl Emulator {
    /// The emulator whose address the stand knows under this name.
    pub fn of(stand: &Stand, name: &str) -> Self {
        Self { address: stand.var(name).into(), caller: stand.aws_caller() }
    }

    /// An emulator at this address that asks for no credentials.
    pub fn at(address: &str) -> Self {
        Self { address: address.into(), caller: AwsCaller::new("anybody", "no secret") }
    }
}

/// Measures both while nothing else uses them.
pub async fn measure(stand: &Stand) -> TaskResult<Measured> {
    let name = stand.var("TABLE_NAME");
    let (table, services) = (&Emulator::of(stand, "DYNAMODB_ENDPOINT"), &Emulator::of(stand, "SERVICES_ENDPOINT"));
    let (table_name, text) = (name.to_owned(), "x".repeat(450));
    let put = move |number: u64| {
        let item = json!({"pk": {"S": format!("BENCH#{number}")}, "sk": {"S": "ITEM"}, "text": {"S": text}});
        Work::one("DynamoDB_20120810.PutItem", json!({ "TableName": table_name, "Item": item }))
    };
    let puts = rate(table, put).await?;
    let (table_name, text) = (name.to_owned(), "x".repeat(450));
    let insert = move |number: u64| {
        let statement = format!("INSERT INTO \"{table_name}\" VALUE {{'pk': ?, 'sk': 'ITEM', 'text': ?}}");
        let statements: Vec<Value> = (0..25)
            .map(|part| json!({"Statement": statement, "Parameters": [{"S": format!("BATCH#{number}#{part}")}, {"S": text}]}))
            .collect();
        Work {
            calls: vec![("DynamoDB_20120810.BatchExecuteStatement", json!({ "Statements": statements }))],
            parts: 25,
        }
    };
    let statements = rate(table, insert).await?;
    let table_name = name.to_owned();
    let get = move |number: u64| {
        let key = json!({"pk": {"S": format!("BENCH#{}", number % 1000)}, "sk": {"S": "ITEM"}});
        let request = json!({ "TableName": table_name, "Key": key, "ConsistentRead": true });
        Work::one("DynamoDB_20120810.GetItem", request)
    };
    let gets = rate(table, get).await?;

    let mut connection = Connection::open(&services.address).await?;
    let made = call(services, &mut connection, "AmazonSQS.CreateQueue", &json!({ "QueueName": "bench" })).await?;
    let queue = made["QueueUrl"].as_str().ok_or("no queue")?.to_owned();
    let messages = queue_rate(services, &queue, 1).await?;
    let batched_messages = queue_rate(services, &queue, 10).await?;
    Ok(Measured { puts, statements, gets, messages, batched_messages })
}

/// Calls that follow each other, and how many things they do.
struct Work {
    calls: Vec<(&'static str, Value)>,
    parts: u64,
}

impl Work {
    fn one(operation: &'static str, request: Value) -> Self {
        Self { calls: vec![(operation, request)], parts: 1 }
    }
}

/// How many things a second, when all clients do such work for a while.
async fn rate(emulator: &Emulator, work: impl Fn(u64) -> Work + Send + Sync + 'static) -> TaskResult<f64> {
    let (work, number, began) = (Arc::new(work), Arc::new(AtomicU64::new(0)), Instant::now());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (work, number, emulator) = (Arc::clone(&work), Arc::clone(&number), emulator.clone());
        let mut connection = Connection::open(&emulator.address).await?;
        clients.spawn(async move {
            let mut done = 0;
            while began.elapsed() < TIME {
                let work = work(number.fetch_add(1, Ordering::Relaxed));
                for (operation, request) in &work.calls {
                    call(&emulator, &mut connection, operation, request).await?;
                }
                done += work.parts;
            }
            TaskResult::Ok(done)
        });
    }
    sum(clients, began).await
}

/// How many messages a second go through the queue, when all clients send, receive and delete so many in a call.
async fn queue_rate(emulator: &Emulator, queue: &str, batch: usize) -> TaskResult<f64> {
    let (queue, began) = (queue.to_owned(), Instant::now());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (queue, emulator) = (queue.clone(), emulator.clone());
        let mut connection = Connection::open(&emulator.address).await?;
        clients.spawn(async move {
            let mut done = 0;
            while began.elapsed() < TIME {
                let entry = |id: usize| json!({"Id": id.to_string(), "MessageBody": "x".repeat(100)});
                let entries: Vec<Value> = (0..batch).map(entry).collect();
                let request = json!({ "QueueUrl": queue, "Entries": entries });
                call(&emulator, &mut connection, "AmazonSQS.SendMessageBatch", &request).await?;
                let request = json!({ "QueueUrl": queue, "MaxNumberOfMessages": batch });
                let received = call(&emulator, &mut connection, "AmazonSQS.ReceiveMessage", &request).await?;
                let received = received["Messages"].as_array().cloned().unwrap_or_default();
                let entry = |(id, message): (usize, &Value)| json!({"Id": id.to_string(), "ReceiptHandle": message["ReceiptHandle"]});
                let entries: Vec<Value> = received.iter().enumerate().map(entry).collect();
                if !entries.is_empty() {
                    let request = json!({ "QueueUrl": queue, "Entries": entries });
                    call(&emulator, &mut connection, "AmazonSQS.DeleteMessageBatch", &request).await?;
                }
                done += u64::try_from(received.len())?;
            }
            TaskResult::Ok(done)
        });
    }
    sum(clients, began).await
}

async fn sum(mut clients: JoinSet<TaskResult<u64>>, began: Instant) -> TaskResult<f64> {
    let mut done = 0;
    while let Some(client) = clients.join_next().await {
        done += client??;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

/// Calls a service of AWS in its JSON protocol.
pub async fn call(
    emulator: &Emulator,
    connection: &mut Connection,
    operation: &str,
    request: &Value,
) -> TaskResult<Value> {
    let (headers, body) =
        ([("content-type", "application/x-amz-json-1.0"), ("x-amz-target", operation)], request.to_string());
    let address = format!("{}/", emulator.address.trim_end_matches('/'));
    let signature = emulator.caller.signature("POST", &address, headers.into_iter(), body.as_bytes());
    let signature = signature.iter().map(|(name, value)| (*name, value.as_str()));
    let headers: Vec<_> = headers.into_iter().chain(signature).collect();
    let answer = connection.post("/", &headers, body).await?;
    if !answer.status.is_success() {
        return Err(format!("{operation}: {} {}", answer.status, String::from_utf8_lossy(&answer.body)).into());
    }
    Ok(serde_json::from_slice(&answer.body)?)
}
