//! The panel's speed as the number of deliveries grows, measured by the browser's clock on an otherwise idle machine.
//! The measurement needs Chromium, and runs on demand only: `--ignored panel_measured`.

use std::sync::Arc;

use base::Time;
use contract_test::contract_test;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::{
    browser_panel_speed::MEASURE,
    harness::{Behaviour, Browser, Entity, Hook, Receiver, Suite, Table, stored, time},
};

const FEW: i64 = 10_000;
const MANY: i64 = 200_000;
/// One in this many deliveries has failed.
const ONE_FAILED_OF: i64 = 100;
/// The number of visits to the panel; the median counts.
const TURNS: usize = 9;
/// How much longer a step may take with many deliveries, in milliseconds: drawing time varies by a frame, and the
/// machine is never entirely idle.
const LONGER: f64 = 100.0;

/// The steps that a person takes to change the list, and the scripts that perform them.
const STEPS: [(&str, &str); 5] = [
    (
        "next page",
        "[...document.querySelectorAll('.turns a')].find((link) => link.textContent.trim() === 'Older').click()",
    ),
    ("back", "history.back()"),
    ("filter `failed`: one in a hundred", "chip('Failed').click()"),
    ("back from it", "history.back()"),
    ("filter `cancelled`: none", "chip('Cancelled').click()"),
];

/// The number of milliseconds until a step has drawn the new list.
async fn took(browser: &Browser, step: &str) -> f64 {
    let script = format!(
        "const chip = (word) => [...document.querySelectorAll('.chips button')].find((chip) => chip.textContent.trim() === word);
         const first = () => document.querySelector('.list tbody a')?.href;
         const [before, began] = [first(), performance.now()];
         {step};
         while (first() === before) await new Promise(requestAnimationFrame);
         return performance.now() - began;"
    );
    let took = browser.run_to_end(&script).await;
    took.as_f64().unwrap_or_else(|| panic!("{step}: {took}"))
}

/// Adds `count` older copies of an event and its delivery; every hundredth delivery has failed.
async fn fill(table: &Table, entity: &Entity, hook: &Hook, delivery: &str, count: i64) {
    let event = stored::event_of(delivery);
    let head = table.head(delivery).await.expect("the delivery is there");
    let kept = table.event(&event).await.expect("the event is there");
    let created = head["createdDate"]["S"].as_str().expect("a time is a text");
    let made = time(&json!(created)).as_millisecond();
    let [head, kept] = [&head, &kept].map(Value::to_string);
    let copies = |number: i64| {
        let id = stored::event_id(made - number, usize::try_from(number).expect("from 1"));
        let date = Time::from_millis(made - number).to_string();
        let copy = |item: &str| -> Value {
            let item = item.replace(delivery, &stored::delivery_id(&id, 0)).replace(&event, &id);
            serde_json::from_str(&item.replace(created, &date)).expect("still the item as JSON")
        };
        let [mut head, mut kept] = [&head, &kept].map(|item| copy(item));
        kept["pk"]["S"] = stored::event_key(&id).0.into();
        if number % ONE_FAILED_OF == 0 {
            head["status"]["S"] = "failed".into();
            head["webhookKey"]["S"] = format!("RECOVERABLE#{}", hook.id).into();
            head["entityKey"] = json!({ "S": format!("UNDELIVERED#{}", entity.id) });
        }
        [head, kept]
    };
    let numbers: Vec<i64> = (1..=count).collect();
    let parts = stream::iter(numbers.chunks(1_000));
    let parts = parts.map(|part| table.put_all(part.iter().flat_map(|number| copies(*number))));
    parts.buffer_unordered(4).collect::<()>().await;
}

async fn with_deliveries(suite: &Suite, receiver: &Receiver, count: i64) -> Entity {
    let entity = Entity::new(&suite.api, format!("with-{count}")).await;
    let hook = entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["delivered"]).await;
    fill(&suite.table(), &entity, &hook, &delivery, count).await;
    entity
}

/// The times in one person's browser, in milliseconds: opening the panel through a link, opening it again, and each
/// step.
async fn visit(suite: &Suite, entity: &Entity) -> Vec<(&'static str, f64)> {
    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({})).await).await;
    let mut times = loaded(&browser, ["opened: visible", "opened: accepts clicks"]).await;
    browser.go("about:blank").await;
    browser.go(&format!("{}/panel/deliveries", suite.api.base_url())).await;
    times.extend(loaded(&browser, ["opened again: visible", "opened again: accepts clicks"]).await);
    for (what, step) in STEPS {
        times.push((what, took(&browser, step).await));
    }
    browser.close().await;
    times
}

/// When the opened list became visible, and when it accepted clicks.
async fn loaded(browser: &Browser, names: [&'static str; 2]) -> Vec<(&'static str, f64)> {
    browser.until_says("booking.created").await;
    let load = browser.run_to_end(MEASURE).await;
    let time = |name: &str| load[name].as_f64().unwrap_or_else(|| panic!("{name} was not measured: {load}"));
    names.into_iter().zip([time("firstPaint"), time("interactive")]).collect()
}

async fn medians(suite: &Suite, entity: &Entity) -> Vec<(&'static str, f64)> {
    let mut all: Vec<(&str, Vec<f64>)> = Vec::new();
    for _ in 0..TURNS {
        let times = visit(suite, entity).await;
        all.resize_with(times.len(), Default::default);
        for ((name, list), (what, time)) in all.iter_mut().zip(times) {
            *name = what;
            list.push(time);
        }
    }
    all.into_iter().map(|(what, times)| (what, median(times))).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[contract_test(on_demand)]
async fn the_list_stays_quick_with_two_hundred_thousand_deliveries(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let small = with_deliveries(&suite, &receiver, FEW).await;
    let large = with_deliveries(&suite, &receiver, MANY).await;
    let few = medians(&suite, &small).await;
    let many = medians(&suite, &large).await;
    println!("medians of {TURNS}, in ms | {FEW} deliveries | {MANY} deliveries");
    for ((what, few), (_, many)) in few.iter().zip(&many) {
        println!("{what} | {few:.0} | {many:.0}");
    }
    for ((what, few), (_, many)) in few.iter().zip(&many) {
        assert!(*many < few + LONGER, "{what} takes {many:.0} ms, and {few:.0} with fewer deliveries");
    }
}
