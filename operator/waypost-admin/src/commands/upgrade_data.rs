//! `waypost-admin upgrade-data`: brings items of former releases to the present form.

use base::{Clock, SystemClock};
use clap::Args;
use operator::upgrade_data::{self, Counts};
use serde_json::json;

use crate::{arguments::Which, failure::Failure, output::Output};

const EXAMPLES: &str = "\
Examples:
  waypost-admin upgrade-data --stack waypost
  waypost-admin upgrade-data --stack waypost --json

Run it once after an update that asks for it. It reads the whole table once, and may be stopped at any moment and run again.
A service on this machine needs none of this: `make run` does the same at its start.";

/// Brings the data of former releases to the present form: gives deliveries what the indexes need.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {}

impl Arguments {
    /// Goes through the table.
    pub async fn run(self, which: &Which, output: Output) -> Result<(), Failure> {
        let deployment = which.open().await?;
        let filled = upgrade_data::fill(&deployment.table, SystemClock.now()).await;
        let Counts { seen, filled } = filled.map_err(Failure::Upgrade)?;
        let text = format!(
            "{seen} deliveries lacked something that an index needs; {filled} of them have it now, and the others have changed meanwhile"
        );
        output.write(json!({ "deliveriesSeen": seen, "deliveriesIndexed": filled }), text)
    }
}
