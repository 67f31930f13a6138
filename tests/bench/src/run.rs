//! A run of publishing and delivering, with its throughput and latency.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use crate::{
    connection::in_words,
    endpoint::Endpoint,
    load::{Published, Publisher},
    times::Times,
};

/// The events per second at a load below the machine's capacity.
const CALM_RATE: u32 = 50;

/// The numbers of webhooks per event that are measured.
pub const ENDPOINTS: [usize; 3] = [1, 2, 20];
/// The size of a publish request, in bytes.
pub const SIZE: usize = 500;
/// The load for a measured run at full speed, limited by time and by the number of events.
pub const FULL: Load = Load::Full(20_000, Duration::from_secs(10));
/// The load for a measured run at the calm rate.
pub const CALM: Load = Load::Calm(500);
/// The load for a run that precedes the measured ones.
pub const WARM_UP: Load = Load::Full(200, Duration::from_secs(10));
/// The total number of events in a full and a calm load.
pub const MOST_EVENTS: usize = 20_500;

/// How events are published.
#[derive(Clone, Copy)]
pub enum Load {
    /// All clients publish concurrently: this many events, or as many as they can begin within this time.
    Full(usize, Duration),
    /// Clients publish this many events at the calm rate.
    Calm(usize),
}

/// The figures of one run.
pub struct Run {
    /// How many of the endpoint's paths received every event.
    pub endpoints: usize,
    pub published: usize,
    /// The time from the first publish request to the last acknowledgement.
    pub publishing: Duration,
    /// The time from the first publish request to the last arrival.
    pub delivering: Duration,
    /// The times from the first publish request until half, and then 95 %, of all deliveries had arrived; a burst with a
    /// long tail ends much later.
    pub mostly: [Duration; 2],
    /// The number of requests received more than once.
    pub duplicates: u64,
    /// The time from the publish request to the acknowledgement.
    pub acknowledgement: Times,
    /// The time from the publish request to the arrival.
    pub arrival: Times,
    /// The time from the acknowledgement to the arrival; zero if the event arrived first.
    pub after_acknowledgement: Times,
}

/// An event that arrived.
#[derive(Clone, Copy)]
pub struct Arrival {
    pub event: Published,
    pub at: Instant,
}

impl Load {
    /// Publishes the events of this load.
    pub async fn publish(self, publisher: &Publisher) -> Result<Vec<Published>, Box<dyn Error>> {
        let published = match self {
            Self::Full(events, limit) => publisher.at_full_speed(events, limit).await,
            Self::Calm(events) => publisher.at_rate(CALM_RATE, events).await,
        };
        Ok(published.map_err(in_words)?)
    }
}

impl Run {
    /// Publishes and waits until each event has arrived at the first `endpoints` paths of the endpoint.
    pub async fn of(
        publisher: &Publisher,
        endpoint: &Endpoint,
        endpoints: usize,
        load: Load,
    ) -> Result<Self, Box<dyn Error>> {
        let arrived = endpoint.arrived();
        let received = endpoint.received();
        let published = load.publish(publisher).await?;
        let deliveries = u64::try_from(published.len() * endpoints)?;
        endpoint.until(arrived + deliveries).await?;
        let run = Self::of_arrivals(&published, &arrivals(endpoint, endpoints, &published));
        Ok(Self { endpoints, duplicates: endpoint.received() - received - deliveries, ..run })
    }

    /// The figures for events that arrived at one endpoint, without duplicates.
    pub fn of_arrivals(published: &[Published], arrivals: &[Arrival]) -> Self {
        let now = Instant::now();
        let began = published.iter().map(|event| event.began).min().unwrap_or(now);
        let acknowledged = published.iter().map(|event| event.began + event.acknowledged).max();
        let mut after: Vec<_> = arrivals.iter().map(|arrival| arrival.at - began).collect();
        after.sort_unstable();
        let share = |hundredths: usize| after.get(after.len() * hundredths / 100).copied().unwrap_or_default();
        let since = |time: fn(&Arrival) -> Duration| Times::of(arrivals.iter().map(time).collect());
        Self {
            endpoints: 1,
            published: published.len(),
            publishing: acknowledged.unwrap_or(began) - began,
            delivering: after.last().copied().unwrap_or_default(),
            mostly: [share(50), share(95)],
            duplicates: 0,
            acknowledgement: Times::of(published.iter().map(|event| event.acknowledged).collect()),
            arrival: since(|arrival| arrival.at - arrival.event.began),
            after_acknowledgement: since(|arrival| {
                arrival.at.saturating_duration_since(arrival.event.began + arrival.event.acknowledged)
            }),
        }
    }

    /// The number of events times the number of webhooks.
    pub fn deliveries(&self) -> usize {
        self.published * self.endpoints
    }
}

/// Each event's arrivals at each path.
fn arrivals(endpoint: &Endpoint, endpoints: usize, published: &[Published]) -> Vec<Arrival> {
    let pairs = published.iter().flat_map(|event| (0..endpoints).map(move |path| (event, path)));
    pairs
        .filter_map(|(event, path)| Some(Arrival { event: *event, at: endpoint.arrival(path, event.number)? }))
        .collect()
}
