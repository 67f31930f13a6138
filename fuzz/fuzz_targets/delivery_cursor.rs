//! Cursors of the list of deliveries: a string that a client made up is never accepted, and a sealed one is accepted
//! only if it contains the start of a page. A position alone is read back byte for byte.
#![no_main]

use std::sync::LazyLock;

use base64::{Engine, prelude::*};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use auth::EntityId;
use problem::Query;
use webhooks::deliveries::queries::{cursor::{Cursor, List, NotACursor}, filters::Filters, range::ListPosition};
use storage::KeyRing;
use base::testing::CountingRandom;

const POSITION: &[u8] = b"dlv_01m74zy5eva3kj3s4w04zg1hhc";

static RING: LazyLock<KeyRing> = LazyLock::new(|| {
    let key = BASE64_STANDARD.encode([7; 32]);
    let ring = KeyRing::from_secret(&json!({ "current": "a", "keys": { "a": key } })).expect("a ring");
    // Without this check, an error in `sealed` would go unnoticed.
    assert!(read(&sealed(&ring, POSITION), &ring, &hotel(), &Filters::default()).is_ok());
    ring
});

fn hotel() -> EntityId {
    EntityId::parse("hotel").expect("an entity")
}

/// These bytes, sealed like the position of a real cursor.
fn sealed(ring: &KeyRing, plain: &[u8]) -> String {
    let context = format!("delivery-cursor/hotel/{}", Filters::default());
    BASE64_URL_SAFE_NO_PAD.encode(ring.seal(&CountingRandom::default(), &context, plain))
}

fn read(text: &str, ring: &KeyRing, entity: &EntityId, filters: &Filters) -> Result<ListPosition, NotACursor> {
    let cursor = Cursor::take_last(Query::new([("cursor", text)])).ok().flatten().ok_or(NotACursor)?;
    cursor.open(List::Deliveries, ring, entity, filters).map(|start| start.before)
}

fuzz_target!(|input: (bool, &[u8])| {
    let (forged, bytes) = input;
    if forged {
        let texts = [
            String::from_utf8_lossy(bytes).into_owned(),
            BASE64_URL_SAFE_NO_PAD.encode(bytes),
            BASE64_URL_SAFE_NO_PAD.encode(format!("a.{}", BASE64_STANDARD_NO_PAD.encode(bytes))),
        ];
        for text in texts {
            assert!(read(&text, &RING, &hotel(), &Filters::default()).is_err(), "{text} is accepted");
        }
    } else {
        let cursor = sealed(&RING, bytes);
        let found = read(&cursor, &RING, &hotel(), &Filters::default()).ok();
        // Other strings may be the JSON of a start that postpones events.
        if let Some(position) = std::str::from_utf8(bytes).ok().and_then(ListPosition::parse) {
            assert_eq!(position.as_str().as_bytes(), bytes);
            assert_eq!(found, Some(position));
        }
        let other = EntityId::parse("other").expect("an entity");
        assert!(read(&cursor, &RING, &other, &Filters::default()).is_err());
    }
});
