//! The queue of one machine and ministack, over the wire and in one run: messages a second and what each computes for a
//! message, while more and more messages wait.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::HeaderMap,
    response::Response,
};
use base::{SystemClock, SystemRandom};
use doubles::Ministack;
use queue::Queues;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    task::JoinSet,
};

use crate::{
    connection::{Connection, TaskResult},
    emulators::{Emulator, call},
    process::{children, computed, computed_by_threads},
};

/// How many messages wait in each round.
const WAITING: [usize; 3] = [0, 4_000, 100_000];
const CLIENTS: usize = 8;
const BATCH: usize = 10;
/// Requests before a new connection: ministack's server ends one after a thousand.
const ON_A_CONNECTION: usize = 500;
const TIME: Duration = Duration::from_secs(5);
/// The name of the threads that serve our own queue, by which the kernel counts what they compute.
const THREADS: &str = "queue-server";

/// Measures both and prints the table.
pub async fn measure() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    let ministack = Ministack::start("sqs").await;
    let ours = Subject { emulator: Emulator::at(&server.address), computed: of_threads };
    let theirs = Subject { emulator: Emulator::at(&ministack.url()), computed: of_ministack };
    println!("\nA queue over HTTP, {CLIENTS} clients, each message of 100 B sent, received and deleted in tens\n");
    println!("| messages that wait | here: messages/s | CPU of a message | ministack: messages/s | CPU of a message |");
    println!("|---|---|---|---|---|");
    for waiting in WAITING {
        let unsent = |error: Box<dyn Error + Send + Sync>| -> Box<dyn Error> { error };
        let here = ours.measure(waiting).await.map_err(unsent)?;
        let there = theirs.measure(waiting).await.map_err(unsent)?;
        println!("| {waiting} | {here} | {there} |");
    }
    Ok(())
}

/// Our own queue, served by threads of its own.
struct Server {
    runtime: Option<Runtime>,
    address: String,
}

impl Server {
    async fn start() -> Result<Self, Box<dyn Error>> {
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name(THREADS).enable_all().build()?;
        let listener = runtime.spawn(TcpListener::bind("127.0.0.1:0")).await??;
        let address = format!("http://{}", listener.local_addr()?);
        let queues = Queues::new(&address, "us-east-1", "000000000000", Arc::new(SystemClock), Arc::new(SystemRandom));
        let service = Router::new().fallback(answer).with_state(queues);
        runtime.spawn(async move { axum::serve(listener, service).await });
        Ok(Self { runtime: Some(runtime), address })
    }
}

impl Drop for Server {
    /// A runtime that waited for its threads could not be dropped within another.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn answer(State(queues): State<Queues>, headers: HeaderMap, body: Bytes) -> Response {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
    let operation = target.strip_prefix("AmazonSQS.").unwrap_or_default();
    queues.answer(operation, &body).await.map(Body::from)
}

fn of_threads() -> Result<Duration, String> {
    computed_by_threads(std::process::id(), THREADS).map_err(|error| error.to_string())
}

/// It is the only process that this one starts.
fn of_ministack() -> Result<Duration, String> {
    let children = children(std::process::id()).map_err(|error| error.to_string())?;
    children.iter().map(|(process, _)| computed(*process).map_err(|error| error.to_string())).sum()
}

/// A queue's server, and how long it has computed.
struct Subject {
    emulator: Emulator,
    computed: fn() -> Result<Duration, String>,
}

impl Subject {
    /// A row's part: messages a second, and the processor time of each.
    async fn measure(&self, waiting: usize) -> TaskResult<String> {
        let made = self.ask("CreateQueue", json!({ "QueueName": format!("waiting-{waiting}") })).await?;
        let queue: Arc<str> = made["QueueUrl"].as_str().ok_or("no queue")?.into();
        let batches: Vec<_> = (0..waiting / BATCH).collect();
        for some in batches.chunks(ON_A_CONNECTION) {
            let mut connection = Connection::open(&self.emulator.address).await?;
            for _ in some {
                send(&self.emulator, &mut connection, &queue).await?;
            }
        }
        let (before, began) = ((self.computed)()?, Instant::now());
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(pass_messages(self.emulator.clone(), Arc::clone(&queue), began));
        }
        let mut messages = 0;
        while let Some(client) = clients.join_next().await {
            messages += client??;
        }
        let (time, computed) = (began.elapsed(), (self.computed)()? - before);
        self.ask("PurgeQueue", json!({ "QueueUrl": *queue })).await?;
        let messages = f64::from(messages);
        Ok(format!("{:.0} | {:.3} ms", messages / time.as_secs_f64(), computed.as_secs_f64() * 1e3 / messages))
    }

    async fn ask(&self, operation: &str, request: Value) -> TaskResult<Value> {
        let mut connection = Connection::open(&self.emulator.address).await?;
        call(&self.emulator, &mut connection, &format!("AmazonSQS.{operation}"), &request).await
    }
}

async fn send(emulator: &Emulator, connection: &mut Connection, queue: &str) -> TaskResult<()> {
    let entry = |id: usize| {
        let group = format!("group-{id}");
        json!({ "Id": id.to_string(), "MessageBody": "x".repeat(100), "MessageGroupId": group })
    };
    let entries: Vec<Value> = (0..BATCH).map(entry).collect();
    let request = json!({ "QueueUrl": queue, "Entries": entries });
    call(emulator, connection, "AmazonSQS.SendMessageBatch", &request).await.map(drop)
}

/// Sends, receives and deletes until the time is over; how many messages went through.
async fn pass_messages(emulator: Emulator, queue: Arc<str>, began: Instant) -> TaskResult<u32> {
    let mut connection = Connection::open(&emulator.address).await?;
    let (mut messages, mut requests) = (0, 0);
    while began.elapsed() < TIME {
        requests += 3;
        if requests % ON_A_CONNECTION < 3 {
            connection = Connection::open(&emulator.address).await?;
        }
        send(&emulator, &mut connection, &queue).await?;
        let request = json!({ "QueueUrl": *queue, "MaxNumberOfMessages": BATCH });
        let received = call(&emulator, &mut connection, "AmazonSQS.ReceiveMessage", &request).await?;
        let received = received["Messages"].as_array().cloned().unwrap_or_default();
        let entry =
            |(id, message): (usize, &Value)| json!({ "Id": id.to_string(), "ReceiptHandle": message["ReceiptHandle"] });
        let entries: Vec<Value> = received.iter().enumerate().map(entry).collect();
        if !entries.is_empty() {
            let request = json!({ "QueueUrl": *queue, "Entries": entries });
            call(&emulator, &mut connection, "AmazonSQS.DeleteMessageBatch", &request).await?;
        }
        messages += u32::try_from(received.len())?;
    }
    Ok(messages)
}
