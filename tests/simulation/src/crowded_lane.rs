//! While the quick lane is crowded, the sweep opens new events' deliveries later: their messages would wait on the
//! queue, and each opening costs a write. Histories never have that many messages for long enough.

use std::{sync::Arc, time::Duration};

use base::pause;
use queue::NewMessage;

use crate::{
    aws::{QUICK, SLOW},
    cloud::Cloud,
    draws::Draws,
    faults::Chances,
    history::{SCHEMA, paused_runtime},
    journal::Journal,
    plan::{Action, Kind, Step},
    tenants::Tenants,
    world::World,
};

/// The ages of the event, in seconds, at which the test sweeps. The service opens deliveries at 20 and at 160 seconds;
/// clocks differ by one.
const SWEEPS: [u64; 4] = [10, 25, 155, 165];
/// The number of messages that makes a lane crowded.
const CROWDED_FROM: usize = 250;

/// Whether a delivery has a due time.
pub(crate) fn is_open(world: &World) -> bool {
    let state = world.state();
    let mut heads = state.table.items().filter(|((_, sort), _)| sort.starts_with("dlv_"));
    heads.any(|(_, head)| head.contains_key("dueAt"))
}

/// Publishes an event while this many messages are waiting on a lane that nothing receives from. Returns the age at
/// which the sweep opens the delivery, and whether the next sweep announces it.
fn opened_at(lane: &'static str, messages: usize) -> (u64, bool) {
    base::metric::switch_off();
    paused_runtime().block_on(async {
        let world = World::new(SCHEMA.clone(), Draws::new(1), Chances::none(), Journal::brief());
        let cloud = Cloud::new(Arc::clone(&world));
        let tenants = Tenants::new(Arc::clone(&cloud), None);
        for number in 0..messages {
            let message = NewMessage { body: format!("message {number}"), ..NewMessage::default() };
            world.queues.send(lane, message).expect("the queue exists");
        }
        let steps = [Action::Register((0, 0), None), Action::Publish(0, Kind::BookingCreated, None)];
        for (number, action) in steps.into_iter().enumerate() {
            tenants.act(Step { number, at: Duration::ZERO, action }).await;
        }
        let mut age = 0;
        for sweep in SWEEPS {
            pause(Duration::from_secs(sweep - age)).await;
            age = sweep;
            cloud.sweep().await;
            if is_open(&world) {
                // The index lags.
                pause(Duration::from_secs(1)).await;
                return (age, cloud.sweep().await == Some(1));
            }
        }
        panic!("the sweep never opened the delivery");
    })
}

#[test]
fn events_are_opened_late_while_the_quick_lane_is_crowded() {
    // The event's own message is on the quick lane.
    assert_eq!(opened_at(QUICK, CROWDED_FROM - 2), (25, true));
    assert_eq!(opened_at(QUICK, CROWDED_FROM - 1), (165, true), "its message had time enough");
}

#[test]
fn a_crowded_slow_lane_does_not_delay_the_opening_of_events() {
    assert_eq!(opened_at(SLOW, 2 * CROWDED_FROM), (25, false), "its message is probably on the queue");
}
