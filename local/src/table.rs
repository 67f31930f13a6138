//! The table: dynoxide, an embedded DynamoDB on SQLite, on a thread and a runtime of its own, behind the protocol of
//! [`calls`].
//!
//! It waits for the disk at every write, on the thread that serves the request; on our own runtime, that would hold up
//! the gateway.

mod calls;

use std::{
    fs::{File, Permissions},
    io,
    net::SocketAddr,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use axum::{middleware, serve::ListenerExt};
use deployment::Table;
use dynoxide::Database;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};

use crate::callers::{self, Callers};

/// How the table is called here; the emulator wants eleven characters or more.
pub const TABLE_NAME: &str = "waypost-local";

/// How often expired items are removed. AWS promises "within days".
const SWEEP: Duration = Duration::from_secs(60);

/// How long running requests may take to end.
const LAST_ORDERS: Duration = Duration::from_secs(2);

/// One request at a time has the database; more threads only have requests read and answers written meanwhile.
const THREADS: usize = 4;

/// The running table.
pub struct TableServer {
    /// Its address.
    pub endpoint: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be opened, or is not a database.
    #[error("the table's file cannot be used: {0}; `make clean-data` begins anew")]
    Open(String),
    /// The template's table is not one that DynamoDB would create.
    #[error("the table cannot be created: {0}")]
    Create(String),
    /// The file's table was made by another template, and is not made its own by adding indexes.
    #[error("the table on disk has other keys or indexes than template.yaml; `make clean-data` begins anew")]
    Outdated,
    /// An index of the template cannot be added to the file's table.
    #[error("the index {index} cannot be added to the table on disk: {reason}")]
    Index {
        /// What it is called.
        index: String,
        /// What the emulator says.
        reason: String,
    },
    /// No thread, no port, no runtime.
    #[error("the table's server cannot be started")]
    Server(#[source] io::Error),
    /// It ended before it began; its panic is on stderr.
    #[error("the table's thread ended unexpectedly")]
    Thread,
}

impl TableServer {
    /// Opens the file, makes the table if it is not there, and serves it to those who have the credentials, on a free port
    /// where the address has none.
    pub fn start(file: &Path, table: &Table, address: SocketAddr, callers: Callers) -> Result<Self, TableError> {
        let (ready, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let (file, table) = (file.to_string_lossy().into_owned(), table.clone());
        let thread = thread::Builder::new()
            .name("table".to_owned())
            .spawn(move || serve(&file, &table, (address, callers), &ready, stopped))
            .map_err(TableError::Server)?;
        let endpoint = started.recv().map_err(|_| TableError::Thread)??;
        Ok(Self { endpoint, stop: Some(stop), thread: Some(thread) })
    }
}

/// Lets running requests end and closes the database.
impl Drop for TableServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        let begun = Instant::now();
        // A client that has sent half a request would hold the server for ever; what was acknowledged is on disk.
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && begun.elapsed() < LAST_ORDERS {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn serve(
    file: &str,
    table: &Table,
    (address, callers): (SocketAddr, Callers),
    ready: &mpsc::Sender<Result<String, TableError>>,
    stopped: oneshot::Receiver<()>,
) {
    let prepared = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("table")
        .enable_all()
        .build()
        .map_err(TableError::Server)
        .and_then(|runtime| {
            let database = open(file, table)?;
            let listener = runtime.block_on(TcpListener::bind(address)).map_err(TableError::Server)?;
            let address = listener.local_addr().map_err(TableError::Server)?;
            Ok((runtime, database, listener, format!("http://{address}")))
        });
    let (runtime, database, listener, endpoint) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            // Nobody waits any more only when the whole start was given up.
            let _ = ready.send(Err(error));
            return;
        }
    };
    runtime.spawn(remove_expired(database.clone()));
    let _ = ready.send(Ok(endpoint));
    let router = calls::router(database).layer(middleware::from_fn_with_state(callers, callers::with_credentials));
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    let served = axum::serve(listener, router).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    if let Err(error) = runtime.block_on(served.into_future()) {
        tracing::error!("the table ended: {error}");
    }
    // The sweep is dropped where it waits.
    runtime.shutdown_timeout(Duration::from_secs(1));
}

/// Makes the file if it is not there, and lets nobody but its owner read it.
fn make_private(file: &str) -> io::Result<()> {
    let file = File::options().create(true).append(true).mode(0o600).open(file)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

fn open(file: &str, table: &Table) -> Result<Database, TableError> {
    let create = |error: &dyn std::fmt::Display| TableError::Create(error.to_string());
    // The files beside it, with what was written last, take over its mode.
    make_private(file).map_err(|error| TableError::Open(error.to_string()))?;
    let database = Database::new(file).map_err(|error| TableError::Open(error.to_string()))?;
    // What this really does is to set SQLite's `synchronous` to NORMAL: a commit is written, and the disk is waited for
    // only when the log is merged into the file. Whatever kills processes loses nothing, since the kernel has every
    // commit. What a failure of power or kernel takes is the last commits, and never the order or the form of what is
    // left. Waiting for the disk at each commit would cost more than all the rest of a write.
    database.disable_bulk_loading().map_err(|error| TableError::Open(error.to_string()))?;

    let name = json!({ "TableName": TABLE_NAME });
    let describe = serde_json::from_value(name.clone()).map_err(|error| create(&error))?;
    if let Ok(existing) = database.describe_table(describe) {
        let existing = serde_json::to_value(existing).map_err(|error| create(&error))?;
        let missing = missing_indexes(&existing["Table"], &table.definition).ok_or(TableError::Outdated)?;
        missing.into_iter().try_for_each(|index| add_index(&database, index, &table.definition))?;
        return Ok(database);
    }

    let mut definition = table.definition.clone();
    definition["TableName"] = json!(TABLE_NAME);
    let request = serde_json::from_value(definition).map_err(|error| create(&error))?;
    database.create_table(request).map_err(|error| create(&error))?;
    if let Some(attribute) = &table.expiry_attribute {
        let mut request = name;
        request["TimeToLiveSpecification"] = json!({ "AttributeName": attribute, "Enabled": true });
        let request = serde_json::from_value(request).map_err(|error| create(&error))?;
        database.update_time_to_live(request).map_err(|error| create(&error))?;
    }
    Ok(database)
}

/// The indexes that a table on disk lacks to serve a template; `None` when it differs in anything else.
fn missing_indexes<'a>(existing: &Value, wanted: &'a Value) -> Option<Vec<&'a Value>> {
    let indexes = |table: &'a Value| table["GlobalSecondaryIndexes"].as_array().into_iter().flatten();
    let form = |index: &Value| ["IndexName", "KeySchema", "Projection"].map(|member| index[member].clone());
    let present: Vec<_> = existing["GlobalSecondaryIndexes"].as_array().into_iter().flatten().map(form).collect();
    let known = |name: &Value| present.iter().any(|[present, ..]| present == name);
    let has_place = |index: &[Value; 3]| indexes(wanted).any(|wanted| form(wanted) == *index);
    let is_same = existing["KeySchema"] == wanted["KeySchema"] && present.iter().all(has_place);
    is_same.then(|| indexes(wanted).filter(|index| !known(&index["IndexName"])).collect())
}

