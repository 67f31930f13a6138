//! How request times depend on the amount of data: fresh events, the entity's deliveries, an event's webhooks,
//! applications, revocations. A search for rare items must not slow down as the number of other items grows.

use std::{
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    bundle::{Bundle, BundleSettings},
    connection::in_words,
    counting_proxy::CountingProxy,
    dear_filters,
    endpoint::Endpoint,
    filling::{AGE, Filling},
    fresh_events,
    function::Subject,
    load::Publisher,
    report,
    times::Times,
    waiting,
};

const DELIVERIES: [usize; 2] = [10_000, 200_000];
const WEBHOOKS: [usize; 3] = [1, 50, 200];
const APPLICATIONS: [usize; 2] = [0, 5_000];
const REVOCATIONS: [usize; 3] = [0, 5_000, 50_000];
/// The number of requests of each kind.
pub const REQUESTS: usize = 30;
/// The number of recoveries, fewer than the service accepts from one managing entity per minute.
const RECOVERIES: usize = 15;
const WALKS: usize = 3;
const STARTS: usize = 9;
const THOUSAND: usize = 1_000;
const EVENTS: usize = 10;
/// The size of an event, in bytes.
const SIZE: usize = 500;
const LIMIT: Duration = Duration::from_secs(30);

/// The functions that run as deployed builds.
const RELEASE: [&str; 9] = [
    "list-deliveries",
    "show-event",
    "recover-deliveries",
    "create-webhook",
    "remove-webhook",
    "publish-event",
    "dispatch-deliveries",
    "token",
    "list-event-types",
];

/// The times of one kind of request, by the amount of one kind of data.
pub struct Growth {
    pub what: String,
    /// The kind of data that grows.
    pub of: &'static str,
    /// The number of items that the slope refers to.
    pub step: usize,
    pub times: Vec<(usize, Times)>,
    /// Calls to the table and read units, if they are counted.
    pub reads: Vec<(u64, f64)>,
}

impl Growth {
    /// A kind of request with no measurements yet.
    pub fn new(what: impl Into<String>, of: &'static str, step: usize) -> Self {
        Self { what: what.into(), of, step, times: Vec::new(), reads: Vec::new() }
    }

    /// How much the median grows with each step, in seconds.
    pub fn slope(&self) -> f64 {
        let (few, short) = self.times[0];
        let (many, long) = self.times[self.times.len() - 1];
        let longer = long.median.as_secs_f64() - short.median.as_secs_f64();
        longer * self.step as f64 / (many - few) as f64
    }
}

/// Runs all measurements and prints them.
pub async fn measure() -> Result<(), Box<dyn Error>> {
    report::quiet_lists(&fresh_events::measure().await?);
    let variables = &[("RETRY_SCHEDULE", waiting::SCHEDULE)];
    let bundle = Bundle::start(BundleSettings { release: &RELEASE, variables, ..BundleSettings::default() }).await?;
    let mut filling = Filling::of(&bundle).await.map_err(in_words)?;
    let mut all = of_webhooks(&bundle).await?;
    all.extend(dear_filters::measure(&bundle).await?);
    all.extend(waiting::measure(&bundle).await?);
    all.extend(of_deliveries(&bundle, &mut filling).await?);
    all.extend(of_applications(&bundle, &mut filling).await?);
    all.extend(of_revocations(&bundle, &mut filling).await?);
    report::growth(&all);
    Ok(())
}

/// The times that repeated requests take.
pub async fn timed(
    requests: usize,
    mut request: impl AsyncFnMut() -> Result<(), Box<dyn Error>>,
) -> Result<Times, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..requests {
        let began = Instant::now();
        request().await?;
        times.push(began.elapsed());
    }
    Ok(Times::of(times))
}

/// Measures publishing one event to a growing number of webhooks.
async fn of_webhooks(bundle: &Bundle) -> Result<Vec<Growth>, Box<dyn Error>> {
    let endpoint = Endpoint::start(WEBHOOKS[WEBHOOKS.len() - 1], WEBHOOKS.len() * (EVENTS + 1)).await?;
    let growth = |what| Growth::new(what, "webhooks of the event", 1);
    let mut publishing = growth("an event acknowledged");
    let mut delivering = growth("the event arrived everywhere");
    let next = Arc::default();
    for webhooks in WEBHOOKS {
        let entity = format!("growth-webhooks-{webhooks}");
        for path in 0..webhooks {
            bundle.hook(&entity, &format!("{}/{path}", endpoint.address)).await?;
        }
        let publisher = Publisher::new(bundle.target(&entity), SIZE, &next);
        let mut acknowledged = Vec::new();
        let mut arrived = Vec::new();
        for _ in 0..=EVENTS {
            let before = endpoint.arrived();
            let published = publisher.at_full_speed(1, LIMIT).await.map_err(in_words)?;
            endpoint.until(before + u64::try_from(webhooks)?).await?;
            let event = published.first().ok_or("no event was published")?;
            let arrivals = (0..webhooks).filter_map(|path| endpoint.arrival(path, event.number));
            acknowledged.push(event.acknowledged);
            arrived.push(arrivals.max().ok_or("an event has not arrived")? - event.began);
        }
        // The first event only warmed up the functions.
        publishing.times.push((webhooks, Times::of(acknowledged.split_off(1))));
        delivering.times.push((webhooks, Times::of(arrived.split_off(1))));
    }
    Ok(vec![publishing, delivering])
}

