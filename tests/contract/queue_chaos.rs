//! Queue messages are only hints: even if the queue is emptied, or messages are lost, duplicated, delayed and
//! reordered, every event is delivered, and no attempt is made twice.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use base::{SystemRandom, random::unit};
use contract_test::contract_test;
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::process::Child;

use crate::harness::{
    Account, Behaviour, DueAttempt, Entity, Interposed, Receiver, Settings, Suite, account, second_sandbox,
};

/// The number of events to publish.
pub const EVENTS: usize = 150;
/// A schedule for an endpoint that fails every other request: one delivery in a million fails on every attempt.
pub const SCHEDULE: &str = "0s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s";

/// Creates a webhook that receives only the test's events, not operational events about failures.
pub async fn for_bookings(entity: &Entity, url: &str) {
    entity.hook_with(json!({ "name": "bookings", "eventUrl": url, "eventList": ["booking.created"] })).await;
}

/// Publishes to two webhooks, one of which fails every other request; returns the deliveries.
pub async fn publish(entity: &Entity, receiver: &Receiver) -> Vec<String> {
    for_bookings(entity, &receiver.on("/good", [Behaviour::status(200)])).await;
    let moods = [Behaviour::status(500), Behaviour::status(200)];
    let moody: Vec<Behaviour> = moods.iter().cycle().take(2 * EVENTS).chain([&moods[1]]).cloned().collect();
    for_bookings(entity, &receiver.on("/moody", moody)).await;
    let publications = stream::iter(0..EVENTS).map(|number| async move {
        let published = entity.publish_of_type("booking.created", json!({ "number": number })).await.json();
        let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so").clone();
        deliveries.into_iter().filter_map(|delivery| Some(delivery["deliveryIdentifier"].as_str()?.to_owned()))
    });
    publications.buffer_unordered(8).flat_map(stream::iter).collect().await
}

/// Starts a second dispatcher process; another entity's delivery starts the first.
async fn second_dispatcher(setup: &Interposed) -> Child {
    let warm = Entity::new(&setup.api, "warm".to_owned()).await;
    let receiver = Receiver::start().await;
    warm.deliver_to(&receiver.on("/", [Behaviour::status(200)])).await;
    second_sandbox(&setup.bundle, "dispatch-deliveries").await
}

/// Asserts that every delivery succeeded, and that each request is an attempt, since no process died.
pub fn complete(account: &Account) {
    assert_eq!((account.deliveries, account.interrupted), (2 * EVENTS, 0), "{account:?}");
    println!("{account:?}");
}

#[contract_test]
async fn a_queue_that_loses_doubles_delays_and_reorders_changes_nothing(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default().with("RETRY_SCHEDULE", SCHEDULE)).await;
    let Interposed { bundle, api, services, .. } = &setup;
    let entity = Entity::new(api, "chaos".to_owned()).await;
    let receiver = Receiver::start().await;
    // No attempt loses two messages: the sweep doubles its wait before each repetition, so the test would take longer.
    let lost = Mutex::new(HashSet::new());
    let is_lost_first = move |message: &str| {
        let attempts = DueAttempt::all_in(message);
        let mut lost = lost.lock().expect("nothing panics while holding it");
        let is_first = attempts.iter().all(|attempt| !lost.contains(attempt));
        lost.extend(attempts);
        is_first
    };
    services.scatter(move |message| {
        let later = || Duration::from_secs_f64(unit(&SystemRandom) * 3.0);
        match unit(&SystemRandom) {
            fate if fate < 0.1 && is_lost_first(message) => vec![],
            fate if fate < 0.5 => vec![later()],
            fate if fate < 0.8 => vec![later(), later()],
            _ => vec![Duration::ZERO; 5],
        }
    });
    let _second = second_dispatcher(&setup).await;
    let deliveries = publish(&entity, &receiver).await;
    complete(&account(&entity, &receiver, &deliveries, &[]).await);
    assert!(bundle.stop().await.success());
}

/// Regression test: two sandboxes sent the same message's event, and one of the requests was in no history, since a
/// first attempt was made without a claim.
#[contract_test]
async fn a_message_that_two_sandboxes_receive_is_sent_once(suite: Arc<Suite>) {
    const COPIES: usize = 6;
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default().with("RETRY_SCHEDULE", SCHEDULE)).await;
    let Interposed { bundle, api, services, .. } = &setup;
    let entity = Entity::new(api, "copies".to_owned()).await;
    let receiver = Receiver::start().await;
    let _second = second_dispatcher(&setup).await;
    services
        .scatter(|_| (0..COPIES).map(|copy| Duration::from_millis(100) * u32::try_from(copy).unwrap_or(0)).collect());
    for_bookings(&entity, &receiver.on("/quick", [Behaviour::status(200)])).await;
    let slow = Behaviour::status(200).after(Duration::from_millis(700));
    for_bookings(&entity, &receiver.on("/slow", [slow])).await;
    let mut deliveries = Vec::new();
    for number in 0..20 {
        let published = entity.publish_of_type("booking.created", json!({ "number": number })).await.json();
        let ids = published["deliveries"].as_array().expect("openapi.yaml says so").clone();
        deliveries.extend(ids.iter().filter_map(|delivery| Some(delivery["deliveryIdentifier"].as_str()?.to_owned())));
    }
    let account = account(&entity, &receiver, &deliveries, &[]).await;
    assert_eq!((account.deliveries, account.interrupted), (40, 0), "{account:?}");
    assert_eq!(receiver.received("/slow").len(), 20);
    assert!(bundle.stop().await.success());
}
