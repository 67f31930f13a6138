//! `make bench`: functions as Lambda runs them, and what a million deliveries cost there; what a cold start, a warm
//! request, a binary and its memory cost, beside a hello world in the same run; an update of a large geo-IP database;
//! publishing and delivering; what becomes slower as data grows; and issuing and validating tokens.
//!
//! Machines are noisy, so only the comparison within one run says something. The measured functions are the binaries
//! that are deployed; what stands beside them is a bundle as `make run` starts it.

mod announcements;
mod cloud;
mod comparison;
mod connection;
mod counting_proxy;
mod deliveries;
mod emulators;
mod endpoint;
mod filling;
mod function;
mod geo_ip;
mod growth;
mod lambda;
mod load;
mod memory_table;
mod network;
mod new_deliveries;
mod peer;
mod prices;
mod process;
mod queues;
mod report;
mod run;
mod runtime_api;
mod stand;
mod stored;
mod times;
mod tokens;
mod usage;
mod waiting;

use std::{error::Error, process::ExitCode};

use function::Subject;
use geo_ip::Provider;
use stand::{Setup, Stand};

const COLD_STARTS: usize = 21;
const WARM_REQUESTS: usize = 2000;

#[tokio::main]
async fn main() -> ExitCode {
    match measure().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let part = std::env::args().nth(1).unwrap_or_default();
    match part.as_str() {
        "lambda" => lambda::measure().await,
        "start" => measure_start().await,
        "geo-ip" => measure_update().await,
        "deliveries" => deliveries::measure().await,
        "queues" => queues::measure().await,
        "growth" => growth::measure().await,
        "tokens" => tokens::measure().await,
        "" => {
            lambda::measure().await?;
            measure_start().await?;
            measure_update().await?;
            deliveries::measure().await?;
            growth::measure().await?;
            queues::measure().await?;
            tokens::measure().await
        }
        part => {
            Err(format!("there is no part `{part}`: lambda, start, geo-ip, deliveries, growth, queues, tokens").into())
        }
    }
}

async fn measure_start() -> Result<(), Box<dyn Error>> {
    let stand = Stand::start(Setup::default()).await?;
    let event = stand.publish_one().await?;
    let subjects = [
        Subject::hello(),
        Subject::list_events(&stand),
        Subject::token(&stand),
        Subject::show_delivery(&stand, &event),
        Subject::mcp(&stand),
    ];
    report::functions_head(COLD_STARTS, WARM_REQUESTS);
    let mut baseline = None;
    for subject in subjects {
        let measured = subject.measure(&stand, COLD_STARTS, WARM_REQUESTS).await?;
        let baseline = *baseline.get_or_insert(measured.start.median);
        report::function(subject.name, &measured, baseline);
    }
    Ok(())
}

async fn measure_update() -> Result<(), Box<dyn Error>> {
    let provider = Provider::start().await?;
    let stand = Stand::start(Setup { geo_ip: Some(&provider.secret()), ..Setup::default() }).await?;
    report::update(&provider.measure(&stand).await?);
    Ok(())
}
