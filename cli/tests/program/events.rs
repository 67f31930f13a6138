//! Published events, their explanation, and the panel: the requests and the output.

use serde_json::{Value, json};

use crate::{
    ME, Person,
    fake::{EVENT_TIME, Fake, PANEL_LINK, problem},
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
        "eventIdentifier": "evt_1",
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
        "event     evt_1",
        "  waypost resend dlv_2\n  waypost webhooks test whk_1",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(fake.received(&format!("{ME}/webhook/delivery/list"))[0].query.ends_with("subject=B-1"));
    fake.on(&format!("{ME}/webhook/delivery/dlv_2"), (200, failed("dlv_2")));
    let explained: Value = serde_json::from_str(&person.run(&["why", "evt_1", "--json"]).await.done()).expect("JSON");
    let deliveries = &explained["deliveries"];
    assert_eq!((&deliveries[0]["id"], &deliveries[1]["advice"]["cause"]), (&json!("dlv_1"), &json!("broken")));
    assert_eq!((&explained["event"]["id"], &explained["withoutDelivery"]), (&json!("evt_1"), &json!([])));
    let alone: Value = serde_json::from_str(&person.run(&["why", "dlv_1", "--json"]).await.done()).expect("JSON");
    assert_eq!(alone["id"], "dlv_1");
}

/// A webhook as the list shows it, created long before the event.
fn listed(id: &str, members: &Value) -> Value {
    let mut webhook = json!({
        "id": id, "name": format!("Name of {id}"), "enabled": true, "eventList": ["booking.*"],
        "createdDate": "2026-11-01T00:00:00.000Z", "lastUpdate": "2026-11-01T00:00:00.000Z",
    });
    let members = members.as_object().expect("an object").clone();
    webhook.as_object_mut().expect("an object").extend(members);
    webhook
}

#[tokio::test]
async fn why_says_of_each_webhook_why_it_got_no_delivery() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let event = json!({
        "id": "evt_1", "type": "booking.created", "subject": "B-1", "timestamp": EVENT_TIME, "data": { "nights": 3 },
        "managingEntityIdentifier": "hotel", "deliveries": [],
    });
    let webhooks = json!([
        listed("whk_1", &json!({ "eventList": ["payee.*"] })),
        listed("whk_2", &json!({ "eventFilter": { "nights": [7] } })),
        listed("whk_3", &json!({ "createdDate": "2026-11-21T00:00:00.000Z" })),
    ]);
    for _ in 0..2 {
        fake.on(&format!("{ME}/webhook/event/evt_1"), (200, event.clone()));
        fake.on(&format!("{ME}/webhook/list"), (200, webhooks.clone()));
    }
    let said = person.run(&["why", "evt_1"]).await.done();
    let expected = "\
evt_1  booking.created  B-1
published 2026-11-20 09:45:00Z
happened  Not delivered: no webhook matched it when it was published.
remedy    Correct, enable or create the webhook, and replay the event. It is then delivered if it matches.
Webhooks without a delivery of this event:
  Name of whk_2 (whk_2): The event's data does not match its filter.
  Name of whk_3 (whk_3): It was created later, at 2026-11-21 00:00:00Z.
  Name of whk_1 (whk_1): Its types do not include booking.created.
Next:
  waypost webhooks show ID
  waypost replay ID --from 2026-11-20T09:45:00.123Z --until 2026-11-20T09:45:00.124Z
";
    assert_eq!(said, expected);
    let explained: Value = serde_json::from_str(&person.run(&["why", "evt_1", "--json"]).await.done()).expect("JSON");
    assert_eq!((&explained["event"], &explained["deliveries"]), (&event, &json!([])));
    let filtered = &explained["withoutDelivery"][0];
    assert_eq!((&filtered["webhookIdentifier"], &filtered["reason"]), (&json!("whk_2"), &json!("filtered")));
    let tried = fake.received(&format!("{ME}/webhook/event/filter/check"));
    assert_eq!(tried.len(), 2, "only the webhook with the type and a filter needs a trial");
    let range = json!({
        "eventFilter": { "nights": [7] }, "createdFrom": EVENT_TIME, "createdUntil": "2026-11-20T09:45:00.124Z",
    });
    assert_eq!(tried[0].json(), range);
}

