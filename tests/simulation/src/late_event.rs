//! An event's write takes effect after its publisher gave up and after the sweep passed the event's time. Histories
//! rarely have such a write without a repeated request, which would also open the event's deliveries.

use std::{sync::Arc, time::Duration};

use base::pause;

use crate::{
    cloud::Cloud,
    crowded_lane::is_open,
    draws::Draws,
    faults::{Chances, Fault},
    history::{SCHEMA, paused_runtime},
    journal::Journal,
    plan::{Action, Kind, Step},
    tenants::Tenants,
    world::World,
};

/// When the publisher dies: before the SDK repeats a call.
const DEATH: Duration = Duration::from_secs(2);
/// Shorter than on the schedule, so that some sweeps come between an event's time and its write.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(10);
/// The age by which every event is written, and the sweep has looked at it for the first time.
const FIRST_LOOK: Duration = Duration::from_secs(90);
/// The second look is at most ten minutes after an event; a sweep lasts up to a minute.
const SECOND_LOOK: Duration = Duration::from_secs(12 * 60);

/// Publishes an event whose write is late, and returns the age at which a sweep opens its delivery.
fn opened_at(seed: u64) -> Option<Duration> {
    base::metric::switch_off();
    paused_runtime().block_on(async {
        let world = World::new(SCHEMA.clone(), Draws::new(seed), Chances::none(), Journal::brief());
        let cloud = Cloud::new(Arc::clone(&world));
        let tenants = Tenants::new(Arc::clone(&cloud), None);
        let step = |number, action| Step { number, at: Duration::ZERO, action };
        tenants.act(step(0, Action::Register((0, 0), None))).await;
        cloud.sweep().await;
        world.state().chances = Chances::always(Fault::EventLate);
        let publish = tenants.act(step(1, Action::Publish(0, Kind::BookingCreated, None)));
        let sweeps = async {
            // The publisher dies before it repeats the call.
            pause(DEATH).await;
            world.state().chances = Chances::always(Fault::KilledBefore);
            pause(BETWEEN_SWEEPS - DEATH).await;
            world.state().chances = Chances::none();
            let mut age = BETWEEN_SWEEPS;
            while age < SECOND_LOOK {
                cloud.sweep().await;
                if is_open(&world) {
                    return Some(age);
                }
                pause(BETWEEN_SWEEPS).await;
                age += BETWEEN_SWEEPS;
            }
            None
        };
        tokio::join!(publish, sweeps).1
    })
}

#[test]
fn an_event_that_is_written_behind_the_sweep_is_opened_by_its_second_look() {
    let opened: Vec<_> = (1..=10).map(opened_at).collect();
    assert!(opened.iter().all(Option::is_some), "never opened: {opened:?}");
    assert!(opened.iter().any(|age| *age > Some(FIRST_LOOK)), "no write was late enough: {opened:?}");
}
