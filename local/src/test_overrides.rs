//! Parts that a test or a measurement places itself: a fixed port, so that a proxy can be there before the service, the
//! proxy in a stand-in's place, other builds of the functions, or some of them only. And a record of what functions call.

use std::path::PathBuf;

/// The parts that are placed otherwise than usual.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "For tests and measurements")]
pub struct TestOverrides {
    /// Runs the table alone, in memory and without a table in it, for a rehearsal that has everything else from elsewhere;
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
    /// The folder with the functions' binaries; else the one with this program.
    #[arg(long, value_name = "FOLDER")]
    pub binaries: Option<PathBuf>,
    /// The functions that run, by their names; else all. Only these have to be built.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Option<Vec<String>>,
    /// Records each distinct call of a function to the table, the queues, the secrets and the bucket in this file.
    #[arg(long, value_name = "FILE")]
    pub record_calls: Option<PathBuf>,
}
