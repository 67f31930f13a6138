//! `waypost deliveries --follow`: prints each end of a delivery once, across pages, rounds and service failures.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use crate::{
    ME, Person,
    fake::{Fake, problem},
};

fn listed(number: u32, status: &str, created: &str, updated: &str) -> Value {
    json!({
        "id": format!("dlv_{number}"), "eventIdentifier": format!("evt_{number}"), "type": "booking.created",
        "subject": "B-1", "status": status, "attemptCount": 1, "webhookIdentifier": "whk_1", "lastHttpStatus": 204,
        "createdDate": format!("2026-11-20T{created}.123Z"), "lastUpdate": format!("2026-11-20T{updated}.123Z"),
    })
}

fn page(items: &[&Value], cursor: Option<&str>) -> (u16, Value) {
    let mut page = json!({ "items": items });
    if let Some(cursor) = cursor {
        page["nextCursor"] = json!(cursor);
    }
    (200, page)
}

/// The requests in the rounds of [`answers`].
const REQUESTS: usize = 10;

/// The responses in three rounds. The deliveries 1, 2 and 3 end in the second.
fn answers(fake: &Fake) {
    let list = format!("{ME}/webhook/delivery/list");
    let old = listed(0, "delivered", "09:45:00", "09:45:01");
    let waiting = listed(1, "retrying", "08:00:00", "09:40:00");
    let delivered = listed(1, "delivered", "08:00:00", "09:45:09");
    let failed = listed(2, "failed", "09:45:02", "09:45:05");
    let cancelled = listed(3, "cancelled", "09:45:03", "09:45:07");
    for answer in [
        page(&[&old], Some("more")),
        // The first round: recent and open deliveries.
        page(&[&old], None),
        page(&[&waiting], None),
        // The second round. The second page repeats a delivery, and the service fails once.
        page(&[&failed, &old], Some("more")),
        page(&[&failed, &cancelled], None),
        problem(503, "service-unavailable", "Later."),
        page(&[], None),
        // The delivery that is no longer open is looked up by its event.
        page(&[&delivered], None),
        // The third round.
        page(&[&cancelled, &failed, &old], None),
        page(&[], None),
    ] {
        fake.on(&list, answer);
    }
}

/// Runs the program until it has received all responses, and then ends it as Ctrl-C does.
async fn followed(fake: &Fake, person: &Person, options: &[&str]) -> crate::Ended {
    answers(fake);
    let list = format!("{ME}/webhook/delivery/list");
    let before = fake.received(&list).len();
    let child = person.command(&[&["deliveries", "--follow"], options].concat()).spawn().expect("it is built");
    let id = Pid::from_raw(child.id().try_into().expect("a process"));
    let ended = tokio::spawn(Person::ended(child));
    fake.until(&list, before + REQUESTS).await;
    kill(id, Signal::SIGINT).expect("it runs");
    ended.await.expect("no panic")
}

#[tokio::test]
async fn follow_prints_each_end_once_in_its_order() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    let ended = followed(&fake, &person, &["--json", "--webhook", "whk_1"]).await;
    assert!(ended.err.contains("Press Ctrl-C to stop") && ended.err.contains("Later. Trying again"), "{ended:?}");
    let said = ended.done();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let ids: Vec<_> = lines.iter().map(|line| line["id"].as_str().expect("an identifier")).collect();
    assert_eq!(ids, ["dlv_2", "dlv_3", "dlv_1"]);
    let asked = fake.received(&format!("{ME}/webhook/delivery/list"));
    assert_eq!(asked[0].query, "limit=1&webhookIdentifier=whk_1");
    assert!(asked[1].query.ends_with("createdFrom=2026-11-20T09%3A43%3A00.123Z"), "{}", asked[1].query);
    assert!(asked[2].query.ends_with("status=pending%2Cretrying"), "{}", asked[2].query);
    assert!(asked[7].query.ends_with("eventIdentifier=evt_1"), "{}", asked[7].query);
    assert!(asked[8].query.ends_with("createdFrom=2026-11-20T09%3A43%3A03.123Z"), "{}", asked[8].query);
}

#[tokio::test]
async fn follow_prints_lines_with_the_name_of_the_webhook_that_fit_a_terminal() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    let said = followed(&fake, &person, &["--failed"]).await.done();
    assert!(said.starts_with("2026-11-20 09:45:05Z  failed  booking.created  B-1  Booking sync"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
