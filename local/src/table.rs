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

use crate::{aws::Credentials, callers};

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
    /// The file's table was made by another template.
    #[error("the table on disk has other keys or indexes than template.yaml; `make clean-data` begins anew")]
    Outdated,
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
    pub fn start(
        file: &Path,
        table: &Table,
        address: SocketAddr,
        credentials: Credentials,
    ) -> Result<Self, TableError> {
        let (ready, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let (file, table) = (file.to_string_lossy().into_owned(), table.clone());
        let thread = thread::Builder::new()
            .name("table".to_owned())
            .spawn(move || serve(&file, &table, (address, credentials), &ready, stopped))
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
    (address, credentials): (SocketAddr, Credentials),
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
    let router = calls::router(database).layer(middleware::from_fn_with_state(credentials, callers::with_credentials));
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
        return if same_keys(&existing["Table"], &table.definition) { Ok(database) } else { Err(TableError::Outdated) };
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

/// Whether a table on disk can serve a template: the same keys, and the same indexes.
fn same_keys(existing: &Value, wanted: &Value) -> bool {
    let indexes = |table: &Value| {
        let mut indexes: Vec<(String, [Value; 2])> = table["GlobalSecondaryIndexes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|index| (index["IndexName"].to_string(), [index["KeySchema"].clone(), index["Projection"].clone()]))
            .collect();
        indexes.sort_by(|(one, _), (other, _)| one.cmp(other));
        indexes
    };
    existing["KeySchema"] == wanted["KeySchema"] && indexes(existing) == indexes(wanted)
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
