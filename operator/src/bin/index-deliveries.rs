//! The operator's command after an update that brings the index `byWebhook` to a stack with deliveries: it puts those into the
//! index that were made before. `make run` does it by itself.
//!
//! It reads the whole table once, and may be stopped and run again at any moment.

use std::process::ExitCode;

use base::clock::{Clock, SystemClock};
use clap::Parser;
use operator::webhook_index;
use operator::{Deployment, OperatorError, Which};
use storage::table::TableError;

/// Puts deliveries into the index of their webhooks that were made before it was there.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    which: Which,
}

/// Why not all of it is done.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// There is no such deployment.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The table failed.
    #[error("the table could not be read or written; run it again")]
    Table(#[from] TableError),
}

#[tokio::main]
async fn main() -> ExitCode {
    operator::begin("index_deliveries");
    operator::end(fill(&Arguments::parse()).await)
}

async fn fill(arguments: &Arguments) -> Result<(), Failure> {
    let deployment = Deployment::of(&arguments.which).await?;
    let counts = webhook_index::fill(&deployment.table, SystemClock.now()).await?;
    tracing::info!("looked at {} deliveries and put {} into the index", counts.seen, counts.filled);
    Ok(())
}
