//! Crash points: at every point between accepting a publish and recording the last attempt, the function that is there is
//! killed at that very point. The client repeats what was not acknowledged. In the end every event is with every webhook,
//! nothing is stuck, and every request that the receiver saw is in the history, or was lost by that very crash.

mod dispatching;
mod publishing;
mod stage;
mod sweeping;

use std::sync::Arc;

use crate::harness::{Settings, Suite, tests};
use stage::Stage;

tests![
    a_publish_can_be_killed_at_every_point,
    a_dispatch_can_be_killed_at_every_point,
    a_sweep_can_be_killed_at_every_point,
];

async fn a_publish_can_be_killed_at_every_point(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    publishing::play(&stage).await;
    stage.end().await;
}

async fn a_dispatch_can_be_killed_at_every_point(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    dispatching::play(&stage).await;
    stage.end().await;
}

async fn a_sweep_can_be_killed_at_every_point(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    sweeping::play(&stage).await;
    stage.end().await;
}
