//! Overrides for tests and measurements: fixed ports (so that a proxy can start before the service), proxies'
//! addresses, an S3 server, the processes' idle limit, other builds or a selection of the functions, and a record of
//! their calls.

use std::path::PathBuf;

use base::wait::Wait;

use crate::services::S3;

/// The options for tests and measurements.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "For tests and measurements")]
pub struct TestOverrides {
    /// Runs only an empty in-memory database, for the deployment test; prints its address when it listens.
    #[arg(long)]
    pub table_alone: bool,
    /// The port of the table on 127.0.0.1; by default a free one.
    #[arg(long, value_name = "PORT")]
    pub table_port: Option<u16>,
    /// The port of queues and secrets on 127.0.0.1; by default a free one.
    #[arg(long, value_name = "PORT")]
    pub services_port: Option<u16>,
    /// The address of the table for functions; by default the table's own.
    #[arg(long, value_name = "URL")]
    pub functions_table: Option<String>,
    /// The address of queues and secrets for functions; by default their own.
    #[arg(long, value_name = "URL")]
    pub functions_services: Option<String>,
    /// The server of the bucket that GEO_IP_STORE names, such as http://127.0.0.1:4566. Like an emulator, it must not
    /// check signatures, since the functions sign for this program.
    #[arg(long, value_name = "URL")]
    pub s3: Option<S3>,
    /// The idle time after which a function's process is ended; by default two minutes.
    #[arg(long, value_name = "WAIT")]
    pub function_idle: Option<Wait>,
    /// A folder with one program for each function, as in a deployment; by default one program contains all functions.
    #[arg(long, value_name = "FOLDER")]
    pub binaries: Option<PathBuf>,
    /// The names of the functions that run; by default all. Only these functions must be built.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Option<Vec<String>>,
    /// Records each distinct call of a function to the table, the queues, the secrets and the bucket in this file.
    #[arg(long, value_name = "FILE")]
    pub record_calls: Option<PathBuf>,
}
