//! A burst ends promptly: without faults, every delivery succeeds soon after its event is published, the sweep has
//! nothing to announce, and a quiet neighbour is unaffected. The times are those on AWS, where each invocation has its
//! own processor.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use base::pause;
use tokio::task::JoinSet;
use webhooks::deliveries::queue::Lane;

use crate::{
    cloud::Cloud,
    draws::Draws,
    endpoints::{Mood, Slot},
    faults::Chances,
    history::{SCHEMA, paused_runtime},
    journal::Journal,
    plan::{Action, Kind, Step},
    tenants::Tenants,
    world::World,
};

#[derive(Debug, Clone, Copy)]
struct Burst {
    /// The number of publishing entities.
    entities: usize,
    /// The number of webhooks per entity.
    webhooks: usize,
    /// The number of events that each entity publishes.
    events: usize,
    /// How many clients of each entity publish concurrently.
    publishers: usize,
    /// The number of concurrent invocations per lane.
    invocations: usize,
    /// The endpoints' response time, in milliseconds.
    answers_after: u64,
    /// How long after the last publish request the endpoints keep refusing all requests, in seconds; they refuse from
    /// the beginning on. With zero, they never refuse.
    refuse_for: u64,
    /// The number of sweeps, one a minute, after the burst is published or the endpoints respond again.
    sweeps: usize,
}

/// The outcome of a burst.
struct Arrivals {
    /// The arrival times of each entity's deliveries, in order, in milliseconds since the beginning.
    of_entities: Vec<Vec<u64>>,
    /// How long the neighbour's deliveries took from publishing to arrival, in milliseconds, in ascending order.
    of_neighbour: Vec<u64>,
    /// The number of deliveries that the sweep announced.
    swept: usize,
}

/// How long the neighbour continues after the burst is published, or after the endpoints respond again.
const NEIGHBOUR_CONTINUES: Duration = Duration::from_secs(60);
/// How long a burst lasts at most, in minutes.
const MINUTES: usize = 10;

impl Burst {
    fn arrivals(self) -> Arrivals {
        base::metric::switch_off();
        paused_runtime().block_on(async {
            let world = World::new(SCHEMA.clone(), Draws::new(1), Chances::none(), Journal::brief());
            let cloud = Cloud::new(Arc::clone(&world));
            let tenants = Tenants::new(Arc::clone(&cloud), None);
            let slots =
                || (0..self.entities).flat_map(|entity| (0..self.webhooks).map(move |webhook| (entity, webhook)));
            let all_are = |mood| world.state().endpoints.moods.extend(slots().map(|slot| (slot, mood)));
            let answers = Mood::Answers(200, self.answers_after);
            all_are(if self.refuse_for > 0 { Mood::Refuses } else { answers });
            let neighbour = (self.entities, 0);
            world.state().endpoints.moods.insert(neighbour, Mood::Answers(200, 5));
            for slot in slots().chain([neighbour]) {
                let number = 1_000_000 + slot.0 * 1_000 + slot.1;
                tenants.act(Step { number, at: Duration::ZERO, action: Action::Register(slot, None) }).await;
            }
            let mut mappings = JoinSet::new();
            for lane in [Lane::Quick, Lane::Slow] {
                mappings.spawn(Arc::clone(&cloud).map_queue_with(lane, self.invocations));
            }
            let over = Arc::new(AtomicBool::default());
            let published = tokio::spawn(publish_until(Arc::clone(&over), neighbour, Arc::clone(&tenants)));
            let mut began = world.clock.millis();
            self.publish(&tenants).await;
            if self.refuse_for > 0 {
                pause(Duration::from_secs(self.refuse_for)).await;
                let swept = cloud.sweep().await.expect("no fault");
                assert_eq!(swept, 1, "{self:?}: the event about the failing webhook");
                world.state().endpoints.seen.retain(|request| request.slot == neighbour);
                all_are(answers);
                began = world.clock.millis();
            }
            let ends = async {
                pause(NEIGHBOUR_CONTINUES).await;
                over.store(true, Relaxed);
                published.await.expect("no panic")
            };
            let sweeps = async {
                let mut swept = 0;
                for minute in 0..MINUTES {
                    pause(Duration::from_secs(60)).await;
                    if minute < self.sweeps {
                        swept += cloud.sweep().await.expect("no fault");
                    }
                }
                swept
            };
            let (published, swept) = tokio::join!(ends, sweeps);
            let arrivals = |entity: usize| -> Vec<u64> {
                let state = world.state();
                let seen = state.endpoints.seen.iter().filter(|request| request.slot.0 == entity);
                seen.map(|request| request.arrived).collect()
            };
            let of_entities = (0..self.entities).map(arrivals);
            let of_entities = of_entities.map(|arrived| arrived.into_iter().map(|at| at - began).collect()).collect();
            let arrived = arrivals(neighbour.0);
            assert_eq!(arrived.len(), published.len(), "{self:?}: all of the neighbour's deliveries arrive");
            let mut of_neighbour: Vec<_> = arrived.iter().zip(published).map(|(at, began)| at - began).collect();
            of_neighbour.sort_unstable();
            Arrivals { of_entities, of_neighbour, swept }
        })
    }