/// Adds an index, with everything that the table has for it, as an update of the stack does on AWS.
fn add_index(database: &Database, index: &Value, definition: &Value) -> Result<(), TableError> {
    let name = || index["IndexName"].as_str().unwrap_or_default().to_owned();
    let failed = |error: &dyn std::fmt::Display| TableError::Index { index: name(), reason: error.to_string() };
    let request = json!({
        "TableName": TABLE_NAME,
        "AttributeDefinitions": definition["AttributeDefinitions"],
        "GlobalSecondaryIndexUpdates": [{ "Create": index }],
    });
    let request = serde_json::from_value(request).map_err(|error| failed(&error))?;
    database.update_table(request).map_err(|error| failed(&error))?;
    tracing::info!("added the index {} to the table", name());
    Ok(())
}

async fn remove_expired(database: Database) {
    let mut minutes = tokio::time::interval(SWEEP);
    loop {
        minutes.tick().await;
        let database = database.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || database.sweep_ttl()).await {
            tracing::warn!("expired items could not be removed: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(indexes: &[&str]) -> Value {
        let index = |name: &&str| {
            json!({
                "IndexName": name,
                "KeySchema": [{ "AttributeName": name, "KeyType": "HASH" }],
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            })
        };
        let attribute = |name: &&str| json!({ "AttributeName": name, "AttributeType": "S" });
        let attributes: Vec<Value> = ["pk"].iter().chain(indexes).map(attribute).collect();
        let indexes: Vec<Value> = indexes.iter().map(index).collect();
        json!({
            "AttributeDefinitions": attributes,
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }],
            "BillingMode": "PAY_PER_REQUEST",
            "GlobalSecondaryIndexes": indexes,
        })
    }

    #[test]
    fn only_a_table_that_lacks_nothing_but_indexes_can_go_on() {
        let missing = |existing: &Value, wanted: &Value| missing_indexes(existing, wanted).map(|found| found.len());
        let (one, two) = (definition(&["one"]), definition(&["one", "two"]));
        assert_eq!(missing(&one, &one), Some(0));
        assert_eq!(missing(&one, &two), Some(1));
        assert_eq!(missing(&two, &one), None, "it has an index that the template lacks");
        let mut other = two.clone();
        other["GlobalSecondaryIndexes"][0]["Projection"]["ProjectionType"] = json!("ALL");
        assert_eq!(missing(&other, &two), None, "an index is another");
        other = two.clone();
        other["KeySchema"][0]["AttributeName"] = json!("key");
        assert_eq!(missing(&other, &two), None, "the keys are others");
    }

    #[test]
    fn an_index_that_is_new_in_the_template_finds_what_the_table_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("table.db").to_string_lossy().into_owned();
        let table = |indexes: &[&str]| Table {
            logical_id: "Table".to_owned(),
            definition: definition(indexes),
            expiry_attribute: None,
        };
        let database = open(&file, &table(&["one"])).expect("a new table");
        let item = json!({ "pk": { "S": "1" }, "one": { "S": "x" }, "two": { "S": "y" } });
        let put = json!({ "TableName": TABLE_NAME, "Item": item });
        database.put_item(serde_json::from_value(put).expect("a request")).expect("written");
        drop(database);

        let database = open(&file, &table(&["one", "two"])).expect("the index is added");
        let query = json!({
            "TableName": TABLE_NAME, "IndexName": "two", "KeyConditionExpression": "two = :two",
            "ExpressionAttributeValues": { ":two": { "S": "y" } },
        });
        let found = database.query(serde_json::from_value(query).expect("a request")).expect("found");
        assert_eq!(found.count, 1);
        drop(database);
        assert!(matches!(open(&file, &table(&["one"])), Err(TableError::Outdated)));
        assert!(open(&file, &table(&["one", "two"])).is_ok(), "nothing is to be added the second time");
    }
}
