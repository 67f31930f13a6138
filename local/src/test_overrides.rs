//! Parts that a test or a measurement places itself: a fixed port, so that a proxy can be there before the service, the
//! proxy in an emulator's place, a server of S3, the life of idle processes, other builds of the functions, or some of
//! them only; and a record of the calls of functions.

use std::path::PathBuf;

use base::wait::Wait;

use crate::services::S3;

/// The parts that are placed otherwise than usual.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "For tests and measurements")]
pub struct TestOverrides {
    /// Runs the table alone, in memory and without a table in it, for a deployment test that has everything else from elsewhere;
    /// prints its address when it listens.
    #[arg(long)]
    pub table_alone: bool,
    /// The port of the table on 127.0.0.1; else a free one.
    #[arg(long, value_name = "PORT")]
    pub table_port: Option<u16>,
    /// The port of queues and secrets on 127.0.0.1; else a free one.
    #[arg(long, value_name = "PORT")]
    pub services_port: Option<u16>,
    /// Where the functions find the table; else where it is.
    #[arg(long, value_name = "URL")]
    pub functions_table: Option<String>,
    /// Where the functions find queues and secrets; else where they are.
    #[arg(long, value_name = "URL")]
    pub functions_services: Option<String>,
    /// The server of the bucket that GEO_IP_STORE names, such as http://127.0.0.1:4566. It must check no signatures, as
    /// emulators do, since the functions sign for this program.
    #[arg(long, value_name = "URL")]
    pub s3: Option<S3>,
    /// How long a function is idle before its process is ended; else two minutes.
    #[arg(long, value_name = "WAIT")]
    pub function_idle: Option<Wait>,
    /// The folder with one program for each function, as they are deployed; else one program is all functions.
    #[arg(long, value_name = "FOLDER")]
    pub binaries: Option<PathBuf>,
    /// The functions that run, by their names; else all. Only these have to be built.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Option<Vec<String>>,
    /// Records each distinct call of a function to the table, the queues, the secrets and the bucket in this file.
    #[arg(long, value_name = "FILE")]
    pub record_calls: Option<PathBuf>,
}
