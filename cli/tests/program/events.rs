//! Published events, their explanation, and the panel: the requests and the output.

use serde_json::{Value, json};

use crate::{
    ME, Person,
    fake::{Fake, PANEL_LINK, problem},
};

async fn logged_in(fake: &Fake) -> Person {
    let person = Person::new();
    person.log_in(fake).await.done();
    person
}

#[tokio::test]
async fn an_event_is_published_with_its_exact_data_and_a_key() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let data = r#"{"total": 1.10}"#;
    let publish = ["publish", "--type", "booking.created", "--data"];
    let said = person.run(&[&publish[..], &[data]].concat()).await.done();
    assert!(said.contains("Published evt_1: 1 delivery.\n  dlv_1 to whk_1\n`waypost why evt_1`"), "{said}");
    let options = ["-", "--subject", "B-1", "--idempotency-key", "mine", "--json"];
    let published = person.run_with(&[&publish[..], &options].concat(), data).await.done();
    let answer: Value = serde_json::from_str(&published).expect("JSON");
    assert_eq!(answer["kept"], true);
    let file = person.home.path().join("data.json");
    std::fs::write(&file, data).expect("the folder can be written");
    person.run(&[&publish[..], &[&format!("@{}", file.display())]].concat()).await.done();
    let sent = fake.received(&format!("{ME}/webhook/event"));
    for request in &sent {
        assert!(request.body.contains(&format!(r#""data":{data}"#)), "{request:?}");
    }
    assert_eq!((&sent[0].json()["subject"], &sent[1].json()["subject"]), (&Value::Null, &json!("B-1")));
    let keys = [0, 1, 2].map(|request: usize| sent[request].header("idempotency-key"));
    assert!(keys[0].len() == 32 && keys[1] == "mine" && keys[0] != keys[2], "{keys:?}");
}

#[tokio::test]
async fn a_publication_without_an_answer_is_repeated_with_its_key() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let path = format!("{ME}/webhook/event");
    let publish = ["publish", "--type", "booking.created", "--data", "{}"];
    fake.on(&path, problem(503, "service-unavailable", "Later."));
    person.run(&publish).await.done();
    for _ in 0..3 {
        fake.on(&path, problem(503, "service-unavailable", "Later."));
    }
    let said = person.run(&publish).await.failed(1);
    let sent = fake.received(&path);
    let keys: Vec<_> = sent.iter().map(|request| request.header("idempotency-key")).collect();
    assert!(keys.len() == 5 && keys[0] == keys[1] && keys[2] == keys[4] && keys[1] != keys[2], "{keys:?}");
    assert!(said.contains(&format!("--idempotency-key {}", keys[4])), "{said}");
    fake.on(&path, problem(403, "may-not-publish", "The application may not publish."));
    assert!(person.run(&publish).await.failed(4).contains("next: ask the operator for the right"));
}

fn failed(id: &str) -> Value {
    json!({
        "id": id, "type": "booking.created", "subject": "B-1", "status": "failed", "webhookIdentifier": "whk_1",
        "createdDate": "2026-11-20T09:45:00.123Z", "attemptCount": 10, "event": {},
        "advice": { "cause": "broken", "meaning": "The endpoint failed.", "remedy": "Look for an error in its log." },
        "attempts": [{ "attemptNumber": 10, "attemptDate": "2026-11-20T09:45:00.158Z", "durationMs": 87, "httpStatus": 500 }],
    })
}

#[tokio::test]
async fn why_explains_the_deliveries_of_a_booking_and_gives_commands() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    fake.on(&format!("{ME}/webhook/delivery/dlv_2"), (200, failed("dlv_2")));
    let said = person.run(&["why", "B-1"]).await.done();
    for part in [
        "Booking sync (whk_1)",
        "Delivered on attempt 1",
        "Not delivered after 10 attempts. The last one at 2026-11-20 09:45:00Z: 500.",
        "cause     The endpoint failed.",
        "  waypost resend dlv_2",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(fake.received(&format!("{ME}/webhook/delivery/list"))[0].query.ends_with("subject=B-1"));
    fake.on(&format!("{ME}/webhook/delivery/dlv_2"), (200, failed("dlv_2")));
    let explained: Value = serde_json::from_str(&person.run(&["why", "evt_1", "--json"]).await.done()).expect("JSON");
    assert_eq!((&explained[0]["id"], &explained[1]["advice"]["cause"]), (&json!("dlv_1"), &json!("broken")));
    assert!(fake.received(&format!("{ME}/webhook/delivery/list"))[2].query.ends_with("eventIdentifier=evt_1"));
    let alone: Value = serde_json::from_str(&person.run(&["why", "dlv_1", "--json"]).await.done()).expect("JSON");
    assert_eq!(alone["id"], "dlv_1");
    fake.on(&format!("{ME}/webhook/delivery/list"), (200, json!({ "items": [] })));
    let unknown = person.run(&["why", "B-2"]).await.done();
    assert!(unknown.contains("No delivery of `B-2`") && unknown.contains("waypost webhooks show ID"), "{unknown}");
}

#[tokio::test]
async fn open_prints_the_link_without_a_browser() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    assert_eq!(person.run(&["open"]).await.done(), format!("{PANEL_LINK}\n"));
    assert_eq!(person.run(&["open", "dlv_1", "--print"]).await.done(), format!("{PANEL_LINK}\n"));
    let answer: Value = serde_json::from_str(&person.run(&["open", "--json"]).await.done()).expect("JSON");
    assert_eq!(answer["id"], "plk_1");
    let asked = fake.received(&format!("{ME}/panel/link"));
    assert_eq!(
        (&asked[0].json()["place"], &asked[1].json()["place"]),
        (&Value::Null, &json!("/panel/deliveries/dlv_1"))
    );
}

#[tokio::test]
async fn trigger_sends_data_of_the_caller_unchanged_and_shows_warnings() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let path = format!("{ME}/webhook/whk_1/test");
    let data = r#"{"total": 1.10}"#;
    let file = person.home.path().join("data.json");
    std::fs::write(&file, data).expect("the folder can be written");
    let warning = json!({ "in": "data", "pointer": "/status", "code": "required", "detail": "is missing" });
    let sent = json!({ "deliveryIdentifier": "dlv_9", "eventIdentifier": "evt_9", "warnings": [warning] });
    fake.on(&path, (202, sent.clone()));
    let said = person.run(&["trigger", "booking.created", "--data", data]).await.done();
    assert!(said.starts_with("Sent your data as booking.created to whk_1 (Booking sync): dlv_9."), "{said}");
    assert!(said.contains("\n  warning: `/status` is missing\n"), "{said}");
    fake.on(&path, (202, sent));
    let named = format!("@{}", file.display());
    let said = person.run(&["trigger", "booking.created", "--data", &named, "--json"]).await.done();
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((&said["deliveryIdentifier"], &said["warnings"][0]), (&json!("dlv_9"), &warning));
    for request in fake.received(&path) {
        assert_eq!(request.body, format!(r#"{{"type":"booking.created","data":{data}}}"#));
    }
    let before = fake.everything().len();
    let said = person.run(&["trigger", "booking.created", "--data", "{"]).await.failed(2);
    assert!(said.contains("--data is not JSON"), "{said}");
    assert_eq!(fake.everything().len(), before, "nothing is sent for data that cannot be read");
}

#[tokio::test]
async fn trigger_lists_the_types_that_it_can_send() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let said = person.run(&["trigger", "--list"]).await.done();
    assert!(said.contains("booking.created") && said.contains("payment.refunded"), "{said}");
    assert!(fake.received(&format!("{ME}/webhook/whk_1/test")).is_empty());
}
