//! Deliveries while others are waiting for a retry. Waiting deliveries must not slow others down, no matter how many
//! there are.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    bundle::Bundle,
    connection::in_words,
    endpoint::Endpoint,
    growth::Growth,
    load::Publisher,
    run::{Load, Run, SIZE},
    times::Times,
};

/// A retry schedule so long that no retry occurs during the measurement.
pub const SCHEDULE: &str = "0s,15m,15m";
/// The number of webhooks per event.
const WEBHOOKS: usize = 20;
/// The number of events whose deliveries are waiting.
const WAITING: usize = 1_250;
const EVENTS: usize = 500;
const LIMIT: Duration = Duration::from_secs(60);

/// Measures the time from publishing to arrival at full load and the time per delivery, each with and without waiting
/// deliveries.
pub async fn measure(bundle: &Bundle) -> Result<Vec<Growth>, Box<dyn Error>> {
    let growth = |what| Growth::new(what, "deliveries that wait for a retry", 1_000);
    let mut arrival = growth(format!("an event to {WEBHOOKS} webhooks at full load, from publication to arrival"));
    let mut each = growth(format!("an event to {WEBHOOKS} webhooks at full load, time of the run per delivery"));
    let [quick, failing] = [Endpoint::start(WEBHOOKS, 3 * EVENTS).await?, Endpoint::start(WEBHOOKS, WAITING).await?];
    failing.fail(u32::MAX);
    let beside = "growth-beside";
    let waiting = "growth-waiting";
    for path in 0..WEBHOOKS {
        bundle.hook(beside, &format!("{}/{path}", quick.address)).await?;
        bundle.hook(waiting, &format!("{}/{path}", failing.address)).await?;
    }
    let publisher = Publisher::new(bundle.target(beside), SIZE, &Arc::default());
    let load = Load::Full(EVENTS, LIMIT);
    // A warm-up run, so that functions start and open their connections.
    Run::of(&publisher, &quick, WEBHOOKS, load).await?;
    for events in [0, WAITING] {
        if events > 0 {
            let publisher = Publisher::new(bundle.target(waiting), SIZE, &Arc::default());
            publisher.at_full_speed(events, LIMIT).await.map_err(in_words)?;
            until_received(&failing, events * WEBHOOKS).await?;
        }
        let run = Run::of(&publisher, &quick, WEBHOOKS, load).await?;
        arrival.times.push((events * WEBHOOKS, run.arrival));
        let time = run.delivering / u32::try_from(run.deliveries())?;
        each.times.push((events * WEBHOOKS, Times::of(vec![time])));
    }
    Ok(vec![arrival, each])
}

async fn until_received(endpoint: &Endpoint, requests: usize) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    while endpoint.received() < u64::try_from(requests)? {
        if began.elapsed() > LIMIT {
            return Err(format!("{} of {requests} first attempts were made", endpoint.received()).into());
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