/// Measures each of the list's filters, and other searches for rare items.
async fn of_deliveries(bundle: &Bundle, filling: &mut Filling<'_>) -> Result<Vec<Growth>, Box<dyn Error>> {
    let mut all: Vec<Growth> = Vec::new();
    let mut add = |what: &str, deliveries: usize, times: Times| {
        if !all.iter().any(|one| one.what == what) {
            all.push(Growth::new(what, "deliveries of the entity", THOUSAND));
        }
        all.iter_mut().filter(|one| one.what == what).for_each(|one| one.times.push((deliveries, times)));
    };
    for deliveries in DELIVERIES {
        let entity = &format!("growth-{deliveries}");
        let hook = bundle.hook(entity, "http://127.0.0.1:1/").await?;
        filling.deliveries(entity, &hook, deliveries, AGE).await.map_err(in_words)?;
        let event = json!({ "type": "booking.created", "data": {} });
        let event = bundle.post(entity, "webhook/event", &event).await?;
        let event = event["eventIdentifier"].as_str().ok_or("an event has an identifier")?;
        for (what, filters) in [
            ("all", String::new()),
            ("`status=delivered`: all", "status=delivered".to_owned()),
            ("`status=failed`: none", "status=failed".to_owned()),
            ("`status=pending,retrying`: one", "status=pending,retrying".to_owned()),
            ("`status=cancelled`: none", "status=cancelled".to_owned()),
            ("`type`: all", "type=booking.created".to_owned()),
            ("`type`: none", "type=booking.cancelled".to_owned()),
            ("`webhookIdentifier`: all", format!("webhookIdentifier={hook}")),
            ("`eventIdentifier`: one", format!("eventIdentifier={event}")),
            ("`subject`: one", "subject=B-7".to_owned()),
            ("`lastHttpStatus`: none", "lastHttpStatus=503".to_owned()),
            ("`createdUntil`: none", "createdUntil=2020-01-01T00:00:00Z".to_owned()),
            ("`createdFrom`: all", "createdFrom=2020-01-01T00:00:00Z".to_owned()),
            ("`webhookIdentifier` and `status=failed`: none", format!("webhookIdentifier={hook}&status=failed")),
        ] {
            let path = format!("webhook/delivery/list?{filters}");
            let times = timed(REQUESTS, async || bundle.get(entity, &path).await.map(drop)).await?;
            add(&format!("a page of deliveries, {what}"), deliveries, times);
        }
        let rare = "webhook/delivery/list?type=booking.cancelled&limit=100";
        let walks = timed(WALKS, async || walk(bundle, entity, rare).await);
        add("all pages of deliveries, `type`: none", deliveries, walks.await?);
        let path = format!("webhook/event/{event}");
        let times = timed(REQUESTS, async || bundle.get(entity, &path).await.map(drop)).await?;
        add("an event with its deliveries", deliveries, times);
        let range = json!({ "createdFrom": "2020-01-01T00:00:00Z" });
        let path = format!("webhook/{hook}/recover");
        let times = timed(RECOVERIES, async || bundle.post(entity, &path, &range).await.map(drop)).await?;
        add("a recovery of nothing", deliveries, times);
        let renewed = timed(REQUESTS, async || {
            let made = bundle.hook(entity, "http://127.0.0.1:1/").await?;
            bundle.delete(entity, &format!("webhook/{made}")).await.map(drop)
        });
        add("a webhook made and removed", deliveries, renewed.await?);
    }
    Ok(all)
}

/// Follows a list's cursors to the end.
async fn walk(bundle: &Bundle, entity: &str, list: &str) -> Result<(), Box<dyn Error>> {
    let mut page = bundle.get(entity, list).await?;
    while let Some(cursor) = page["nextCursor"].as_str() {
        page = bundle.get(entity, &format!("{list}&cursor={cursor}")).await?;
    }
    Ok(())
}

/// Measures a token request while the number of applications in the table grows.
async fn of_applications(bundle: &Bundle, filling: &mut Filling<'_>) -> Result<Vec<Growth>, Box<dyn Error>> {
    let mut growth = Growth::new("a token", "applications", THOUSAND);
    for applications in APPLICATIONS {
        filling.applications(applications).await.map_err(in_words)?;
        growth.times.push((applications, timed(REQUESTS, async || bundle.token().await.map(drop)).await?));
    }
    Ok(vec![growth])
}

/// Measures the startup and the reads of a function that verifies tokens, while the number of valid revocations grows.
async fn of_revocations(bundle: &Bundle, filling: &mut Filling<'_>) -> Result<Vec<Growth>, Box<dyn Error>> {
    let subject = Subject::list_event_types(bundle);
    let proxy = CountingProxy::start().await?;
    proxy.forward_to(bundle.var("DYNAMODB_ENDPOINT"));
    proxy.sign_as(bundle.aws_caller());
    let mut growth = Growth::new("start of `list-event-types` to its first answer", "revocations", THOUSAND);
    for revocations in REVOCATIONS {
        filling.revocations(revocations).await.map_err(in_words)?;
        let start = timed(STARTS, async || {
            let (mut api, _process) = subject.spawn(bundle, &[]).await?;
            subject.invoke(&mut api).await.map(drop)
        });
        growth.times.push((revocations, start.await?));
        let (mut api, _process) = subject.spawn(bundle, &[("AWS_ENDPOINT_URL_DYNAMODB", &proxy.address)]).await?;
        subject.invoke(&mut api).await?;
        growth.reads.push(
            proxy
                .take()
                .into_values()
                .fold((0, 0.0), |(calls, units), count| (calls + count.requests, units + count.reads)),
        );
    }
    Ok(vec![growth])
}
