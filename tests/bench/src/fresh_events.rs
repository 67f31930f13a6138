//! Listing a quiet webhook's deliveries, which are older than fresh events for another webhook of its entity. The sweep
//! has not examined the events yet, so their deliveries may be missing from the index, and a list must read them.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::time::sleep;

use crate::{
    bundle::{Bundle, BundleSettings},
    connection::in_words,
    counting_proxy::CountingProxy,
    filling::Filling,
    growth::{REQUESTS, timed},
    times::Times,
    waiting,
};

const EVENTS: [usize; 2] = [22_000, 100_000];
/// This number is measured only with the argument `million`, since filling the table takes minutes.
const MILLION: usize = 1_000_000;
/// The number of the quiet webhook's deliveries, all waiting for a retry.
const QUIET: usize = 30;
const LIMIT: Duration = Duration::from_secs(60);

/// Figures for a list of the quiet webhook's deliveries.
pub struct QuietList {
    pub status: &'static str,
    /// The number of fresh events before the webhook's deliveries.
    pub events: usize,
    /// The number of pages up to the first page with a delivery, and the read units that they use.
    pub pages: usize,
    pub reads: f64,
    /// How long these pages take, through the proxy that counts the units.
    pub times: Times,
}

/// Measures listing all of the quiet webhook's deliveries, and those waiting for a retry.
pub async fn measure() -> Result<Vec<QuietList>, Box<dyn Error>> {
    let proxy = CountingProxy::start().await?;
    // Breakers must not pause the webhook when its deliveries fail.
    let variables =
        &[("RETRY_SCHEDULE", waiting::SCHEDULE), ("SWEEP_INTERVAL", "1h"), ("BREAKER_THRESHOLD", "1000000")];
    let release = &["list-deliveries"];
    let settings = BundleSettings { release, variables, proxy: Some(&proxy), ..BundleSettings::default() };
    let bundle = Bundle::start(settings).await?;
    let mut filling = Filling::of(&bundle).await.map_err(in_words)?;
    let million = std::env::args().any(|argument| argument == "million").then_some(MILLION);
    let mut lists = Vec::new();
    for events in EVENTS.into_iter().chain(million) {
        let entity = &format!("quiet-{events}");
        let quiet = quiet_webhook(&bundle, entity).await?;
        let busy = bundle.hook(entity, "http://127.0.0.1:1/").await?;
        filling.deliveries(entity, &busy, events, Duration::ZERO).await.map_err(in_words)?;
        for (status, filter) in [("all", ""), ("`status=retrying`", "&status=retrying")] {
            let list = format!("webhook/delivery/list?webhookIdentifier={quiet}{filter}");
            // The first request starts the function.
            pages_to_first(&bundle, entity, &list).await?;
            proxy.take();
            let pages = pages_to_first(&bundle, entity, &list).await?;
            let reads = proxy.take().into_values().map(|count| count.reads).sum();
            let times = timed(REQUESTS, async || pages_to_first(&bundle, entity, &list).await.map(drop)).await?;
            lists.push(QuietList { status, events, pages, reads, times });
        }
    }
    Ok(lists)
}

/// Creates a webhook whose deliveries are all waiting for a retry.
async fn quiet_webhook(bundle: &Bundle, entity: &str) -> Result<String, Box<dyn Error>> {
    let quiet = bundle.hook(entity, "http://127.0.0.1:1/").await?;
    for _ in 0..QUIET {
        bundle.post(entity, "webhook/event", &json!({ "type": "booking.created", "data": {} })).await?;
    }
    let waiting = format!("webhook/delivery/list?webhookIdentifier={quiet}&status=retrying&limit=100");
    let began = Instant::now();
    while bundle.get(entity, &waiting).await?["items"].as_array().map_or(0, Vec::len) < QUIET {
        if began.elapsed() > LIMIT {
            return Err("the deliveries of the quiet webhook do not wait for a retry".into());
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(quiet)
}

/// Follows a list's cursors to the first page with a delivery; returns the number of pages.
async fn pages_to_first(bundle: &Bundle, entity: &str, list: &str) -> Result<usize, Box<dyn Error>> {
    let mut path = list.to_owned();
    let mut pages = 1;
    loop {
        let page = bundle.get(entity, &path).await?;
        if page["items"].as_array().is_some_and(|items| !items.is_empty()) {
            return Ok(pages);
        }
        let cursor = page["nextCursor"].as_str().ok_or("no page of the list has a delivery")?;
        path = format!("{list}&cursor={cursor}");
        pages += 1;
    }
}