    async fn publish(self, tenants: &Arc<Tenants>) {
        let mut publishers = JoinSet::new();
        for publisher in 0..self.entities * self.publishers {
            let tenants = Arc::clone(tenants);
            publishers.spawn(async move {
                let entity = publisher % self.entities;
                let events = self.events / self.publishers;
                for number in 0..events {
                    let action = Action::Publish(entity, Kind::BookingCreated, None);
                    tenants.act(Step { number: publisher * events + number + 1, at: Duration::ZERO, action }).await;
                }
            });
        }
        while publishers.join_next().await.is_some() {}
    }
}

/// Publishes one of an entity's events every quarter of a second. Returns when each request started, in milliseconds.
async fn publish_until(over: Arc<AtomicBool>, (entity, _): Slot, tenants: Arc<Tenants>) -> Vec<u64> {
    let mut published = Vec::new();
    while !over.load(Relaxed) {
        published.push(tenants.cloud.world.clock.millis());
        let number = 2_000_000 + published.len();
        let action = Action::Publish(entity, Kind::BookingCreated, None);
        tenants.act(Step { number, at: Duration::ZERO, action }).await;
        pause(Duration::from_millis(250)).await;
    }
    published
}

/// One entity's burst with fast endpoints, once the first invocations have started.
const QUICK: Burst = Burst {
    entities: 1,
    webhooks: 20,
    events: 504,
    publishers: 8,
    invocations: 6,
    answers_after: 5,
    refuse_for: 0,
    sweeps: MINUTES,
};
/// The longest time that 99 % of the neighbour's deliveries may take, in milliseconds.
const NEIGHBOURS_P99: u64 = 250;

/// Checks that all deliveries succeed, that each entity's last one comes within a multiple (in tenths) of the time
/// needed at the rate of the first 95 %, that nothing is left for the sweep, and that 99 % of the neighbour's
/// deliveries arrive within `neighbours` milliseconds. Returns the first entity's rate in deliveries per second.
fn ends_within(tenths: u64, neighbours: u64, burst: Burst) -> u64 {
    let Arrivals { of_entities, of_neighbour, swept } = burst.arrivals();
    for arrivals in &of_entities {
        assert_eq!(arrivals.len(), burst.webhooks * burst.events, "{burst:?}: all arrive");
        let (most, last) = (arrivals[arrivals.len() * 95 / 100 - 1], arrivals[arrivals.len() - 1]);
        let of_the_rate = most * 100 / 95;
        assert!(last * 10 <= of_the_rate * tenths, "{burst:?}: 95 % after {most} ms, all after {last} ms");
    }
    assert_eq!(swept, 0, "{burst:?}: nothing is left to the sweep");
    let p99 = of_neighbour[of_neighbour.len() * 99 / 100];
    assert!(p99 <= neighbours, "{burst:?}: a delivery of the neighbour takes {p99} ms");
    let arrivals = &of_entities[0];
    let most = arrivals.len() * 95 / 100;
    most as u64 * 1_000 / arrivals[most - 1].max(1)
}

