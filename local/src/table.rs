//! The table: dynoxide, an embedded DynamoDB on SQLite, on its own thread and runtime, behind the protocol in
//! [`calls`].
//!
//! Every write blocks the thread that serves the request until the disk responds. On the main runtime, this would delay
//! the gateway.

mod calls;
mod faults;
mod joined;
mod schema;

pub use schema::TABLE_NAME;

use std::{io, path::Path, sync::mpsc, thread, time::Duration};

use axum::{Router, middleware, serve::ListenerExt};
use dynoxide::Database;
use template::Table;
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::oneshot,
    time::{Instant, interval_at},
};

use self::{calls::Connections, faults::Faults, schema::SchemaError};
use crate::{
    callers::{self, Callers},
    ports::Port,
};

/// When expired items are first removed, and how often. Each removal reads the whole table, so the first one must not
/// delay startup. AWS only promises to remove them within days.
const FIRST_SWEEP: Duration = Duration::from_secs(60);
const SWEEP: Duration = Duration::from_secs(60 * 60);

/// The time that requests in progress have to finish.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Only one request at a time uses a connection; the other threads read requests and write responses in the meantime.
const THREADS: usize = 4;

/// The running table.
pub struct TableServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Why the table cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The table on disk cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The system cannot create a thread or a runtime.
    #[error("the table's server cannot be started")]
    Server(#[from] io::Error),
    /// The thread ended before it was serving requests; its panic is on standard error.
    #[error("the table's thread ended unexpectedly")]
    Thread,
}

impl TableServer {
    /// Opens the file, creates the table if it is missing, and serves it on this port to authenticated requests.
    pub fn start(file: &Path, table: &Table, port: Port, callers: Callers) -> Result<Self, TableError> {
        let faults = Faults::new(file.parent().map(Path::to_owned));
        let file = file.to_string_lossy().into_owned();
        let table = table.clone();
        let open = move || Ok(schema::open(&file, &table)?);
        Self::run(open, port, faults, |calls| {
            calls.layer(middleware::from_fn_with_state(callers, callers::with_credentials))
        })
    }

    /// Serves an empty in-memory database to every program on this machine: functions in an emulator have the
    /// emulator's credentials, and their deployment creates the tables.
    pub fn in_memory(port: Port) -> Result<Self, TableError> {
        let open = || {
            let database = Database::memory().map_err(|error| SchemaError::Memory(error.into()))?;
            Ok(Connections { writing: database.clone(), reading: database })
        };
        let faults = Faults::new(None);
        Self::run(open, port, faults, |calls| calls.layer(middleware::from_fn(callers::without_browsers)))
    }

    fn run(
        open: impl FnOnce() -> Result<Connections, TableError> + Send + 'static,
        port: Port,
        faults: Faults,
        guarded: impl FnOnce(Router) -> Router + Send + 'static,
    ) -> Result<Self, TableError> {
        let (ready, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let serve = move || match prepare(open, port) {
            Ok((runtime, listener, connections)) => {
                let _ = ready.send(Ok(()));
                let router = guarded(calls::router(connections.clone(), faults));
                serve(runtime, listener, connections.writing, router, stopped);
            }
            // The receiver is gone only if the start was abandoned.
            Err(error) => drop(ready.send(Err(error))),
        };
        let thread = thread::Builder::new().name("table".to_owned()).spawn(serve)?;
        started.recv().map_err(|_| TableError::Thread)??;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

/// Waits for requests in progress, then closes the database.
impl Drop for TableServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        let begun = Instant::now();
        // Waiting for a client with an incomplete request would block the server forever. Acknowledged writes have
        // already been committed.
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && begun.elapsed() < SHUTDOWN_GRACE {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn prepare(
    open: impl FnOnce() -> Result<Connections, TableError>,
    port: Port,
) -> Result<(Runtime, TcpListener, Connections), TableError> {
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("table").enable_all().build()?;
    let connections = open()?;
    // The port was opened on another runtime; from now on, connections wake this one.
    let listener = port.listener.into_std()?;
    let listener = runtime.block_on(async { TcpListener::from_std(listener) })?;
    Ok((runtime, listener, connections))
}

fn serve(runtime: Runtime, listener: TcpListener, database: Database, router: Router, stopped: oneshot::Receiver<()>) {
    runtime.spawn(remove_expired(database));
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    let served = axum::serve(listener, router).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    if let Err(error) = runtime.block_on(served.into_future()) {
        tracing::error!("the table ended: {error}");
    }
    // Stops the task that removes expired items, which is waiting.
    runtime.shutdown_timeout(Duration::from_secs(1));
}

async fn remove_expired(database: Database) {
    let mut sweeps = interval_at(Instant::now() + FIRST_SWEEP, SWEEP);
    loop {
        sweeps.tick().await;
        let database = database.clone();
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || database.sweep_ttl()).await {
            tracing::warn!("expired items could not be removed: {error}");
        }
    }
}
