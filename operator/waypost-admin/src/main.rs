#![doc = include_str!("../README.md")]
// The futures from the runtime down to the SDK are nested deeper than the default limit.
#![recursion_limit = "256"]

mod arguments;
mod commands;
mod failure;
mod invocation;
mod output;
mod stack;

use std::{io::stderr, process::ExitCode};

use clap::Parser;
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use self::{arguments::Arguments, commands::Command, failure::Failure};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_standard_error();
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn run(Arguments { which, json, command }: Arguments) -> Result<(), Failure> {
    let output = output::Output { json };
    match command {
        Command::Application(command) => command.run(&which, output).await,
        Command::SigningKeys(command) => command.run(&which, output).await,
        Command::DataKeys(command) => command.run(&which, output).await,
        Command::Delivery(command) => command.run(&which, output).await,
        Command::GeoIp(command) => command.run(&which, output).await,
        Command::Panel(command) => command.run(&which, output).await,
        Command::Provision(command) => command.run(&which, output).await,
        Command::Webhook(command) => command.run(&which, output).await,
    }
}

/// Logs this program's progress and its libraries' warnings. Libraries must not log more, since some log whole
/// requests.
fn log_to_standard_error() {
    let filter = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("operator", LevelFilter::INFO)
        // `aws_config` warns about every source that lacks a region or credentials; the final error names the missing
        // part.
        .with_target("aws_config", LevelFilter::ERROR);
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr).without_time().with_target(false);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}
