//! One history: a plan, carried out until everything is at rest.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::Duration,
};

use base::pause;
use template::Template;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::Instant,
};
use webhooks::deliveries::queue::Lane;

use crate::{
    aws::table::Schema,
    cloud::Cloud,
    draws::Draws,
    endpoints::Mood,
    faults::{Chances, Coverage},
    geo_ip,
    journal::{Journal, Line},
    oauth,
    plan::{Plan, PlanKind},
    promises::{self, Broken},
    sandbox::Function,
    service_log,
    tenants::Tenants,
    world::World,
};

/// The time limit, from the last fault until everything is at rest. A delivery whose event lacks its body waits for a
/// day.
const REST: Duration = Duration::from_secs(60 * 60 * 60);
/// The maximum number of calls, requests and faults until everything is at rest: endlessly repeated work would fill the
/// memory before reaching the time limit. The busiest histories reach a tenth of this number.
const MOST: u64 = 200_000;

/// The outcome of a history.
#[derive(Debug)]
pub struct Outcome {
    /// The promises that the history broke.
    pub broken: Vec<Broken>,
    /// A number that is the same for identical histories.
    pub fingerprint: u64,
    /// The number of steps, calls and requests.
    pub happened: u64,
    /// Where faults occurred.
    pub coverage: Coverage,
    /// The number of answers that feed readers gave, by outcome.
    pub answers: BTreeMap<String, usize>,
    /// The kinds of requests, each with whether one was carried out.
    pub carried_out: BTreeMap<String, bool>,
    /// The number of deliveries that had to wait for their subject's previous one.
    pub held: usize,
    /// The log, if it was requested.
    pub log: Vec<Line>,
}

/// The table's schema, as declared in template.yaml.
pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    const TEMPLATE: &str = include_str!("../../../template.yaml");
    let template = Template::parse(TEMPLATE).expect("a test of the template reads it");
    let table = template.tables().first().expect("the template has a table");
    Schema::of(&table.definition, table.expiry_attribute.as_deref())
});

/// Carries out a plan on a separate runtime with a paused clock.
pub fn run(plan: &Plan, journal: Journal) -> Outcome {
    base::metric::switch_off();
    paused_runtime().block_on(carry_out(plan, journal))
}

/// A single-threaded runtime whose clock jumps to the next timer.
pub(crate) fn paused_runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without input and output needs nothing from the system")
}

async fn carry_out(plan: &Plan, journal: Journal) -> Outcome {
    let world = World::new(SCHEMA.clone(), Draws::new(plan.seed), plan.chances.clone(), journal);
    let log = world.state().journal.log().cloned();
    let _logging = log.clone().map(|log| service_log::start(log, world.clock));
    if let PlanKind::Apart { throttles } = plan.kind {
        world.state().troubled = Some(throttles);
    }
    oauth::publish_keys(&world);
    let cloud = Cloud::new(Arc::clone(&world));
    let tenants = Tenants::new(Arc::clone(&cloud), plan.order.clone());
    let mut sources = JoinSet::new();
    if plan.kind != PlanKind::GeoIp {
        sources.spawn(Arc::clone(&cloud).map_queue(Lane::Quick));
        sources.spawn(Arc::clone(&cloud).map_queue(Lane::Slow));
        sources.spawn(Arc::clone(&cloud).sweep_on_schedule());
        sources.spawn(Arc::clone(&cloud).refresh_on_schedule());
    }

    let began = Instant::now();
    let mut steps = JoinSet::new();
    for step in plan.steps.clone() {
        pause(step.at.saturating_sub(began.elapsed())).await;
        let tenants = Arc::clone(&tenants);
        steps.spawn(async move { tenants.act(step).await });
    }
    while let Some(step) = steps.join_next().await {
        step.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
    }
    quiet(&world);
    if plan.kind == PlanKind::GeoIp {
        geo_ip::finish(&cloud).await;
    }
    let rested = rest(&tenants, plan.kind).await;
    // A sandbox writes the statistics that it holds during its next invocation.
    for function in [Function::DispatchDeliveries, Function::ReadFeed, Function::AcknowledgeFeed] {
        cloud.wake_all(function).await;
    }
    drop(sources);
    let broken = promises::check(&world, &tenants.records(), rested);
    let carried_out = tenants.records().carried_out();
    let mut state = world.state();
    let held = promises::ordered::held(&state);
    let journal = std::mem::take(&mut state.journal);
    Outcome {
        broken,
        fingerprint: journal.fingerprint(),
        happened: journal.steps,
        coverage: std::mem::take(&mut state.coverage),
        answers: tenants.records().readers.outcomes(),
        carried_out,
        held,
        log: log.map(|log| log.lines()).unwrap_or_default(),
    }
}

/// Ends all faults. Most endpoints recover, and some stay as they are.
fn quiet(world: &World) {
    world.note(|| "all faults end".to_owned());
    let mut state = world.state();
    state.chances = Chances::none();
    state.troubled = state.troubled.map(|_| 0);
    state.throttled.clear();
    state.secrets_away_until = 0;
    state.providers.recover();
    let draws = world.draws;
    // Hundreds of deliveries to a silent endpoint would take days, since there is one probe every ten minutes.
    let all = state.troubled.is_some();
    for (slot, mood) in &mut state.endpoints.moods {
        if all || draws.about(&("recovers", slot)).u8(0..4) > 0 {
            *mood = Mood::Answers(200, 5);
        }
    }
}

/// Waits until nothing is due any more. Returns whether this happened in time.
async fn rest(tenants: &Arc<Tenants>, kind: PlanKind) -> bool {
    let cloud = &tenants.cloud;
    let began = Instant::now();
    if !until_nothing_is_due(tenants, began, kind).await {
        return false;
    }
    // Sandboxes that were frozen for an hour may still continue.
    pause(Duration::from_secs(2 * 60 * 60)).await;
    // They may have added deliveries to a feed.
    if kind == PlanKind::Feeds && !until_nothing_is_due(tenants, began, kind).await {
        return false;
    }
    // Connections are refreshed forever, at the beginning of each minute.
    let into_minute = cloud.world.clock.millis() % 60_000;
    pause(Duration::from_millis(60_000 + 45_000 - into_minute)).await;
    true
}

/// Waits until nothing is due any more, while readers empty the feeds. Returns whether this happened in time.
async fn until_nothing_is_due(tenants: &Arc<Tenants>, began: Instant, kind: PlanKind) -> bool {
    let cloud = &tenants.cloud;
    while let Some(due) = cloud.next_due() {
        if began.elapsed() > REST || cloud.world.state().journal.steps > MOST {
            return false;
        }
        if kind == PlanKind::Feeds {
            tenants.empty_feeds().await;
        }
        let now = cloud.world.now();
        pause(due.since(now).max(Duration::from_secs(61))).await;
    }
    true
}
