//! Whether the panel stays quick the more deliveries there are behind it, by the browser's own clock: measured, for a machine
//! that does nothing else meanwhile. It needs chromium, and runs only when it is asked for: `--ignored panel_measured`.

use std::sync::Arc;

use base::Time;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::{
    browser_panel_speed::MEASURE,
    harness::{Behaviour, Browser, Entity, Receiver, Suite, Table, tests, time},
};

tests![on demand: the_list_is_as_quick_with_two_hundred_thousand_deliveries_behind_it_as_with_ten_thousand];

const FEW: i64 = 10_000;
const MANY: i64 = 200_000;
/// Of so many deliveries, one has failed.
const ONE_FAILED_OF: i64 = 100;
/// How often each step is done. The median counts.
const TURNS: usize = 9;
/// How much longer a step may take with the many behind it, in milliseconds: what is drawn comes a frame sooner or later, and
/// the machine is not quite still.
const LONGER: f64 = 100.0;

/// What a person does at the list, and the list is another: a script that does it.
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

/// Milliseconds until a step has another list drawn.
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

/// So many deliveries more, older than the one that there is and like it; every hundredth has failed.
async fn fill(table: &Table, delivery: &str, count: i64) {
    let model = table.item(&format!("DLV#{delivery}"), "HEAD").await.expect("the delivery is there");
    let created = model["createdDate"]["S"].as_str().expect("a time is a text");
    let (text, made) = (model.to_string(), time(&json!(created)).as_millisecond());
    let copy = |number: i64| {
        let id = format!("dlv_{count:08}{number:018}");
        let date = Time::from_millis(made - number).to_string();
        let mut copy: Value =
            serde_json::from_str(&text.replace(delivery, &id).replace(created, &date)).expect("it is what it was");
        if number % ONE_FAILED_OF == 0 {
            copy["status"]["S"] = "failed".into();
        }
        copy
    };
    let numbers: Vec<i64> = (1..=count).collect();
    let parts = stream::iter(numbers.chunks(1_000));
    parts.map(|part| table.put_all(part.iter().map(|number| copy(*number)))).buffer_unordered(4).collect::<()>().await;
}

/// What the browser measures for an entity with so many deliveries, in milliseconds: what, and each time.
async fn measured(suite: &Suite, entity: &Entity, receiver: &Receiver, count: i64) -> Vec<(&'static str, Vec<f64>)> {
    entity.hook(&receiver.on("/hook", [Behaviour::status(204)])).await;
    let delivery = entity.publish(json!({})).await;
    entity.until_status(&delivery, &["delivered"]).await;
    fill(&suite.table(), &delivery, count).await;

    let browser = Browser::open().await;
    browser.go(&entity.panel_link(json!({})).await).await;
    browser.until_says("booking.created").await;
    let mut all: Vec<(&str, Vec<f64>)> =
        ["first load: something is seen", "it takes clicks"].map(|what| (what, vec![])).into();
    all.extend(STEPS.map(|(what, _)| (what, vec![])));
    for _ in 0..TURNS {
        browser.go("about:blank").await;
        browser.go(&format!("{}/panel/deliveries", suite.api.base_url())).await;
        browser.until_says("booking.created").await;
        let load = browser.run_to_end(MEASURE).await;
        let mut times =
            ["firstPaint", "interactive"].map(|name| load[name].as_f64().expect("a time is a number")).to_vec();
        for (_, step) in STEPS {
            times.push(took(&browser, step).await);
        }
        all.iter_mut().zip(times).for_each(|((_, list), time)| list.push(time));
    }
    browser.close().await;
    all
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

async fn the_list_is_as_quick_with_two_hundred_thousand_deliveries_behind_it_as_with_ten_thousand(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let (small, large) =
        (Entity::new(&suite.api, "few".to_owned()).await, Entity::new(&suite.api, "many-of-them".to_owned()).await);
    let few = measured(&suite, &small, &receiver, FEW).await;
    let many = measured(&suite, &large, &receiver, MANY).await;
    println!("medians of {TURNS}, in ms | behind {FEW} | behind {MANY}");
    let medians = few.into_iter().zip(many).map(|((what, few), (_, many))| (what, median(few), median(many)));
    let medians: Vec<_> = medians.inspect(|(what, few, many)| println!("{what} | {few:.0} | {many:.0}")).collect();
    for (what, few, many) in medians {
        assert!(many < few + LONGER, "{what} takes {many:.0} ms, and {few:.0} with fewer behind it");
    }
}
