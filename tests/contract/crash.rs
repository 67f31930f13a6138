//! Crashes: what was acknowledged is delivered, whatever dies in between.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use crate::harness::{Answer, Api, Behaviour, Entity, LONG, Receiver, Settings, Suite, tests, until};

tests![every_acknowledged_event_survives_a_power_cut, the_service_recovers_when_one_of_its_processes_dies];

const EVENTS: usize = 50;

/// Publishes under a key that is the event's own; nothing, if no answer came or the answer was not yet.
async fn publish(entity: &Entity, number: usize) -> Option<Answer> {
    let body = json!({ "type": "booking.created", "data": { "number": number } });
    let call = entity.post("/webhook/event").header("idempotency-key", format!("event-{number}")).json(&body);
    call.attempt().await.ok().filter(|answer| answer.status == 202)
}

fn deliveries(answer: &Answer) -> Vec<String> {
    let answer = answer.json();
    let deliveries = answer["deliveries"].as_array().expect("openapi.yaml says so");
    deliveries
        .iter()
        .map(|delivery| delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned())
        .collect()
}

async fn every_acknowledged_event_survives_a_power_cut(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let (entity, receiver) = (Entity::new(&api, "crash".to_owned()).await, Receiver::start().await);
    for path in ["/one", "/two"] {
        entity.hook(&receiver.on(path, [Behaviour::status(200)])).await;
    }
    // The power is cut when half of the events are acknowledged, while the other half is on its way.
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let publications: Vec<_> = (0..EVENTS)
        .map(|number| {
            let (entity, acknowledged) = (entity.clone(), Arc::clone(&acknowledged));
            tokio::spawn(async move {
                let answer = publish(&entity, number).await;
                if answer.is_some() {
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
                answer
            })
        })
        .collect();
    until("half of the events are acknowledged", LONG, async || {
        (acknowledged.load(Ordering::Relaxed) >= EVENTS / 2).then_some(())
    })
    .await;
    bundle.cut_power().await;
    let mut answers = Vec::new();
    for publication in publications {
        answers.push(publication.await.expect("it did not panic"));
    }
    bundle.start_again(Settings::default()).await;
    let entity = Entity::new(&Api::of(&bundle, &suite.contract), "crash".to_owned()).await;

    let mut lost = Vec::new();
    for (number, answer) in answers.iter().enumerate() {
        // A client that got no answer repeats its request; one that got one would get the same.
        let again = publish(&entity, number).await.expect("the service is back");
        assert!(
            answer.as_ref().is_none_or(|first| first.json() == again.json()),
            "the answer to event {number} changed"
        );
        for id in deliveries(&again) {
            let delivery = entity.until_status(&id, &["delivered", "failed"]).await;
            let arrived = receiver.everything().iter().any(|received| received.header("service-delivery-id") == id);
            if delivery["status"] != "delivered" || !arrived {
                lost.push(delivery);
            }
        }
    }
    assert!(lost.is_empty(), "lost: {lost:#?}");
    let received = receiver.everything();
    let distinct: BTreeSet<&str> = received.iter().map(|received| received.header("service-delivery-id")).collect();
    assert_eq!(distinct.len(), 2 * EVENTS);
    let before = answers.iter().flatten().count();
    println!(
        "power cut after {before} of {EVENTS} events: 0 lost, {} delivered twice",
        received.len() - distinct.len()
    );
    assert!(bundle.stop().await.success());
}

async fn the_service_recovers_when_one_of_its_processes_dies(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let (entity, receiver) = (Entity::new(&api, "recovery".to_owned()).await, Receiver::start().await);
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let mut number = 0;
    for program in ["ministack", "dispatch-deliveries", "publish-event", "sweep-deliveries"] {
        let process = bundle.process(program).await;
        // One event is on its way when the process dies, and one comes afterwards.
        let under_way = publish(&entity, number).await.expect("the service answers");
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
