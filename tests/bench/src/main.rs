//! `make bench`: what a cold start, a warm request, a binary and its memory cost, beside a hello world in the same run;
//! and an update of a large geo-IP database.
//!
//! Machines are noisy, so only the comparison within one run says something. The functions are the binaries that are
//! deployed; their table and secrets are those of a bundle that runs beside them.

mod function;
mod geo_ip;
mod runtime_api;
mod stand;

use std::{error::Error, time::Duration};

use function::{Measured, Subject};
use geo_ip::Provider;
use stand::Stand;

const COLD_STARTS: usize = 21;
const WARM_REQUESTS: usize = 2000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let provider = Provider::start().await?;
    let stand = Stand::start(&provider.secret()).await?;
    let event = stand.publish_one().await?;
    let subjects = [
        Subject::hello(),
        Subject::list_events(&stand),
        Subject::token(&stand),
        Subject::show_delivery(&stand, &event),
    ];
    println!("{COLD_STARTS} cold starts and {WARM_REQUESTS} warm requests each; medians (and 95th percentiles)\n");
    println!("| function | start to first response | × hello | warm request | binary | zip | resident |");
    println!("|---|---|---|---|---|---|---|");
    let mut baseline = None;
    for subject in subjects {
        let measured = subject.measure(&stand, COLD_STARTS, WARM_REQUESTS).await?;
        let baseline = *baseline.get_or_insert(measured.start.median);
        print(subject.name, &measured, baseline);
    }
    print_update(&provider.measure(&stand).await?);
    Ok(())
}

fn print_update(measured: &geo_ip::Measured) {
    let mega = |bytes: u64| bytes as f64 / 1e6;
    println!("\n| geo-IP update | first | CPU | peak memory | beyond the database | unchanged | lookup |");
    println!("|---|---|---|---|---|---|---|");
    println!(
        "| {:.0} MB | {:.2} s | {:.2} s | {:.0} MB | {:.0} MB | {:.0} ms | {:.2} µs |",
        mega(measured.size),
        measured.time.as_secs_f64(),
        measured.computing.as_secs_f64(),
        mega(measured.peak),
        mega(measured.peak.saturating_sub(measured.size)),
        measured.unchanged.as_secs_f64() * 1e3,
        measured.lookup.as_secs_f64() * 1e6,
    );
}

fn print(name: &str, measured: &Measured, baseline: Duration) {
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "| {name} | {:.1} ({:.1}) ms | {:.2} | {:.2} ({:.2}) ms | {:.1} MiB | {:.1} MiB | {:.1} MiB |",
        millis(measured.start.median),
        millis(measured.start.high),
        millis(measured.start.median) / millis(baseline),
        millis(measured.warm.median),
        millis(measured.warm.high),
        mebi(measured.binary),
        mebi(measured.zip),
        mebi(measured.resident),
    );
}
