//! Publishing to ordered webhooks: a subject's deliveries follow each other in the order of publication, even if
//! requests are concurrent or repeated. Each webhook has a separate order.

use std::{sync::Arc, time::Duration};

use contract_test::contract_test;
use futures::future::join_all;

use crate::harness::{
    AwsCall, Behaviour, Entity, LONG, Receiver, Settings, Suite, Table,
    order::{
        about, delivered, deliveries, deliveries_about, event, later, ordered, ordered_feed, poisoned, resend,
        until_held_by,
    },
    until,
};

#[contract_test]
async fn a_burst_of_one_subject_arrives_in_the_order_of_publication(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [Behaviour::status(200)]), &[]).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(about(&entity, "A").await);
    }
    let all: Vec<_> = ids.iter().map(String::as_str).collect();
    assert_eq!(delivered(&entity, &receiver, "/", &all).await, ids);
}

#[contract_test]
async fn concurrent_publications_of_a_subject_never_overlap(suite: Arc<Suite>) {
    /// How long the endpoint takes to handle a request.
    const WORKS: Duration = Duration::from_millis(150);
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [Behaviour::status(200).after(WORKS)]), &[]).await;
    let publish = async |number: usize| {
        let subject = ["A", "B"][number % 2];
        // Concurrent publish requests about the same subject conflict, so a client may have to repeat one.
        let answer = until("a publication is acknowledged", LONG, async || {
            let call = entity.post("/webhook/event").header("idempotency-key", format!("key-{number}"));
            call.json(&event("booking.created", subject)).attempt().await.ok().filter(|answer| answer.status == 202)
        });
        (subject, deliveries(&answer.await).into_values().next().expect("one webhook"))
    };
    let published = join_all((0..16).map(publish)).await;
    let ids: Vec<_> = published.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(delivered(&entity, &receiver, "/", &ids).await.len(), 16, "each is sent once");
    let received = receiver.received("/");
    for subject in ["A", "B"] {
        let is_about = |id: &str| published.iter().any(|(about, other)| *about == subject && other == id);
        let of_subject: Vec<_> =
            received.iter().filter(|request| is_about(request.header("service-delivery-id"))).collect();
        assert_eq!(of_subject.len(), 8);
        for pair in of_subject.windows(2) {
            let between = pair[1].at - pair[0].at;
            assert!(between >= WORKS, "two requests about {subject} came within {between:?}");
        }
    }
}

/// A waiting publish request occupies an invocation, and all of an account's functions share invocations.
#[contract_test]
async fn publications_of_a_hot_subject_that_must_not_wait_are_refused_soon(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let (entity, other) =
        (Entity::new(&setup.api, "hot-1".to_owned()).await, Entity::new(&setup.api, "other-1".to_owned()).await);
    for entity in [&entity, &other] {
        ordered_feed(entity).await;
    }
    // Calls fail as if others kept moving the line.
    let moves_a_line = |call: &AwsCall| {
        call.operation == "TransactWriteItems" && (call.mentions("LINE#hot-1") || call.mentions("LINE#other-1"))
    };
    setup.table.refuse(usize::MAX, "TransactionConflictException", moves_a_line);
    Table::of(&setup.api.env).count_as_used("line-waits#hot-1", 10, 200).await;
    // A publish request's calls: `true` if it asks to wait, `false` if it tries to move the line.
    let calls_of = async |entity: &Entity| {
        let line = format!("LINE#{}", entity.id);
        let waits = format!("ALLOWANCE#line-waits#{}", entity.id);
        let calls = || {
            let calls = setup.table.calls_mentioning(&entity.id).into_iter();
            let moves_the_line = |call: &AwsCall| call.operation == "TransactWriteItems" && call.mentions(&line);
            let calls = calls.filter(|call| call.mentions(&waits) || moves_the_line(call));
            calls.map(|call| call.mentions(&waits)).collect::<Vec<_>>()
        };
        let before = calls().len();
        let call = entity.post("/webhook/event").json(&event("booking.created", "A"));
        call.refused(503, "service-unavailable").await;
        calls().split_off(before)
    };
    // On a machine that stalls, a request may have no time left when it has asked to wait, and a call may arrive after
    // its request has given it up. Then another request shows more.
    until("a request waits", LONG, async || {
        let calls = calls_of(&other).await;
        let asked = calls.iter().position(|asks| *asks)?;
        calls[asked..].contains(&false).then_some(())
    })
    .await;
    until("a request that must not wait is refused", LONG, async || {
        (calls_of(&entity).await.last() == Some(&true)).then_some(())
    })
    .await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn a_repeated_key_gives_its_delivery_no_second_link(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    ordered(&entity, &receiver.on("/", [later(), Behaviour::status(200)]), &[]).await;
    let first = poisoned(&entity, "A").await;
    let publish = async || {
        let call = entity.post("/webhook/event").header("idempotency-key", "second");
        let answer = call.json(&event("booking.created", "A")).expect(202).await;
        deliveries(&answer).into_values().next().expect("one webhook")
    };
    let second = publish().await;
    assert_eq!(publish().await, second);
    until_held_by(&entity, &second, &first).await;
    let third = about(&entity, "A").await;
    until_held_by(&entity, &third, &second).await;
    // An event that is published again after the next one keeps its position.
    assert_eq!(publish().await, second);
    let fourth = about(&entity, "A").await;
    until_held_by(&entity, &fourth, &third).await;
    until_held_by(&entity, &second, &first).await;
    resend(&entity, &first).await;
    let all = delivered(&entity, &receiver, "/", &[&first, &second, &third, &fourth]).await;
    assert_eq!(all[1..], [first, second, third, fourth]);
}

#[contract_test]
async fn every_ordered_webhook_of_an_event_knows_its_next_delivery(suite: Arc<Suite>) {
    // The number of webhooks is more than a transaction has room for.
    const WEBHOOKS: usize = 101;
    let entity = suite.entity().await;
    for _ in 0..WEBHOOKS {
        ordered_feed(&entity).await;
    }
    let mut round = 0;
    // Publishing gives up those beyond the transaction after two seconds. On a machine that pauses, the test tries
    // another subject.
    until("every delivery knows its next one", LONG, async || {
        round += 1;
        let subject = format!("A{round}");
        let first = deliveries_about(&entity, "booking.created", &subject).await;
        let second = deliveries_about(&entity, "booking.created", &subject).await;
        assert_eq!(first.len(), WEBHOOKS);
        for (webhook, delivery) in &first {
            let next = suite.table().item(&format!("DLV#{delivery}"), "NEXT").await?;
            assert_eq!(next["next"]["S"], second[webhook].as_str());
        }
        Some(())
    })
    .await;
}

#[contract_test]
async fn events_that_a_webhook_does_not_want_are_no_part_of_its_order(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let created = ordered(&entity, &receiver.on("/created", [later()]), &["booking.created"]).await;
    let all = ordered(&entity, &receiver.on("/all", [later()]), &[]).await;
    let first = deliveries_about(&entity, "booking.created", "A").await;
    for id in first.values() {
        entity.until_status(id, &["retrying"]).await;
    }
    let second = deliveries_about(&entity, "booking.cancelled", "A").await;
    assert_eq!(second.keys().collect::<Vec<_>>(), [&all.id]);
    let third = deliveries_about(&entity, "booking.created", "A").await;
    until_held_by(&entity, &second[&all.id], &first[&all.id]).await;
    until_held_by(&entity, &third[&all.id], &second[&all.id]).await;
    until_held_by(&entity, &third[&created.id], &first[&created.id]).await;
}