#[tokio::test]
async fn why_lists_other_webhooks_below_the_deliveries_of_an_event() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    fake.on(&format!("{ME}/webhook/delivery/dlv_2"), (200, failed("dlv_2")));
    fake.on(&format!("{ME}/webhook/event/filter/check"), problem(503, "service-unavailable", "Later."));
    let webhooks = [listed("whk_1", &json!({})), listed("whk_2", &json!({ "eventFilter": { "nights": [7] } }))];
    fake.on(&format!("{ME}/webhook/list"), (200, json!(webhooks)));
    let said = person.run(&["why", "evt_1"]).await.done();
    assert!(said.starts_with("evt_1  booking.created  B-1\npublished 2026-11-20 09:45:00Z\n\ndlv_1  "), "{said}");
    let others = "\n\nWebhooks without a delivery of this event:\n  Name of whk_2 (whk_2): It has a filter, which could not \
                  be tried on the event.\n";
    assert!(said.contains("waypost resend dlv_2") && said.ends_with(others), "{said}");
}

#[tokio::test]
async fn why_distinguishes_an_unknown_event_from_one_without_a_delivery() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    fake.on(&format!("{ME}/webhook/event/evt_2"), problem(404, "event-not-found", "No such event."));
    let unknown = person.run(&["why", "evt_2"]).await.failed(1);
    assert!(unknown.starts_with("error: No such event.\nnext: check the identifier"), "{unknown}");

    let deliveries = format!("{ME}/webhook/delivery/list");
    let events = format!("{ME}/webhook/event");
    fake.on(&deliveries, (200, json!({ "items": [] })));
    fake.on(&deliveries, (200, json!({ "items": [] })));
    let nothing = person.run(&["why", "B-2"]).await.failed(1);
    assert!(nothing.starts_with("error: nothing about `B-2` was found"), "{nothing}");
    assert!(nothing.contains("next: `waypost whoami`"), "{nothing}");
    let item = json!({ "id": "evt_3", "type": "booking.created", "timestamp": EVENT_TIME, "deliveries": [] });
    for _ in 0..2 {
        // Both spellings have no delivery.
        fake.on(&deliveries, (200, json!({ "items": [] })));
        fake.on(&deliveries, (200, json!({ "items": [] })));
        // A page may be empty and have a next one.
        fake.on(&events, (200, json!({ "items": [], "nextCursor": "more" })));
        fake.on(&events, (200, json!({ "items": [item] })));
    }
    let before = fake.received(&events).len();
    let said = person.run(&["why", "B-3"]).await.done();
    let expected = "No delivery of `B-3` was found, but its events were published:\n  evt_3  booking.created  2026-11-20 \
                    09:45:00Z\nNext:\n  waypost why evt_3\n";
    assert_eq!(said, expected);
    let asked = fake.received(&events);
    assert_eq!(
        (asked[before].query.as_str(), asked[before + 1].query.as_str()),
        ("limit=20&subject=B-3", "limit=20&subject=B-3&cursor=more")
    );
    let ended = person.run(&["why", "B-3", "--json"]).await;
    assert!(ended.err.contains("waypost why evt_3"), "{ended:?}");
    assert_eq!(ended.done(), "[]\n");
}

#[tokio::test]
async fn why_finds_a_subject_in_other_capitals_and_says_which() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let list = format!("{ME}/webhook/delivery/list");
    for (given, empty) in [("b-1", 1), ("#b-1", 2)] {
        for _ in 0..empty {
            fake.on(&list, (200, json!({ "items": [] })));
        }
        fake.on(&format!("{ME}/webhook/delivery/dlv_2"), (200, failed("dlv_2")));
        let ended = person.run(&["why", given]).await;
        let notice = format!("Found the subject `B-1`; no delivery has the subject `{given}`.");
        assert!(ended.err.contains(&notice), "{ended:?}");
        assert!(ended.done().contains("waypost resend dlv_2"));
    }
    let asked = fake.received(&list);
    assert!(asked[0].query.ends_with("subject=b-1") && asked[1].query.ends_with("subject=B-1"), "{asked:?}");
}

