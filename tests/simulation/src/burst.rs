//! A burst ends at once: without any fault, every delivery arrives soon after its publication, and the sweep has nothing to
//! announce. The times are those of AWS, where each invocation has a processor.

use std::{sync::Arc, time::Duration};

use base::pause;
use tokio::task::JoinSet;
use webhooks::deliveries::queue::Lane;

use crate::{
    cloud::Cloud,
    draws::Draws,
    endpoints::Mood,
    faults::Chances,
    history::{SCHEMA, paused_runtime},
    journal::Journal,
    plan::{Action, Kind, Step},
    tenants::Tenants,
    world::World,
};

/// The shape of a burst.
#[derive(Debug, Clone, Copy)]
struct Burst {
    /// How many entities publish.
    entities: usize,
    /// How many webhooks each entity has.
    webhooks: usize,
    /// How many events each entity publishes.
    events: usize,
    /// How many clients of each entity publish at once.
    publishers: usize,
    /// How many invocations of a lane run at once.
    invocations: usize,
    /// How long the endpoints take to answer, in milliseconds.
    answers_after: u64,
    /// For how many seconds after the last publication the endpoints refuse all requests, as they do from the beginning.
    /// Zero: they never do.
    refuse_for: u64,
}

impl Burst {
    /// Publishes the burst in a cloud without a sweep. Returns when the deliveries of each entity arrived, in milliseconds
    /// since the beginning, in order.
    fn arrivals(self) -> Vec<Vec<u64>> {
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
            for slot in slots() {
                let number = 1_000_000 + slot.0 * 1_000 + slot.1;
                tenants.act(Step { number, at: Duration::ZERO, action: Action::Register(slot, None) }).await;
            }
            let mut mappings = JoinSet::new();
            for lane in [Lane::Quick, Lane::Slow] {
                mappings.spawn(Arc::clone(&cloud).map_queue_with(lane, self.invocations));
            }
            let mut began = world.clock.millis();
            let mut publishers = JoinSet::new();
            for publisher in 0..self.entities * self.publishers {
                let tenants = Arc::clone(&tenants);
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
            if self.refuse_for > 0 {
                pause(Duration::from_secs(self.refuse_for)).await;
                world.state().endpoints.seen.clear();
                all_are(answers);
                began = world.clock.millis();
            }
            pause(Duration::from_secs(600)).await;
            let state = world.state();
            let of_entity = |entity| {
                let seen = state.endpoints.seen.iter().filter(move |request| request.slot.0 == entity);
                seen.map(|request| request.arrived - began).collect()
            };
            (0..self.entities).map(of_entity).collect()
        })
    }
}

/// A burst of one entity with quick endpoints, as when the first invocations have started.
const QUICK: Burst =
    Burst { entities: 1, webhooks: 20, events: 96, publishers: 8, invocations: 6, answers_after: 5, refuse_for: 0 };

/// Checks that all deliveries arrive, and that the last of each entity comes within a multiple, in tenths, of the time that
/// the rate of the first 95 % needs.
fn ends_within(tenths: u64, burst: Burst) {
    for arrivals in burst.arrivals() {
        assert_eq!(arrivals.len(), burst.webhooks * burst.events, "{burst:?}: all arrive without a sweep");
        let (most, last) = (arrivals[arrivals.len() * 95 / 100 - 1], arrivals[arrivals.len() - 1]);
        let of_the_rate = most * 100 / 95;
        assert!(last * 10 <= of_the_rate * tenths, "{burst:?}: 95 % after {most} ms, all after {last} ms");
    }
}

#[test]
fn a_burst_ends_at_the_pace_at_which_it_began() {
    ends_within(12, QUICK);
    ends_within(12, Burst { publishers: 32, ..QUICK });
    ends_within(12, Burst { invocations: 50, ..QUICK });
    ends_within(12, Burst { answers_after: 200, ..QUICK });
    ends_within(12, Burst { webhooks: 1, events: 800, ..QUICK });
    ends_within(12, Burst { webhooks: 190, events: 16, ..QUICK });
}

#[test]
fn bursts_of_several_entities_end_together() {
    let ends: Vec<_> = Burst { entities: 4, events: 50, publishers: 2, ..QUICK }
        .arrivals()
        .iter()
        .map(|arrivals| *arrivals.last().expect("all arrive"))
        .collect();
    let (first, last) = (ends.iter().min().expect("entities"), ends.iter().max().expect("entities"));
    assert!(last * 10 <= first * 13, "{ends:?}");
}

/// Most of these deliveries find no permit, since an invocation has 40 for an entity: they wait on the queue of the slow
/// lane, whose delays are whole seconds.
#[test]
fn a_burst_to_slow_endpoints_is_not_left_to_the_sweep() {
    ends_within(15, Burst { answers_after: 2_000, events: 48, ..QUICK });
}

/// The deliveries that waited for the breaker become due within seconds. Many found no permit, and were left to the sweep,
/// which postponed them by minutes, since the queue was crowded.
#[test]
fn the_deliveries_of_an_outage_are_not_left_to_the_sweep() {
    let outage = Burst { webhooks: 1, events: 4_000, answers_after: 50, refuse_for: 90, ..QUICK };
    for arrivals in outage.arrivals() {
        let last = arrivals.last().expect("all arrive");
        assert_eq!(arrivals.len(), outage.events, "all arrive without a sweep");
        // The first is the probe, at the end of the pause; the others wait for their next message.
        let (first, middle) = (arrivals[0], arrivals[arrivals.len() / 2]);
        assert!(last - first <= (middle - first) * 26 / 10, "half after {middle} ms, all after {last} ms");
    }
}
