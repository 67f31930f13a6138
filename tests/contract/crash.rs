//! Crashes: every acknowledged event is delivered, regardless of which processes die.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use base::{SystemRandom, random};
use contract_test::contract_test;
use futures::{StreamExt, join, stream};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    harness::{ApiResponse, Behaviour, Entity, LONG, Receiver, Settings, Suite, account, until},
    queue_chaos::for_bookings,
};

const CLIENTS: usize = 24;

#[contract_test]
async fn every_acknowledged_event_survives_power_cuts(suite: Arc<Suite>) {
    power_cuts(&suite, 3, 100).await;
}

/// Publishes an event with its own idempotency key; `None` if there is no acknowledgement.
async fn publish(entity: &Entity, number: usize) -> Option<ApiResponse> {
    let body = json!({ "type": "booking.created", "data": { "number": number } });
    let call = entity.post("/webhook/event").header("idempotency-key", format!("event-{number}")).json(&body);
    call.attempt().await.ok().filter(|answer| answer.status == 202)
}

fn deliveries(answer: &ApiResponse) -> Vec<String> {
    let answer = answer.json();
    let deliveries = answer["deliveries"].as_array().expect("openapi.yaml says so");
    deliveries
        .iter()
        .map(|delivery| delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned())
        .collect()
}

/// In each round, clients publish to two webhooks. At a random moment, all processes are killed and restarted, and the
/// clients repeat unacknowledged publish requests. The next round begins immediately, so that it also has to deal with
/// the previous crash's leftovers. At the end, every acknowledged event has been delivered and every request is
/// accounted for.
pub async fn power_cuts(suite: &Suite, rounds: usize, publishes: usize) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "crash".to_owned()).await;
    let receiver = Receiver::start().await;
    for path in ["/one", "/two"] {
        for_bookings(&entity, &receiver.on(path, [Behaviour::status(200)])).await;
    }
    let mut all = Vec::new();
    let mut kills = Vec::new();
    for round in 0..rounds {
        let acknowledged = AtomicUsize::new(0);
        let publishing = stream::iter(round * publishes..(round + 1) * publishes).map(|number| {
            let entity = &entity;
            let acknowledged = &acknowledged;
            async move {
                let answer = until("a publication is acknowledged", LONG, async || publish(entity, number).await);
                let answer = deliveries(&answer.await);
                acknowledged.fetch_add(1, Ordering::Relaxed);
                (number, answer)
            }
        });
        let killing = async {
            let moment = usize::from(u16::from_le_bytes(random::bytes(&SystemRandom))) % publishes;
            while acknowledged.load(Ordering::Relaxed) < moment {
                sleep(Duration::from_millis(1)).await;
            }
            sleep(Duration::from_secs_f64(random::unit(&SystemRandom) / 20.0)).await;
            let began = Instant::now();
            bundle.cut_power().await;
            kills.push(began..Instant::now());
            let before = acknowledged.load(Ordering::Relaxed);
            bundle.start_again(Settings::default()).await;
            println!("round {}: killed after {before} of {publishes} publications", round + 1);
        };
        let (published, ()) = join!(publishing.buffer_unordered(CLIENTS).collect::<Vec<_>>(), killing);
        all.extend(published);
    }
    let expected: Vec<String> = all.iter().flat_map(|(_, deliveries)| deliveries.clone()).collect();
    assert_eq!(expected.len(), 2 * rounds * publishes);
    let account = account(&entity, &receiver, &expected, &kills).await;
    // A client that repeats its request much later still gets the original response.
    for (number, first) in all.iter().step_by(10) {
        let again = until("a repetition is answered", LONG, async || publish(&entity, *number).await).await;
        assert_eq!(deliveries(&again), *first, "the answer to event {number} changed");
    }
    println!("{rounds} power cuts, nothing lost: {account:?}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn the_service_recovers_when_one_of_its_processes_dies(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "recovery".to_owned()).await;
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // The first event starts the dispatcher process.
    let first = until("an event is accepted", LONG, async || publish(&entity, 0).await).await;
    for id in deliveries(&first) {
        entity.until_status(&id, &["delivered"]).await;
    }
    let mut number = 1;
    for program in ["dispatch-deliveries", "publish-event", "sweep-deliveries"] {
        let process = bundle.process(program).await;
        // One event is in progress when the process dies, and another is published afterwards.
        let under_way = until("an event is accepted", LONG, async || publish(&entity, number).await).await;
        process.kill();
        let afterwards = until(&format!("events are accepted again after the end of {program}"), LONG, async || {
            publish(&entity, number + 1).await
        })
        .await;
        for id in [deliveries(&under_way), deliveries(&afterwards)].concat() {
            let delivery: Value = entity.until_status(&id, &["delivered", "failed"]).await;
            assert_eq!(delivery["status"], "delivered", "after the end of {program}: {delivery:#}");
        }
        number += 2;
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_request_that_a_kill_cut_off_is_an_attempt_in_the_history(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "interrupted".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::hang(), Behaviour::status(200)])).await;
    let id = entity.publish(json!({})).await;
    receiver.until("/", 1).await;
    bundle.process("dispatch-deliveries").await.kill();
    let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
    assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("delivered"), &json!(2)), "{delivery:#}");
    let (cut_off, answered) = (&delivery["attempts"][0], &delivery["attempts"][1]);
    assert!(cut_off["error"].as_str().is_some_and(|error| error.starts_with("interrupted: ")), "{cut_off:#}");
    assert_eq!((&cut_off["httpStatus"], &cut_off["durationMs"]), (&Value::Null, &json!(0)), "{cut_off:#}");
    assert!(cut_off.get("url").is_none() && cut_off.get("requestHeaders").is_none(), "{cut_off:#}");
    assert_eq!(answered["httpStatus"], 200, "{answered:#}");
    assert_eq!(receiver.received("/").len(), 2);
    // The interrupted request counts as an attempt, but says nothing about the endpoint.
    until("both attempts are counted", LONG, async || {
        let stats = entity.get(&format!("/webhook/{}/stats", hook.id)).expect(200).await.json();
        (stats["last24Hours"]["attempts"] == 2).then_some(())
    })
    .await;
    let listed = entity.listed(&hook).await;
    assert!(listed["health"] == "healthy" && listed.get("failuresInRow").is_none(), "{listed:#}");
    assert!(bundle.stop().await.success());
}
