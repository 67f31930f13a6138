//! Pauses: after an endpoint fails to respond, its webhook's deliveries are put on hold, and their state shows why.
//! Attempts that a person requests are made immediately, and a response to one ends the pause for all deliveries.

use std::{sync::Arc, time::Duration};

use base::Time;
use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    delivery_list::publish,
    harness::{
        Behaviour, Entity, Hook, LONG, Receiver, Suite, Table,
        counts::{COUNTED_WITHIN, failures_counted},
        now, outcomes, time, until,
    },
};

/// The length of a pause, whose end no test waits for.
const PAUSE: i64 = 600;

/// A ten-minute pause that an endpoint requests.
fn later() -> Behaviour {
    Behaviour::answer(429, &[("Retry-After", "600")], "")
}

pub fn key(entity: &Entity, hook: &Hook) -> (String, String) {
    (format!("ENT#{}", entity.id), format!("HLT#{}", hook.id))
}

/// Pauses a webhook as if 25 attempts had received no response; returns the pause's end.
async fn pause(suite: &Suite, entity: &Entity, hook: &Hook, opens: u32) -> String {
    paused_in(&suite.table(), entity, hook, opens).await
}

/// Pauses a webhook in this table; returns the pause's end.
pub async fn paused_in(table: &Table, entity: &Entity, hook: &Hook, opens: u32) -> String {
    let at = |seconds: i64| Time::from_millis((now() + seconds) * 1_000).to_string();
    let ((pk, sk), end) = (key(entity, hook), at(PAUSE));
    let health = json!({
        "pk": { "S": pk },
        "sk": { "S": sk },
        "failuresInRow": { "N": "25" },
        "incompleteInRow": { "N": "25" },
        "failingSince": { "S": at(-3600) },
        "failing": { "BOOL": true },
        "openUntil": { "S": end },
        "opens": { "N": opens.to_string() },
        "expiresAt": { "N": "4000000000" },
    });
    table.put(health).await;
    end
}

pub fn is_put_off(delivery: &Value) -> bool {
    delivery["waitingFor"] == "breaker"
}

/// A paused webhook with waiting deliveries.
struct Paused {
    hook: Hook,
    /// When the pause ends.
    end: String,
    waiting: Vec<String>,
}

async fn paused(suite: &Suite, entity: &Entity, url: &str) -> Paused {
    let hook = entity.hook(url).await;
    let end = pause(suite, entity, &hook, 6).await;
    let waiting = publish(entity, "booking.created", 3).await;
    for id in &waiting {
        let delivery = entity.until_delivery(id, "waits for the breaker", is_put_off).await;
        assert_eq!((&delivery["status"], &delivery["attemptCount"]), (&json!("pending"), &json!(0)));
    }
    Paused { hook, end, waiting }
}

async fn tested(entity: &Entity, hook: &Hook) -> String {
    let answer = entity.test(&hook.id).expect(202).await.json();
    answer["deliveryIdentifier"].as_str().expect("openapi.yaml says so").to_owned()
}

async fn resume(entity: &Entity, hook: &Hook) -> Value {
    entity.post(&format!("/webhook/{}/resume", hook.id)).expect(200).await.json()
}

/// Asserts that this delivery was sent first, followed by all others.
async fn goes_first_and_ends_the_pause(entity: &Entity, receiver: &Receiver, hook: &Hook, asked: &str, all: &[String]) {
    for id in all.iter().map(String::as_str).chain([asked]) {
        let delivery = entity.until_status(id, &["delivered", "failed"]).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("delivered"), 1), "{delivery:#}");
        assert!(delivery.get("waitingFor").is_none(), "{delivery:#}");
    }
    assert_eq!(receiver.received("/")[0].header("service-delivery-id"), asked);
    // An attempt is counted after it is recorded.
    until("a success heals the webhook", LONG, async || {
        let webhook = entity.webhook(&hook.id).await;
        (webhook["deliveryState"] == "active" && webhook.get("pausedUntil").is_none()).then_some(())
    })
    .await;
}

#[contract_test]
async fn a_test_event_goes_through_a_pause_at_once_and_ends_it_for_all(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let Paused { hook, end, waiting } = paused(&suite, &entity, &receiver.on("/", [Behaviour::status(200)])).await;
    let webhook = entity.webhook(&hook.id).await;
    assert_eq!((&webhook["deliveryState"], &webhook["health"]), (&json!("paused"), &json!("open")), "{webhook:#}");
    assert_eq!(webhook["pausedUntil"], end.as_str(), "{webhook:#}");
    assert!(receiver.everything().is_empty(), "the pause has no effect");
    let asked = tested(&entity, &hook).await;
    goes_first_and_ends_the_pause(&entity, &receiver, &hook, &asked, &waiting).await;
}

