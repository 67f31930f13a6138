//! A worker ends a delivery and dies before waking the next one in line. The next worker that receives the ended
//! delivery's message wakes the waiting one. Histories have a sweep, which would also find the waiting delivery.

use std::{sync::Arc, time::Duration};

use base::pause;
use tokio::task::JoinSet;
use webhooks::deliveries::queue::Lane;

use crate::{
    cloud::Cloud,
    draws::Draws,
    endpoints::Mood,
    faults::{Chances, Fault},
    history::{SCHEMA, paused_runtime},
    journal::Journal,
    plan::{Action, Kind, Order, Step},
    tenants::Tenants,
    world::World,
};

/// How long until the queue redelivers a dead worker's message, as in template.yaml.
const VISIBILITY: Duration = Duration::from_secs(900);

/// The number of heads that have this attribute, with this value if it is a string.
fn count(world: &World, attribute: &str, text: Option<&str>) -> usize {
    let state = world.state();
    let heads = state.table.items().filter(|((_, sort), _)| sort.starts_with("dlv_"));
    let values = heads.filter_map(|(_, head)| head.get(attribute).cloned());
    values.filter(|value| text.is_none_or(|text| value["S"].as_str() == Some(text))).count()
}

/// Waits until one head has this attribute.
async fn until_one(world: &World, attribute: &str, text: Option<&str>) {
    for _ in 0..600_000 {
        if count(world, attribute, text) == 1 {
            return;
        }
        pause(Duration::from_millis(1)).await;
    }
    panic!("no head has {attribute} {text:?}");
}

#[test]
fn a_lost_wake_up_comes_again_with_the_message_of_the_delivery_that_ended() {
    base::metric::switch_off();
    paused_runtime().block_on(async {
        let world = World::new(SCHEMA.clone(), Draws::new(1), Chances::none(), Journal::brief());
        let cloud = Cloud::new(Arc::clone(&world));
        let slot = (0, 0);
        let tenants = Tenants::new(Arc::clone(&cloud), Some(Order { webhooks: vec![slot], subjects: 1 }));
        let answers = |status| {
            world.state().endpoints.moods.insert(slot, Mood::Answers(status, 5));
        };
        answers(500);
        let mut mappings = JoinSet::new();
        for lane in [Lane::Quick, Lane::Slow] {
            mappings.spawn(Arc::clone(&cloud).map_queue_with(lane, 2));
        }
        let publish = Action::Publish(0, Kind::BookingCreated, None);
        for (number, action) in [Action::Register(slot, None), publish, publish].into_iter().enumerate() {
            tenants.act(Step { number, at: Duration::ZERO, action }).await;
        }
        until_one(&world, "heldBy", None).await;

        answers(200);
        until_one(&world, "status", Some("delivered")).await;
        world.state().chances = Chances::always(Fault::KilledBefore);
        pause(Duration::from_secs(1)).await;
        world.state().chances = Chances::none();
        assert_eq!(count(&world, "heldBy", None), 1, "the worker died before it woke the next one");

        pause(VISIBILITY + Duration::from_secs(60)).await;
        assert_eq!(count(&world, "status", Some("delivered")), 2);
    });
}
