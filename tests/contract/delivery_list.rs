//! The list of deliveries: its order, its filters, and how current its data is.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use contract_test::contract_test;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::{
    harness::{Behaviour, Entity, Gate, Hook, Interposed, LONG, Receiver, Suite, Table, invalid_values, until},
    pauses::paused_in,
    sweep::{sweep, swept_by_hand, until_first_sweep, until_opens},
};

/// A page of a list; the query is empty or begins with a question mark.
pub async fn page(entity: &Entity, query: &str) -> Value {
    entity.get(&format!("/webhook/delivery/list{query}")).expect(200).await.json()
}

pub fn items(page: &Value) -> Vec<Value> {
    page["items"].as_array().expect("openapi.yaml says so").clone()
}

pub fn id(delivery: &Value) -> String {
    delivery["id"].as_str().expect("openapi.yaml says so").to_owned()
}

pub fn ids(deliveries: &[Value]) -> Vec<String> {
    deliveries.iter().map(id).collect()
}

/// The complete list for these parameters (`status=failed&…`), read page by page.
pub async fn whole(entity: &Entity, parameters: &str, limit: usize) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = page(entity, &format!("?limit={limit}&{parameters}{cursor}")).await;
        let items = items(&page);
        assert!(items.len() <= limit);
        found.extend(items);
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

/// A webhook for one type of event.
pub async fn hook_for(entity: &Entity, kind: &str, url: &str) -> Hook {
    entity.hook_with(json!({ "name": "test", "eventUrl": url, "eventList": [kind] })).await
}