#[contract_test]
async fn a_resend_goes_through_a_pause_at_once_and_ends_it_for_all(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let Paused { hook, waiting, .. } = paused(&suite, &entity, &receiver.on("/", [Behaviour::status(200)])).await;
    entity.post(&format!("/webhook/delivery/{}/resend", waiting[1])).expect(202).await;
    goes_first_and_ends_the_pause(&entity, &receiver, &hook, &waiting[1], &waiting).await;
    // A pause does not prevent a final delivery from being sent again, either.
    pause(&suite, &entity, &hook, 6).await;
    entity.post(&format!("/webhook/delivery/{}/resend", waiting[0])).expect(202).await;
    entity.until_delivery(&waiting[0], "is sent again", |delivery| delivery["attemptCount"] == 2).await;
}

#[contract_test]
async fn a_requested_attempt_that_fails_leaves_the_pause_unchanged(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let hook = entity.hook(&receiver.on("/", [Behaviour::close()])).await;
    let end = pause(&suite, &entity, &hook, 6).await;
    let (pk, sk) = key(&entity, &hook);
    for number in 1..=2 {
        let id = tested(&entity, &hook).await;
        let delivery = entity.until_delivery(&id, "was attempted once, and waits", is_put_off).await;
        assert_eq!((&delivery["status"], outcomes(&delivery)), (&json!("retrying"), 1), "{delivery:#}");
        assert_eq!(receiver.received("/").len() as u64, number);
        failures_counted(&table, &entity, &hook, 25 + number).await;
        let health = table.item(&pk, &sk).await.expect("the webhook is paused");
        assert_eq!((&health["openUntil"]["S"], &health["opens"]["N"]), (&json!(end), &json!("6")), "{health:#}");
        // If the table does not record the probe's end in time, its lease ends.
        until("another probe may be made", LONG, async || {
            let health = table.item(&pk, &sk).await?;
            let is_over = health.get("probeUntil").is_none_or(|end| time(&end["S"]).as_second() < now());
            is_over.then_some(())
        })
        .await;
    }
    assert_eq!(entity.webhook(&hook.id).await["pausedUntil"], end.as_str());
}

#[contract_test]
async fn concurrent_requests_for_attempts_send_one_probe_at_a_time(suite: Arc<Suite>) {
    const EXCHANGE: Duration = Duration::from_secs(3);
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::close().after(EXCHANGE)])).await;
    pause(&suite, &entity, &hook, 1).await;
    let asked = join_all((0..10).map(|_| tested(&entity, &hook))).await;
    receiver.until("/", 3).await;
    let mut at: Vec<_> = receiver.received("/").iter().map(|request| request.at).collect();
    at.sort_unstable();
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] >= EXCHANGE), "two probes at once: {at:?}");
    receiver.on("/", [Behaviour::status(200)]);
    resume(&entity, &hook).await;
    for id in &asked {
        entity.until_status(id, &["delivered"]).await;
    }
}

#[contract_test]
async fn a_resumed_webhook_gets_the_deliveries_that_waited_for_its_pause(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [later()])).await;
    let scheduled = entity.publish(json!({})).await;
    let scheduled = entity.until_status(&scheduled, &["retrying"]).await;
    assert_eq!(scheduled["waitingFor"], "schedule");
    // If the failure were counted later, it would end the pause.
    failures_counted(&suite.table(), &entity, &hook, 1).await;
    receiver.on("/", [Behaviour::status(500), Behaviour::status(200)]);
    pause(&suite, &entity, &hook, 6).await;
    let waiting = publish(&entity, "booking.created", 3).await;
    for id in &waiting {
        entity.until_delivery(id, "waits for the breaker", is_put_off).await;
    }
    let resumed = resume(&entity, &hook).await;
    assert_eq!((&resumed["deliveryState"], &resumed["health"]), (&json!("failing"), &json!("failing")), "{resumed:#}");
    assert_eq!((resumed.get("pausedUntil"), &resumed["version"]), (None, &json!(1)), "{resumed:#}");
    for id in &waiting {
        entity.until_status(id, &["delivered"]).await;
    }
    until("a success heals it", LONG, async || {
        (entity.webhook(&hook.id).await["deliveryState"] == "active").then_some(())
    })
    .await;
    let id = scheduled["id"].as_str().expect("openapi.yaml says so");
    assert_eq!(entity.delivery(id).await, scheduled, "deliveries that wait for their schedule continue to wait");
}

