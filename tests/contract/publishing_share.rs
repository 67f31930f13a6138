//! Each managing entity's share of publishing: above its share, an entity is refused until the minute ends, without
//! affecting others.
//!
//! The bundle uses the wall clock, so a minute may end during a test. In each minute, an entity's share is available
//! again.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use serde_json::json;

use crate::harness::{
    ApiResponse, Application, AwsCall, Behaviour, Bus, Call, Entity, LONG, Receiver, Settings, Suite, Table,
    is_limited, now, until, window_start,
};

fn event(entity: &Entity, number: usize) -> Call {
    entity.post("/webhook/event").json(&json!({ "type": "booking.created", "data": { "number": number } }))
}

fn is_refusal(answer: &ApiResponse, limit: usize) {
    let problem = answer.json();
    assert_eq!(answer.status, 429, "{}", answer.exchange);
    assert!(problem["type"].as_str().is_some_and(|kind| kind.ends_with("/problems/too-many-events")), "{problem}");
    assert!((1..=60).contains(&is_limited(answer, "published-deliveries", limit, 60)), "{}", answer.exchange);
}

/// Repeats a call until it is refused, and returns the number of accepted calls, at most `each_minute` per minute.
async fn admitted(call: impl Fn(usize) -> Call, each_minute: usize, limit: usize) -> usize {
    let first = now() / 60;
    for number in 0.. {
        let answer = call(number).send().await;
        let minutes = usize::try_from(now() / 60 - first).expect("time goes forward") + 1;
        if answer.status == 429 {
            is_refusal(&answer, limit);
            return number;
        }
        assert!(number < each_minute * minutes, "{number} calls were not refused within {minutes} minutes");
    }
    unreachable!("it is refused before numbers end")
}

/// Writes other processes' counts for the current minute and the next ones.
async fn counted_elsewhere(table: &Table, entity: &Entity, count: usize) {
    let minute = window_start(60);
    let counts = (0..20).map(|number| {
        json!({
            "pk": { "S": format!("PUBLISHED#{}", entity.id) }, "sk": { "S": format!("{:010}", minute + 60 * number) },
            "count": { "N": count.to_string() },
        })
    });
    table.put_all(counts).await;
}

#[contract_test]
async fn an_entity_above_its_share_is_refused_and_others_are_not(suite: Arc<Suite>) {
    const LIMIT: usize = 20;
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("PUBLISH_LIMIT", LIMIT.to_string())).await;
    let busy = Entity::new(&api, "busy".to_owned()).await;
    let other = Entity::new(&api, "other".to_owned()).await;
    let receiver = Receiver::start().await;
    for entity in [&busy, &other] {
        entity.hook(&receiver.on(&format!("/{}", entity.id), [Behaviour::status(200)])).await;
    }
    let accepted = admitted(|number| event(&busy, number), LIMIT, LIMIT).await;
    assert!(accepted >= LIMIT, "refused after {accepted}");
    for number in 0..LIMIT {
        event(&other, number).expect(202).await;
    }
    for (path, count) in [("/busy", accepted), ("/other", LIMIT)] {
        let received = receiver.until(path, count).await;
        let numbers: BTreeSet<u64> =
            received.iter().filter_map(|request| request.json()["data"]["number"].as_u64()).collect();
        assert_eq!(numbers.len(), count, "accepted events of {path} were lost, or refused ones delivered");
    }
    // A process considers events accepted by other processes from its first step on, which is one event here: one is
    // accepted in each minute, and more only if the table does not respond within a second. This process alone would
    // accept its share.
    let elsewhere = Entity::new(&api, "elsewhere".to_owned()).await;
    counted_elsewhere(&Table::of(&api.env), &elsewhere, LIMIT).await;
    admitted(|number| event(&elsewhere, number), LIMIT / 2, LIMIT).await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_large_event_counts_once_for_each_4_kib(suite: Arc<Suite>) {
    const LIMIT: usize = 100;
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("PUBLISH_LIMIT", LIMIT.to_string())).await;
    let entity = Entity::new(&api, "large".to_owned()).await;
    let large = || {
        let data = json!({ "text": "x".repeat(250 * 1024) });
        entity.post("/webhook/event").json(&json!({ "type": "booking.created", "data": data }))
    };
    // The second request begins before the share is used up.
    let accepted = admitted(|_| large(), 2, LIMIT).await;
    assert!(accepted >= 2, "refused after {accepted}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn an_event_counts_once_for_each_webhook_that_it_goes_to(suite: Arc<Suite>) {
    const LIMIT: usize = 60;
    const HOOKS: usize = 10;
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("PUBLISH_LIMIT", LIMIT.to_string())).await;
    let entity = Entity::new(&api, "many".to_owned()).await;
    let receiver = Receiver::start().await;
    let address = receiver.on("/", [Behaviour::status(200)]);
    for _ in 0..HOOKS {
        entity.hook(&address).await;
    }
    let minute = now() / 60;
    let mut accepted = 0;
    let refused = loop {
        let answer = event(&entity, accepted).send().await;
        if answer.status != 202 {
            break answer;
        }
        accepted += 1;
        assert!(accepted <= 2 * LIMIT / HOOKS, "{accepted} events accepted");
    };
    is_refusal(&refused, LIMIT);
    assert!(accepted == LIMIT / HOOKS || now() / 60 > minute, "{accepted} events accepted");
    // A refused event has no deliveries, and the last accepted event has all of its deliveries.
    receiver.until("/", accepted * HOOKS).await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_refusal_comes_after_the_checks_of_the_caller_and_before_all_else(suite: Arc<Suite>) {
    const LIMIT: usize = 3;
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("PUBLISH_LIMIT", LIMIT.to_string())).await;
    let entity = Entity::new(&api, "busy".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // Repeated requests and malformed events count, too.
    let body = json!({ "type": "booking.created", "data": {} });
    let again = || entity.post("/webhook/event").header("idempotency-key", "same").json(&body);
    let malformed = || entity.post("/webhook/event").body("application/json", "{");
    assert!(admitted(|_| again(), LIMIT, LIMIT).await >= LIMIT);
    admitted(|_| malformed(), LIMIT, LIMIT).await;
    let path = entity.path("/webhook/event");
    let reading = api.token(Application::Platform, "integrations.read").await;
    api.post(&path).json(&body).refused(401, "unauthorized").await;
    api.post(&path).bearer(&reading).json(&body).refused(403, "insufficient-scope").await;
    again().header("service-version", "1.0").refused(400, "unsupported-version").await;
    entity.post("/webhook/event").body("text/plain", "{}").refused(415, "unsupported-media-type").await;
    // The platform's events and operational events do not count towards the entity's share.
    let bus = Bus::of(&api.env);
    let detail = format!(r#"{{"type":"booking.created","managingEntityIdentifier":"{}","data":{{}}}}"#, entity.id);
    for number in 0..=LIMIT {
        let answer = bus.hand_over(Bus::event(&format!("bus-{number}"), &detail)).await.expect("taken");
        assert!(answer["published"].is_object(), "{answer}");
        entity.post(&format!("/webhook/{}/test", hook.id)).expect(202).await;
    }
    assert!(bundle.stop().await.success());
}

fn counts(entity: &Entity) -> impl Fn(&AwsCall) -> bool + Send + Sync + 'static {
    let key = format!("PUBLISHED#{}\"", entity.id);
    move |call| call.operation == "UpdateItem" && call.mentions(&key)
}