#[tokio::test]
async fn why_explains_trouble_first_and_lists_the_events_of_a_subject() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let statuses = ["delivered"; 9].into_iter().chain(["cancelled", "pending", "failed"]);
    let mut items = Vec::new();
    for (status, number) in statuses.zip(1..) {
        let id = format!("dlv_{number}");
        let mut whole = failed(&id);
        whole["status"] = json!(status);
        fake.on(&format!("{ME}/webhook/delivery/{id}"), (200, whole));
        items.push(json!({ "id": id, "status": status }));
    }
    fake.on(&format!("{ME}/webhook/delivery/list"), (200, json!({ "items": items })));
    let webhooks = [listed("whk_1", &json!({})), listed("whk_2", &json!({}))];
    fake.on(&format!("{ME}/webhook/list"), (200, json!(webhooks)));
    let of_webhook = json!([{ "status": "failed", "count": 1, "webhookIdentifiers": ["whk_1"] }]);
    let event = json!({ "id": "evt_1", "type": "booking.created", "timestamp": EVENT_TIME, "deliveries": of_webhook });
    fake.on(&format!("{ME}/webhook/event"), (200, json!({ "items": [event] })));
    let ended = person.run(&["why", "B-1"]).await;
    let notice = "Only 10 of 12 deliveries are explained, failed and waiting ones first: `waypost deliveries \
                  --subject B-1` lists all.";
    assert!(ended.err.contains(notice), "{ended:?}");
    let said = ended.done();
    let title = |line: &str| Some(line.strip_suffix("  booking.created  B-1")?.to_owned());
    let titles: Vec<_> = said.lines().filter_map(title).collect();
    assert_eq!(titles[..4], ["dlv_12", "dlv_11", "dlv_10", "dlv_1"], "{said}");
    let events = "\n\nEvents, newest first:\n  evt_1  booking.created  2026-11-20 09:45:00Z  no delivery to Name of \
                  whk_2\n`waypost why evt_1` gives the reasons for that event.\n";
    assert!(said.ends_with(events), "{said}");
}

/// A delivery that is open, with further members.
fn open(members: &Value) -> (u16, Value) {
    let mut open = failed("dlv_2");
    open["status"] = json!("pending");
    let members = members.as_object().expect("an object").clone();
    open.as_object_mut().expect("an object").extend(members);
    (200, open)
}

#[tokio::test]
async fn resend_prints_the_result_of_the_attempt_and_a_broken_order() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let path = format!("{ME}/webhook/delivery/dlv_2");
    let attempt = json!({ "attemptNumber": 11, "attemptDate": EVENT_TIME, "durationMs": 87, "httpStatus": 422 });
    fake.on(&path, open(&json!({ "waitingFor": "order", "heldBy": "dlv_0" })));
    fake.on(&format!("{path}/resend"), open(&json!({})));
    fake.on(&path, open(&json!({})));
    fake.on(&path, open(&json!({ "status": "failed", "attempts": [attempt] })));
    let said = person.run(&["resend", "dlv_2"]).await.done();
    let expected = "\
A resend does not wait for the earlier delivery about B-1 (dlv_0), which is still open.
Attempt 11 of dlv_2 failed: 422. No further attempt follows.
`waypost why dlv_2` shows the cause and the remedy.
";
    assert_eq!(said, expected);
    let exact: Value = serde_json::from_str(&person.run(&["resend", "dlv_1", "--json"]).await.done()).expect("JSON");
    assert_eq!((&exact["id"], &exact["attempts"]), (&json!("dlv_1"), &json!([])));
}

#[tokio::test]
async fn resend_does_not_wait_for_a_reader_or_the_end_of_a_pause() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let path = format!("{ME}/webhook/delivery/dlv_2");
    for (reason, words) in [
        ("reader", "it is waiting until a program reads the webhook's feed."),
        ("breaker", "the service paused the webhook"),
    ] {
        let before = fake.received(&path).len();
        fake.on(&path, open(&json!({ "waitingFor": reason })));
        fake.on(&format!("{path}/resend"), open(&json!({ "waitingFor": reason })));
        let said = person.run(&["resend", "dlv_2"]).await.done();
        let expected = format!("dlv_2 has not been sent again yet: {words}");
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!(fake.received(&path).len(), before + 1, "{reason}");
    }
}

#[tokio::test]
async fn an_identifier_of_the_wrong_kind_leads_to_the_right_command() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    for (arguments, command) in [
        (["resend", "B-1"], "`waypost why B-1`"),
        (["show", "evt_1"], "`waypost why evt_1`"),
        (["cancel", "whk_1"], "`waypost deliveries --webhook whk_1`"),
        (["why", "whk_1"], "`waypost webhooks show whk_1`"),
    ] {
        let said = person.run(&arguments).await.failed(2);
        assert!(said.starts_with("error: `") && said.contains(command), "{said}");
    }
    assert!(fake.everything().iter().all(|request| !request.path.contains("/webhook/delivery/")));
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