#[contract_test]
async fn what_waits_goes_out_at_a_new_address(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let former = receiver.on("/former", [Behaviour::status(200)]);
    let Paused { hook, waiting, .. } = paused(&suite, &entity, &former).await;
    let moved = entity.changed(&hook.id, json!({ "eventUrl": receiver.on("/", [Behaviour::status(200)]) })).await;
    assert_eq!((&moved["deliveryState"], &moved["health"]), (&json!("active"), &json!("healthy")), "{moved:#}");
    for id in &waiting {
        entity.until_status(id, &["delivered"]).await;
    }
    assert_eq!((receiver.received("/former").len(), receiver.received("/").len()), (0, waiting.len()));
}

#[contract_test]
async fn resuming_a_webhook_that_is_not_paused_changes_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let shown = entity.webhook(&hook.id).await;
    assert_eq!(resume(&entity, &hook).await, shown);
    assert_eq!(table.item(&format!("JOB#{}", hook.id), "RECOVER").await, None);
    let path = format!("/webhook/{}/resume", hook.id);
    entity.post(&path).json(&json!({ "now": true })).refused(400, "invalid-request").await;
    entity.post(&path).body("text/plain", "now").refused(415, "unsupported-media-type").await;
    // `curl -d ''` sends a media type, but no body.
    entity.post(&path).body("application/x-www-form-urlencoded", "").expect(200).await;
}

#[contract_test]
async fn missing_foreign_and_disabled_webhooks_are_not_resumed(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let stranger = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    for id in [stranger.hook("http://127.0.0.1:9/").await.id.as_str(), "whk_00000000000000000000000000", "x"] {
        entity.post(&format!("/webhook/{id}/resume")).refused(404, "webhook-not-found").await;
    }
    entity.changed(&hook.id, json!({ "enabled": false })).await;
    entity.post(&format!("/webhook/{}/resume", hook.id)).refused(409, "webhook-disabled").await;
}

#[contract_test]
async fn a_delivery_says_what_it_waits_for_alone_and_in_lists(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let table = suite.table();
    let script = [later(), later(), later(), Behaviour::status(200)];
    let hook = entity.hook(&receiver.on("/", script)).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(entity.publish(json!({})).await);
        entity.until_status(ids.last().expect("one"), &["retrying"]).await;
    }
    failures_counted(&suite.table(), &entity, &hook, 3).await;
    // The success comes last: if it were counted together with a later failure, it would reset the counts of others.
    ids.push(entity.publish(json!({})).await);
    entity.until_status(&ids[3], &["delivered"]).await;
    let (pk, sk) = key(&entity, &hook);
    let counted = async || {
        until("the success is counted", LONG, async || table.item(&pk, &sk).await.is_none().then_some(())).await;
    };
    if timeout(COUNTED_WITHIN, counted()).await.is_err() {
        // The count was lost; the next one is not.
        tested(&entity, &hook).await;
        counted().await;
    }
    // Make this delivery look as if it was due a minute ago but got no permit: it is not claimed, and therefore not
    // written.
    let overdue = Time::from_millis((now() - 60) * 1_000).to_string();
    for name in ["nextAttemptDate", "claimableAt"] {
        assert!(table.set_of_head(&ids[1], name, &overdue).await);
    }
    // Make this delivery look as if its attempt is in progress: a worker holds its lease.
    let mut under_way = table.head(&ids[2]).await.expect("it was attempted");
    let far = "2099-01-01T00:00:00.000Z";
    for (name, value) in [("lease", "of a worker"), ("claimableAt", far), ("nextAttemptDate", overdue.as_str())] {
        under_way[name] = json!({ "S": value });
    }
    table.put(under_way).await;
    pause(&suite, &entity, &hook, 6).await;
    ids.push(entity.publish(json!({})).await);
    entity.until_delivery(&ids[4], "waits for the breaker", is_put_off).await;

    let expected = [Some("schedule"), Some("limit"), None, None, Some("breaker")];
    let list = entity.get("/webhook/delivery/list").expect(200).await.json();
    for (id, expected) in ids.iter().zip(expected) {
        let alone = entity.delivery(id).await;
        assert_eq!(alone["waitingFor"].as_str(), expected, "{alone:#}");
        let listed = list["items"].as_array().into_iter().flatten().find(|item| item["id"] == id.as_str());
        assert_eq!(listed.expect("it is listed")["waitingFor"].as_str(), expected, "{list:#}");
        let event = alone["event"]["id"].as_str().expect("openapi.yaml says so");
        let event = entity.get(&format!("/webhook/event/{event}")).expect(200).await.json();
        assert_eq!(event["deliveries"][0]["waitingFor"].as_str(), expected, "{event:#}");
    }
}
