#![doc = include_str!("../README.md")]

mod aws;
mod bundle;
mod call_record;
mod callers;
mod clean_data;
mod data_folder;
mod disk;
mod function_processes;
mod gateway;
mod invoke;
mod lambda_api;
mod log_files;
mod plan;
mod ports;
mod preflight;
mod processes;
mod processors;
mod queue_pump;
mod queues;
mod readiness;
mod running;
mod runtime_api;
mod schedule_pump;
mod secrets;
mod service_env;
mod services;
mod settings;
mod shutdown;
mod signature;
mod start;
mod table;
mod terminal;
mod test_overrides;

use std::{io::stderr, path::PathBuf, process::ExitCode};

use base::logging;
use clap::{Parser, Subcommand};

use crate::test_overrides::TestOverrides;

/// Each call to the table allocates several thousand small objects, and the system's allocator used a fifth of the
/// time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the whole bundle on one machine.
#[derive(Parser)]
pub struct Arguments {
    /// The port of the service on 127.0.0.1.
    #[arg(long, env = "PORT", default_value_t = 9000, value_parser = port)]
    port: u16,
    /// The folder for the table, secrets and logs.
    #[arg(long, env = "DATA", default_value = ".local")]
    data: PathBuf,
    /// The project's folder, which contains template.yaml.
    #[arg(long, default_value = ".")]
    project: PathBuf,
    /// Show no lines for requests, attempts and faults of functions (1 or 0).
    #[arg(long, env = "QUIET", default_value = "0", default_missing_value = "1", num_args = 0..=1, require_equals = true, value_parser = switch)]
    quiet: bool,
    /// End when the process that started this one ends, however it ends.
    #[arg(long)]
    stop_with_parent: bool,
    #[command(flatten)]
    overrides: TestOverrides,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Removes the data of earlier runs from the data folder, after asking.
    CleanData {
        /// `yes` skips the question.
        #[arg(long, default_value = "")]
        confirm: String,
    },
}

fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "must be a port, from 0 to 65535")
}

/// An empty variable counts as unset.
fn switch(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" => Ok(true),
        "0" | "" => Ok(false),
        _ => Err("must be 1 or 0"),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(stderr)
        .with_env_filter("warn,local=info,dynoxide=error")
        .without_time()
        .with_target(false)
        .init();
    let arguments = Arguments::parse();
    if let Some(Command::CleanData { confirm }) = &arguments.command {
        return match clean_data::clean(&arguments.data, confirm) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", logging::chain(&error));
                ExitCode::FAILURE
            }
        };
    }
    preflight::allow_many_open_files();
    match start::run(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", logging::chain(&error));
            if disk::is_cause_of(&error) {
                tracing::error!("the disk is full: free some space, and start again");
            }
            ExitCode::FAILURE
        }
    }
}
