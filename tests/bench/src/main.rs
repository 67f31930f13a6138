//! `make bench`: what functions cost as Lambda runs them, and what a million deliveries cost there; publishing and
//! delivering; what becomes slower as data grows; and an update of a large geo-IP database.
//!
//! Machines are noisy, so only the comparison within one run says something. The measured functions are the binaries
//! that are deployed; everything around them is a bundle as `make run` starts it.

mod announcements;
mod cloud;
mod connection;
mod counting_proxy;
mod deliveries;
mod emulator;
mod endpoint;
mod filling;
mod function;
mod geo_ip;
mod growth;
mod lambda;
mod load;
mod network;
mod new_deliveries;
mod prices;
mod process;
mod report;
mod run;
mod runtime_api;
mod stand;
mod stored;
mod times;
mod usage;
mod waiting;

use std::{error::Error, process::ExitCode};

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
        "deliveries" => deliveries::measure().await,
        "growth" => growth::measure().await,
        "geo-ip" => geo_ip::measure().await,
        "" => {
            lambda::measure().await?;
            deliveries::measure().await?;
            growth::measure().await?;
            geo_ip::measure().await
        }
        part => Err(format!("there is no part `{part}`: lambda, deliveries, growth, geo-ip").into()),
    }
}
