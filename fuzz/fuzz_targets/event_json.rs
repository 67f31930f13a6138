//! Requests to publish: an accepted request becomes an event that contains the data byte for byte, is JSON with the
//! contract's members, and keeps within the limits of size and depth.
#![no_main]

use std::{collections::BTreeMap, time::Duration};

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, value::RawValue};
use auth::EntityId;
use base::{EventId, Time, testing::CountingRandom};
use storage::Sender;
use webhooks::events::{Event, NewEvent, event::MAX_BYTES, subject::{self, SubjectMembers}};

/// The deployment's retention.
const LONGEST: Duration = Duration::from_secs(90 * 24 * 60 * 60);

fuzz_target!(|body: &[u8]| {
    let Some(event) = event_of(body) else { return };
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let id = event.id.as_str();

    // The event's data is the request's data, byte for byte.
    let sent: BTreeMap<String, &RawValue> = serde_json::from_slice(body).expect("an accepted request is a JSON object");
    let data = sent["data"].get();
    assert!(event.body.len() <= MAX_BYTES);
    assert!(event.body.ends_with(&format!("\"data\":{data}}}")), "the data differs from the request's: {}", event.body);
    let carried: BTreeMap<String, &RawValue> = serde_json::from_str(&event.body).expect("an event is a JSON object");
    let names: Vec<&str> = carried.keys().map(String::as_str).collect();
    let all = ["data", "id", "managingEntityIdentifier", "subject", "timestamp", "type"];
    assert!(names.into_iter().eq(all.into_iter().filter(|name| *name != "subject" || sent.contains_key("subject"))));
    assert!(event.subject.as_deref().is_none_or(subject::is_subject));
    assert_eq!(carried["data"].get(), data);
    assert_eq!(carried["id"].get(), format!("\"{id}\""));
    assert_eq!(carried["timestamp"].get(), "\"2026-11-20T09:45:00.123Z\"");

    // A parser may refuse large numbers; if it does not, both strings have the same meaning.
    if let Ok(sent) = serde_json::from_slice::<Value>(body) {
        let carried: Value = serde_json::from_str(&event.body).expect("nothing that was not there before");
        assert_eq!(carried["type"], sent["type"]);
        assert_eq!(carried.get("subject"), sent.get("subject"));
        assert_eq!(carried["data"], sent["data"]);
    }

    // Checked for some inputs only, since it is slow: the limit applies exactly to the whole event.
    if body.len() % 64 == 0 {
        let padded = |length: usize| {
            let padding = "x".repeat(length);
            event_of(format!(r#"{{"type":"booking.created","data":{{"a":"{padding}","b":{data}}}}}"#).as_bytes())
        };
        if let Some(event) = padded(0) {
            let room = MAX_BYTES - event.body.len();
            assert_eq!(padded(room).map(|event| event.body.len()), Some(MAX_BYTES));
            assert!(padded(room + 1).is_none());
        }
    }
});

fn event_of(body: &[u8]) -> Option<Event> {
    let now = Time::from_millis(1_795_167_900_123);
    let id = EventId::new(now, &CountingRandom::default());
    let entity = EntityId::parse("demo-hotel").expect("an entity");
    let sender = Sender { entity: "demo-hotel", client: "app", path: "/webhook/event" };
    NewEvent::read(body, Ok(None), sender, LONGEST).ok()?.event(id, now, entity, &SubjectMembers::default()).ok()
}