#[contract_test]
async fn an_entity_that_publishes_little_costs_nothing_more(suite: Arc<Suite>) {
    const STEP: usize = 20;
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let mut round = 0;
    // A publication gives up its call after a second. If the machine pauses, the call may not have been sent by then. A
    // new minute drops the counts of the last one, and a repeated request counts twice. Each needs another round.
    until("two writes for two steps", LONG, async || {
        round += 1;
        let entity = Entity::new(&setup.api, format!("little-{round}")).await;
        let counted = || setup.table.calls_mentioning("PUBLISHED#").into_iter().filter(counts(&entity)).count();
        for number in 0..STEP - 1 {
            if event(&entity, number).expect(202).await.is_repetition {
                return None;
            }
        }
        assert_eq!(counted(), 0);
        for number in 0..STEP + 1 {
            if event(&entity, number).expect(202).await.is_repetition {
                return None;
            }
        }
        let writes = counted();
        assert!(writes <= 2, "{writes} writes for {} events", 2 * STEP);
        (writes == 2).then_some(())
    })
    .await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn publishing_continues_when_counting_fails(suite: Arc<Suite>) {
    const LIMIT: usize = 50;
    const EVENTS: usize = 5;
    let settings = Settings::default().with("PUBLISH_LIMIT", LIMIT.to_string());
    let (setup, _permit) = suite.other_bundle_interposed(settings).await;
    let refused = Entity::new(&setup.api, "refused".to_owned()).await;
    let late = Entity::new(&setup.api, "late".to_owned()).await;
    setup.table.refuse(usize::MAX, "ProvisionedThroughputExceededException", counts(&refused));
    setup.table.delay(usize::MAX, LONG, counts(&late));
    let counted = |entity: &Entity| {
        let calls = setup.table.calls_mentioning("PUBLISHED#").into_iter();
        calls.filter(counts(entity)).count()
    };
    // The number of requests until enough of them have tried to count. If the machine pauses for a second, a request
    // gives up its call before the call is sent.
    let requests = async |entity: &Entity| {
        // If the stored count were read, it would cause a refusal.
        counted_elsewhere(&Table::of(&setup.api.env), entity, LIMIT).await;
        let (mut sent, mut accepted) = (0, 0);
        until(&format!("publications of {} are counted", entity.id), LONG, async || {
            let answer = event(entity, sent).send().await;
            sent += 1;
            accepted += usize::from(answer.status == 202);
            assert!([202, 503].contains(&answer.status), "{}", answer.exchange);
            (accepted >= EVENTS && counted(entity) >= EVENTS).then_some(())
        })
        .await;
        sent
    };
    requests(&refused).await;
    let sent_late = requests(&late).await;
    // A publish request waits at most a second for the count. The table's client would repeat the call only after four
    // seconds.
    assert!(counted(&late) <= sent_late, "no publication waited for the count");
    assert!(setup.bundle.stop().await.success());
}
