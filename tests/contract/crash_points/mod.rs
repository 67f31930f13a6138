//! The crash points in docs/crashes.md: a function is killed before or after a write, a message or a request, or only
//! loses the response, while it publishes, dispatches, sweeps, keeps an order, serves a feed, cancels, erases, pauses,
//! resumes, replays, creates or calls a tool. Clients repeat unacknowledged requests. In the end, every delivery has
//! the expected status, none is stuck, and each history contains every request that the receiver got, as an
//! `interrupted` attempt if a kill prevented the record.

mod calling;
mod cancelling;
mod creating;
mod dispatching;
mod erasing;
mod feeding;
mod ordering;
mod pausing;
mod publishing;
mod replaying;
mod stage;
mod sweeping;

use std::sync::Arc;

use crate::harness::{Settings, Suite};
use contract_test::contract_test;
use stage::Stage;

#[contract_test]
async fn a_call_of_a_tool_can_be_killed_before_and_after_its_transaction(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    calling::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn a_cancellation_can_be_killed_before_and_after_its_write(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default().with("RETRY_SCHEDULE", "1h,1h")).await;
    cancelling::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn a_creation_can_be_killed_before_and_after_its_transaction(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    creating::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn a_publish_can_be_killed_at_every_point(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    publishing::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn a_replay_can_be_killed_around_each_delivery_and_between_chunks(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    replaying::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn a_dispatch_can_be_killed_at_every_point(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    dispatching::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn an_erasure_can_be_killed_at_every_write_and_completes(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    erasing::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn a_sweep_can_be_killed_at_every_point(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    sweeping::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn the_end_of_a_pause_can_be_killed_before_and_after_its_transaction(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    pausing::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn the_functions_of_a_feed_can_be_killed_around_each_write(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    feeding::play(&stage).await;
    stage.end().await;
}

#[contract_test]
async fn the_functions_of_an_ordered_webhook_can_be_killed_around_each_write(suite: Arc<Suite>) {
    let stage = Stage::set(&suite, Settings::default()).await;
    ordering::play(&stage).await;
    stage.end().await;
}
