#![doc = include_str!("../README.md")]

mod aws;
mod bundle;
mod callers;
mod data_folder;
mod function_processes;
mod function_rights;
mod gateway;
mod invoke;
mod lambda_api;
mod ministack;
mod open_files;
mod plan;
mod ports;
mod preflight;
mod processes;
mod queue_pump;
mod readiness;
mod running;
mod runtime_api;
mod schedule_pump;
mod secrets;
mod service_env;
mod settings;
mod shutdown;
mod start;
mod table;
mod test_overrides;

use std::{io::stderr, path::PathBuf, process::ExitCode};

use base::logging;
use clap::Parser;

use crate::test_overrides::TestOverrides;

/// Runs the whole bundle on one machine.
#[derive(Parser)]
pub struct Arguments {
    /// The port of the service on 127.0.0.1.
    #[arg(long, env = "PORT", default_value_t = 9000)]
    port: u16,
    /// The folder for table, secrets and logs.
    #[arg(long, env = "DATA", default_value = ".local")]
    data: PathBuf,
    /// The project's folder, with template.yaml and .venv.
    #[arg(long, default_value = ".")]
    project: PathBuf,
    /// End when the process that started this one ends, however it ends.
    #[arg(long)]
    stop_with_parent: bool,
    #[command(flatten)]
    overrides: TestOverrides,
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
    open_files::allow_many();
    match start::run(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", logging::chain(&error));
            ExitCode::FAILURE
        }
    }
}