/// Publishes events of one type; returns their deliveries.
pub async fn publish(entity: &Entity, kind: &str, count: usize) -> Vec<String> {
    let publications = stream::iter(0..count).map(|number| async move {
        let published = entity.publish_of_type(kind, json!({ "number": number })).await.json();
        let deliveries = published["deliveries"].as_array().expect("openapi.yaml says so").clone();
        deliveries
            .iter()
            .map(|delivery| delivery["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned())
            .collect::<Vec<_>>()
    });
    publications.buffer_unordered(16).collect::<Vec<_>>().await.concat()
}

#[contract_test]
async fn deliveries_are_listed_the_newest_first_without_event_and_attempts(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    assert_eq!(page(&entity, "").await, json!({ "items": [] }));
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let mut expected = Vec::new();
    for number in 0..3 {
        let delivery = entity.publish(json!({ "number": number })).await;
        let mut shown = entity.until_status(&delivery, &["delivered"]).await;
        let members = shown.as_object_mut().expect("openapi.yaml says so");
        members.remove("attempts");
        members.remove("event");
        members.remove("eventWarnings");
        expected.insert(0, shown);
    }
    let page = page(&entity, "").await;
    assert_eq!(items(&page), expected);
    assert!(page.get("nextCursor").is_none(), "{page:#}");
    // Some deliveries belong to events from the same millisecond, others to one event with several webhooks.
    entity.hook(&receiver.on("/other", [Behaviour::status(200)])).await;
    publish(&entity, "booking.created", 20).await;
    let listed = whole(&entity, "", 100).await;
    assert_eq!(listed.len(), 43);
    let keys: Vec<_> = listed.iter().map(|item| (item["createdDate"].as_str(), item["id"].as_str())).collect();
    assert!(keys.is_sorted_by(|one, next| one > next), "{keys:?}");
}

/// Creates deliveries in every state, with three types, to six webhooks.
async fn some_of_everything(entity: &Entity, receiver: &Receiver) -> Vec<Hook> {
    let later = Behaviour::answer(429, &[("Retry-After", "600")], "");
    let mut hooks = Vec::new();
    for (path, kind, behaviour) in [
        ("/good", "booking.created", Behaviour::status(200)),
        ("/bad", "booking.created", Behaviour::status(500)),
        ("/later", "booking.cancelled", later.clone()),
        ("/removed", "booking.created", later),
        ("/good-too", "booking.cancelled", Behaviour::status(204)),
    ] {
        hooks.push(hook_for(entity, kind, &receiver.on(path, [behaviour])).await);
    }
    for kind in ["booking.created", "booking.cancelled", "booking.created"] {
        publish(entity, kind, 1).await;
    }
    let open = async |webhook: &str, statuses: &[&str]| {
        let found = whole(entity, &format!("webhookIdentifier={webhook}"), 100).await;
        found.iter().all(|delivery| statuses.iter().any(|status| delivery["status"] == *status))
    };
    for (hook, status) in hooks.iter().zip(["delivered", "failed", "retrying", "retrying", "delivered"]) {
        until(&format!("deliveries are {status}"), LONG, async || open(&hook.id, &[status]).await.then_some(())).await;
    }
    entity.remove(&hooks[3].id).expect(200).await;
    until("they are cancelled", LONG, async || open(&hooks[3].id, &["cancelled"]).await.then_some(())).await;
    // A pause keeps the delivery pending.
    let paused = hook_for(entity, "booking.expired", "http://127.0.0.1:9/").await;
    paused_in(&Table::of(&entity.api().env), entity, &paused, 6).await;
    hooks.push(paused);
    publish(entity, "booking.expired", 1).await;
    hooks
}

#[contract_test]
async fn every_filter_alone_and_with_others_finds_what_it_says(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hooks = some_of_everything(&entity, &receiver).await;
    let all = whole(&entity, "", 100).await;
    let states: BTreeSet<&str> = all.iter().filter_map(|delivery| delivery["status"].as_str()).collect();
    assert_eq!(states, BTreeSet::from(["pending", "delivered", "retrying", "failed", "cancelled"]));

    let statuses = ["", "pending", "delivered", "retrying", "failed", "cancelled"];
    let types = ["", "booking.created", "booking.cancelled", "booking.expired"];
    let webhooks: Vec<&str> =
        ["", "whk_00000000000000000000000000"].into_iter().chain(hooks.iter().map(|hook| hook.id.as_str())).collect();
    let middle = all[all.len() / 2]["createdDate"].as_str().expect("openapi.yaml says so");
    let times = [
        ("", ""),
        (middle, ""),
        ("", middle),
        (middle, middle),
        ("2020-01-01T00:00:00Z", "2099-01-01T00:00:00%2B01:00"),
    ];
    let mut combinations = 0;
    for status in statuses {
        for kind in types {
            for webhook in webhooks.iter().copied() {
                for (from, to) in times {
                    // Test each pair of values, not every combination.
                    let given = [status, kind, webhook, from].into_iter().filter(|value| !value.is_empty()).count();
                    if given > 2 && !(status == "failed" && kind == "booking.created") {
                        continue;
                    }
                    let names = ["status", "type", "webhookIdentifier", "createdFrom", "createdUntil"];
                    let parameters: Vec<String> = names
                        .iter()
                        .zip([status, kind, webhook, from, to])
                        .filter(|(_, value)| !value.is_empty())
                        .map(|(name, value)| format!("{name}={value}"))
                        .collect();
                    let passes = |delivery: &&Value| {
                        let is = |member: &str, value: &str| value.is_empty() || delivery[member] == value;
                        let created = delivery["createdDate"].as_str().expect("openapi.yaml says so");
                        is("status", status)
                            && is("type", kind)
                            && is("webhookIdentifier", webhook)
                            && (from.is_empty() || created >= from)
                            && (to.is_empty() || created < to)
                    };
                    let expected: Vec<String> = all.iter().filter(passes).map(id).collect();
                    let query = parameters.join("&");
                    assert_eq!(ids(&whole(&entity, &query, 2).await), expected, "{query}");
                    combinations += 1;
                }
            }
        }
    }
    assert!(combinations > 200, "{combinations}");
}

#[contract_test]
async fn every_bad_value_is_refused_with_its_name(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let [longest, longer] = [256, 257].map(|length| format!("subject={}", "x".repeat(length)));
    for (query, names) in [
        ("status=nope", vec!["status"]),
        ("status=", vec!["status"]),
        ("status", vec!["status"]),
        ("status=FAILED", vec!["status"]),
        ("status=failed,", vec!["status"]),
        ("status=failed,nope", vec!["status"]),
        ("status=failed&status=nope", vec!["status"]),
        ("status%5B%5D=failed", vec!["status[]"]),
        ("type=nope", vec!["type"]),
        ("type=booking", vec!["type"]),
        ("type=booking.created&type=booking.created", vec!["type"]),
        ("webhookIdentifier=nope", vec!["webhookIdentifier"]),
        ("webhookIdentifier=dlv_00000000000000000000000000", vec!["webhookIdentifier"]),
        ("webhookIdentifier=WHK_00000000000000000000000000", vec!["webhookIdentifier"]),
        ("subject=", vec!["subject"]),
        (longer.as_str(), vec!["subject"]),
        ("subject=a%07b", vec!["subject"]),
        ("subject=%7F", vec!["subject"]),
        ("subject=B-1001&subject=B-1002", vec!["subject"]),
        ("lastHttpStatus=", vec!["lastHttpStatus"]),
        ("lastHttpStatus=99", vec!["lastHttpStatus"]),
        ("lastHttpStatus=1000", vec!["lastHttpStatus"]),
        ("lastHttpStatus=0503", vec!["lastHttpStatus"]),
        ("lastHttpStatus=503,500", vec!["lastHttpStatus"]),
        ("lastErrorCode=", vec!["lastErrorCode"]),
        ("lastErrorCode=Timeout", vec!["lastErrorCode"]),
        ("lastErrorCode=timeout:", vec!["lastErrorCode"]),
        ("createdFrom=now", vec!["createdFrom"]),
        ("createdFrom=2026-11-20", vec!["createdFrom"]),
        ("createdFrom=2026-11-20T09:45:00", vec!["createdFrom"]),
        ("createdFrom=2026-13-20T09:45:00Z", vec!["createdFrom"]),
        ("createdFrom=2026-11-20T09:45:00.0001", vec!["createdFrom"]),
        ("createdUntil=1795167900", vec!["createdUntil"]),
        ("createdUntil=2026-11-20T09:45:00+01:00", vec!["createdUntil"]),
        ("createdFrom=2026-11-20T09:45:00.001Z&createdUntil=2026-11-20T09:45:00Z", vec!["createdUntil"]),
        ("limit=0", vec!["limit"]),
        ("limit=101", vec!["limit"]),
        ("limit=-1", vec!["limit"]),
        ("limit=ten", vec!["limit"]),
        ("limit=1.5", vec!["limit"]),
        ("limit=", vec!["limit"]),
        ("limit=99999999999999999999", vec!["limit"]),
        ("limit=1&limit=2", vec!["limit"]),
        ("offset=10", vec!["offset"]),
        ("Status=failed", vec!["Status"]),
        ("page=2&status=nope&limit=0&createdUntil=x", vec!["createdUntil", "limit", "page", "status"]),
        ("cursor=x&status=nope&limit=0", vec!["limit", "status"]),
        // An invalid cursor has a different kind of Problem, and other values are checked first.
        ("cursor=AAAA&status=nope", vec!["status"]),
        ("cursor=&limit=0", vec!["limit"]),
        ("cursor=x&cursor=x&limit=0", vec!["cursor", "limit"]),
    ] {
        let call = entity.get(&format!("/webhook/delivery/list?{query}"));
        let problem = call.refused(400, "invalid-request").await;
        let mut listed = invalid_values(&problem);
        listed.sort_unstable();
        let expected: Vec<_> = names.iter().map(|name| format!("query/{name}")).collect();
        assert_eq!(listed, expected, "{query}");
    }
    let unencoded = entity.get("/webhook/delivery/list?createdUntil=2026-11-20T09:45:00+01:00");
    let problem = unencoded.refused(400, "invalid-request").await;
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("`%2B`")), "{problem:#}");
    for good in [
        "limit=1",
        "limit=100",
        "status=failed&status=failed",
        "status=failed,pending",
        "webhookIdentifier=whk_00000000000000000000000000",
        &longest,
        "subject=%C3%BC%20%23%26;,",
        "subject=123",
        "lastHttpStatus=100&lastErrorCode=dns",
        "createdFrom=0001-01-01T00:00:00Z&createdUntil=9999-12-31T23:59:59.999Z",
        // The times are formatted as by Python, Java and Go.
        "createdFrom=2026-11-20T09:45:00.123456%2B00:00",
        "createdFrom=2026-11-20T09:45:00.123456789Z&createdUntil=2026-11-20T09:45:00.123999999Z",
        // This time is beyond the clock's range.
        "createdUntil=9999-12-30T22:00:00.500Z",
        "createdUntil=9999-12-30T23:59:59Z",
        "createdFrom=0000-01-01T00:00:00%2B23:59&createdUntil=9999-12-31T23:59:59-23:59",
    ] {
        assert_eq!(page(&entity, &format!("?{good}")).await, json!({ "items": [] }), "{good}");
    }
}

