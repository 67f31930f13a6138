//! One run of publishing and delivering: how many a second, and how soon.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use crate::{
    endpoint::Endpoint,
    load::{Published, Publisher},
    times::Times,
};

/// A load that leaves time for everything.
const CALM_RATE: u32 = 50;

/// To how many webhooks an event goes.
pub const ENDPOINTS: [usize; 3] = [1, 2, 20];
/// Bytes of a publication.
pub const SIZE: usize = 500;
/// A full load goes on for so long, and ends at so many events.
pub const FULL: Load = Load::Full(20_000, Duration::from_secs(10));
/// At the calm rate, so many.
pub const CALM: Load = Load::Calm(500);
/// What is not measured, before what is.
pub const WARM_UP: Load = Load::Full(200, Duration::from_secs(10));
/// Events of a load at full speed and of a calm one.
pub const MOST_EVENTS: usize = 20_500;

/// How to publish.
#[derive(Clone, Copy)]
pub enum Load {
    /// By all clients at once, so many, or as many as begin within the time.
    Full(usize, Duration),
    /// At the calm rate, so many.
    Calm(usize),
}

/// The figures of one run.
pub struct Run {
    /// Paths of the endpoint that every event went to.
    pub endpoints: usize,
    pub published: usize,
    /// From the first publication to the last acknowledgement.
    pub publishing: Duration,
    /// From the first publication to the last arrival.
    pub delivering: Duration,
    /// Requests that came more than once.
    pub duplicates: u64,
    /// From the publication to the acknowledgement.
    pub acknowledgement: Times,
    /// From the publication to the arrival.
    pub arrival: Times,
}

impl Run {
    /// Publishes, and waits until each event has arrived at the first so many paths of the endpoint.
    pub async fn of(
        publisher: &Publisher,
        endpoint: &Endpoint,
        endpoints: usize,
        load: Load,
    ) -> Result<Self, Box<dyn Error>> {
        let arrived = endpoint.arrived();
        let received = endpoint.received();
        let began = Instant::now();
        let published = match load {
            Load::Full(events, limit) => publisher.at_full_speed(events, limit).await,
            Load::Calm(events) => publisher.at_rate(CALM_RATE, events).await,
        };
        let published = published.map_err(|error| error.to_string())?;
        let deliveries = u64::try_from(published.len() * endpoints)?;
        endpoint.until(arrived + deliveries).await?;
        let arrivals = arrivals(endpoint, endpoints, &published);
        let acknowledged = published.iter().map(|event| event.began + event.acknowledged).max();
        let last = arrivals.iter().map(|(_, arrival)| *arrival).max();
        Ok(Self {
            endpoints,
            published: published.len(),
            publishing: acknowledged.unwrap_or(began) - began,
            delivering: last.unwrap_or(began) - began,
            duplicates: endpoint.received() - received - deliveries,
            acknowledgement: Times::of(published.iter().map(|event| event.acknowledged).collect()),
            arrival: Times::of(arrivals.iter().map(|(began, arrival)| *arrival - *began).collect()),
        })
    }

    /// Events times webhooks.
    pub fn deliveries(&self) -> usize {
        self.published * self.endpoints
    }
}

/// When each event was published, and when it arrived at each path.
fn arrivals(endpoint: &Endpoint, endpoints: usize, published: &[Published]) -> Vec<(Instant, Instant)> {
    let pairs = published.iter().flat_map(|event| (0..endpoints).map(move |path| (event, path)));
    pairs.filter_map(|(event, path)| Some((event.began, endpoint.arrival(path, event.number)?))).collect()
}