#[test]
fn a_burst_ends_at_the_pace_at_which_it_began() {
    let of_twenty = ends_within(12, NEIGHBOURS_P99, QUICK);
    ends_within(12, NEIGHBOURS_P99, Burst { webhooks: 1, events: 2_000, ..QUICK });
    let of_many = ends_within(12, NEIGHBOURS_P99, Burst { webhooks: 190, events: 64, ..QUICK });
    assert!(of_many * 2 >= of_twenty, "{of_many} and {of_twenty} deliveries per second");
}

#[test]
fn a_burst_has_no_tail_with_many_publishers_or_invocations_or_with_slower_endpoints() {
    let burst = Burst { events: 96, ..QUICK };
    ends_within(12, NEIGHBOURS_P99, Burst { publishers: 32, ..burst });
    ends_within(12, NEIGHBOURS_P99, Burst { invocations: 50, ..burst });
    ends_within(12, NEIGHBOURS_P99, Burst { answers_after: 200, ..burst });
}

#[test]
fn bursts_of_several_entities_end_together() {
    let burst = Burst { entities: 10, events: 100, publishers: 1, ..QUICK };
    let arrivals = burst.arrivals().of_entities;
    assert!(arrivals.iter().all(|of_entity| of_entity.len() == burst.webhooks * burst.events), "all arrive");
    let ends: Vec<_> = arrivals.iter().map(|of_entity| of_entity[of_entity.len() - 1]).collect();
    let (first, last) = (ends.iter().min().expect("entities"), ends.iter().max().expect("entities"));
    assert!(last * 10 <= first * 13, "{ends:?}");
}

/// Most of these deliveries find no permit, since an invocation has 40 for each entity; they wait on the slow lane's
/// queue, where delays are whole seconds. A neighbour waits behind the first deliveries until their webhooks are known
/// to be slow.
#[test]
fn a_burst_to_slow_endpoints_is_not_left_to_the_sweep() {
    ends_within(15, 1_000, Burst { answers_after: 2_000, events: 48, ..QUICK });
}

/// Deliveries waiting for the breaker become due within seconds. Regression test: many found no permit and were left to
/// the sweep, which postponed them by minutes, since the queue was crowded.
#[test]
fn the_deliveries_of_an_outage_are_not_left_to_the_sweep() {
    let outage = Burst { webhooks: 1, events: 4_000, answers_after: 50, refuse_for: 90, ..QUICK };
    let Arrivals { of_entities, of_neighbour, swept } = outage.arrivals();
    let arrivals = &of_entities[0];
    let last = arrivals.last().expect("all arrive");
    assert_eq!((arrivals.len(), swept), (outage.events, 0), "all arrive without a sweep");
    // The first delivery is the probe, at the end of the pause. The others follow at random within a tenth of their
    // pause.
    assert!(last - arrivals[0] <= 30_000, "the first after {} ms, all after {last} ms", arrivals[0]);
    let p99 = of_neighbour[of_neighbour.len() * 99 / 100];
    assert!(p99 <= NEIGHBOURS_P99, "a delivery of the neighbour takes {p99} ms");
}

/// A long outage of an endpoint that then responds slowly. Regression test: a dispatch run that had sent 600 deliveries
/// back to the queue dropped all other messages without a permit. The sweep assumed that the deliveries had no message,
/// and announced each once more.
#[test]
fn the_deliveries_of_an_outage_at_a_slow_endpoint_are_not_left_to_the_sweep() {
    let outage = Burst { webhooks: 1, events: 2_000, invocations: 2, answers_after: 1_000, refuse_for: 200, ..QUICK };
    for sweeps in [0, MINUTES] {
        let Arrivals { of_entities, swept, .. } = Burst { sweeps, ..outage }.arrivals();
        let arrivals = &of_entities[0];
        let last = arrivals.last().expect("all arrive");
        assert_eq!(arrivals.len(), outage.events, "all arrive");
        // Each of two invocations has 20 permits for a webhook.
        assert!(last - arrivals[0] <= 75_000, "the first after {} ms, all after {last} ms", arrivals[0]);
        // The last deliveries wait for their delayed messages, and the queue is not crowded any more.
        assert!(swept < 250, "{swept} deliveries were announced again");
    }
}