#[contract_test]
async fn an_entity_sees_only_its_own_deliveries(suite: Arc<Suite>) {
    let owner = suite.entity().await;
    let stranger = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = owner.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let own = publish(&owner, "booking.created", 3).await;
    assert_eq!(page(&stranger, "").await, json!({ "items": [] }));
    assert_eq!(page(&stranger, &format!("?webhookIdentifier={}", hook.id)).await, json!({ "items": [] }));
    let seen: BTreeSet<String> =
        ids(&items(&page(&owner, &format!("?webhookIdentifier={}", hook.id)).await)).into_iter().collect();
    assert_eq!(seen, own.into_iter().collect());
}

#[contract_test]
async fn a_delivery_is_listed_only_under_its_current_state(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let is_listed = async |delivery: &str, state: &str| {
        for status in ["pending", "retrying", "delivered", "failed", "cancelled"] {
            let listed = items(&page(&entity, &format!("?status={status}")).await);
            let found = listed.iter().find(|listed| listed["id"] == delivery);
            assert_eq!(found.is_some(), status == state, "{delivery} is {state}, and listed as {status}");
            assert!(found.is_none_or(|found| found["status"] == state), "{found:?}");
        }
    };
    // The retry comes after the end of the test but within a minute: a longer wait would move the delivery within its
    // index.
    let later = Behaviour::answer(503, &[("Retry-After", "50")], "");
    let hook = entity.hook(&receiver.on("/", [later, Behaviour::status(200)])).await;
    // A retry succeeds.
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["retrying"]).await;
    is_listed(&delivery, "retrying").await;
    entity.post(&format!("/webhook/delivery/{delivery}/resend")).expect(202).await;
    entity.until_status(&delivery, &["delivered"]).await;
    is_listed(&delivery, "delivered").await;
    // A delivery that succeeded on the first attempt fails when it is resent, then succeeds when it is resent again.
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["delivered"]).await;
    is_listed(&delivery, "delivered").await;
    receiver.on("/", [Behaviour::status(410)]);
    entity.post(&format!("/webhook/delivery/{delivery}/resend")).expect(202).await;
    entity.until_status(&delivery, &["failed"]).await;
    is_listed(&delivery, "failed").await;
    receiver.on("/", [Behaviour::status(200)]);
    entity.call("PATCH", &format!("/webhook/{}", hook.id)).json(&json!({ "enabled": true })).expect(200).await;
    entity.post(&format!("/webhook/delivery/{delivery}/resend")).expect(202).await;
    entity.until_status(&delivery, &["delivered"]).await;
    is_listed(&delivery, "delivered").await;
}

