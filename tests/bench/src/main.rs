//! `make bench`: the cost of functions as Lambda runs them, and of a million deliveries; publishing and delivering;
//! feeds and their readers; slowdown as data grows; and updates of a large geo-IP database.
//!
//! Since machines are noisy, compare only figures from the same run. The measured functions are the deployed binaries,
//! in a bundle like the one started by `make run`.

mod announcements;
mod bundle;
mod cloud;
mod connection;
mod counting_proxy;
mod dear_filters;
mod deliveries;
mod emulator;
mod endpoint;
mod feed;
mod filling;
mod fresh_events;
mod function;
mod geo_ip;
mod growth;
mod lambda;
mod load;
mod network;
mod new_deliveries;
mod prices;
mod process;
mod reader;
mod report;
mod run;
mod runtime_api;
mod stages;
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
        "feed" => feed::measure().await,
        "growth" => growth::measure().await,
        "geo-ip" => geo_ip::measure().await,
        "" => {
            lambda::measure().await?;
            deliveries::measure().await?;
            feed::measure().await?;
            growth::measure().await?;
            geo_ip::measure().await
        }
        part => Err(format!("there is no part `{part}`: lambda, deliveries, feed, growth, geo-ip").into()),
    }
}
