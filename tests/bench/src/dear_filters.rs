//! Publishing to webhooks with the most expensive filters that the limits allow.

use std::error::Error;

use serde_json::{Value, json};

use crate::{
    bundle::Bundle,
    growth::{Growth, REQUESTS, timed},
};

/// The maximum number of webhooks per entity.
const WEBHOOKS: usize = 200;
/// The maximum number of values in a filter.
const ALTERNATIVES: usize = 100;
/// The number of elements that every alternative is compared with. Together, the filters use nearly all the steps
/// allowed for an event; with more elements, they would let the event pass.
const COMPARED: usize = 240;
/// The number of elements that are only parsed. These elements increase the event to 252 KB.
const PARSED: usize = 125_000;

/// Measures a small event and the largest one, without webhooks and with expensive filters. No filter lets the events
/// pass, so the difference is the time spent reading the webhooks and, for the large event, applying the filters.
pub async fn measure(bundle: &Bundle) -> Result<Vec<Growth>, Box<dyn Error>> {
    let small = json!({ "a": [] });
    let large = json!({ "a": vec!["1"; COMPARED], "rest": vec![0; PARSED] });
    let mut all = Vec::new();
    for (name, data) in [("small", small), ("large", large)] {
        let mut growth = Growth::new(format!("a {name} event acknowledged"), "webhooks with the dearest filters", 1);
        let event = json!({ "type": "booking.created", "data": data });
        for webhooks in [0, WEBHOOKS] {
            let entity = &format!("growth-filters-{webhooks}-{name}");
            for number in 0..webhooks {
                bundle.post(entity, "webhook", &webhook(number)).await?;
            }
            let publish = async || bundle.post(entity, "webhook/event", &event).await.map(drop);
            publish().await?;
            growth.times.push((webhooks, timed(REQUESTS, publish).await?));
        }
        all.push(growth);
    }
    Ok(all)
}

/// A webhook whose filter differs from those of all others.
fn webhook(number: usize) -> Value {
    let limit = |at: usize| -i64::try_from(number * ALTERNATIVES + at).unwrap_or(i64::MAX);
    let alternatives: Vec<_> = (0..ALTERNATIVES).map(|at| json!({ "a": [{ "numeric": ["<", limit(at)] }] })).collect();
    json!({
        "name": "bench", "eventUrl": "http://127.0.0.1:1/", "eventList": ["booking.created"],
        "eventFilter": { "$or": alternatives },
    })
}