#[contract_test]
async fn a_delivery_opened_during_its_first_attempt_is_listed_as_delivered(suite: Arc<Suite>) {
    const ROUNDS: usize = 3;
    let (setup, _permit) = suite.other_bundle_interposed(swept_by_hand()).await;
    until_first_sweep(&setup).await;
    // A sweep opens an event's deliveries after 20 seconds. The attempt begins equally late, and is still in progress.
    setup.services.scatter(|_| vec![Duration::from_secs(20)]);
    for round in 0..ROUNDS {
        let entity = Entity::new(&setup.api, format!("opened-{round}")).await;
        if is_opened_during_its_attempt(&setup, &entity).await {
            assert!(setup.bundle.stop().await.success());
            return;
        }
    }
    panic!("in each of {ROUNDS} rounds, the attempt timed out before the end of the lists");
}

/// Lists a delivery that a sweep opens during its first attempt; returns whether the attempt lasted long enough, which
/// it does not on a slow machine.
async fn is_opened_during_its_attempt(setup: &Interposed, entity: &Entity) -> bool {
    let receiver = Receiver::start().await;
    let table = Table::of(&setup.api.env);
    let answers = Gate::closed();
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200).behind(&answers)])).await;
    let delivery = entity.publish(json!({})).await;
    // The functions start before the attempt, which must last until the end of the lists.
    let shown = entity.delivery(&delivery).await;
    page(entity, "").await;
    receiver.until("/", 1).await;
    until_opens(&shown).await;
    let is_opened = until("a sweep opens it, or its attempt is over", LONG, async || {
        sweep(setup).await;
        let head = table.head(&delivery).await?;
        let is_over = head["attemptCount"]["N"].as_str().is_some_and(|count| count != "0");
        let is_opened = head.get("dueAt").is_some() && head.get("lease").is_some();
        (is_over || is_opened).then_some(!is_over)
    })
    .await;
    if !is_opened {
        return false;
    }
    let lists = async || {
        let of = async |filters: &str| ids(&items(&page(entity, &format!("?{filters}")).await));
        let of_webhook = format!("webhookIdentifier={}&status", hook.id);
        let mut found = Vec::new();
        for status in ["pending", "delivered"] {
            found.push((of(&format!("status={status}")).await, of(&format!("{of_webhook}={status}")).await));
        }
        found
    };
    let [one, none] = [(vec![delivery.clone()], vec![delivery.clone()]), (vec![], vec![])];
    let during = lists().await;
    if entity.delivery(&delivery).await["attemptCount"] != 0 {
        return false;
    }
    assert_eq!(during, [one.clone(), none.clone()]);
    answers.open();
    entity.until_status(&delivery, &["delivered"]).await;
    assert_eq!(lists().await, [none, one]);
    true
}
