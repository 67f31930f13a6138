//! What a long list of revocations costs a function that starts, measured: for a machine that does nothing else meanwhile.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use serde_json::json;

use crate::harness::{Entity, LONG, Settings, Suite, Table, memory_kilobytes, now, tests, until, until_gone};

tests![on demand: a_function_starts_with_fifty_thousand_revocations_in_little_time_and_memory];

const LISTED: i64 = 50_000;

/// So many revocations, made evenly over the last day; of tokens that lived for an hour, so that nearly all have ended, or of
/// applications, all of which still count.
async fn list(table: &Table, of_tokens: bool) {
    let (now, name): (i64, _) = (now() * 1000, if of_tokens { "token" } else { "client" });
    let life = if of_tokens { 3_600_000 } else { 86_700_000 };
    let writes = stream::iter(0..LISTED).map(async |number| {
        let made = now - 86_400_000 * number / LISTED;
        let (id, until) = (format!("app{number:022}"), made + life);
        let pk = if of_tokens { "REVOKED#HOUR" } else { "REVOKED#DAY" };
        let item = json!({
            "pk": { "S": pk }, "sk": { "S": format!("{made:013}#{name}#{id}") }, "until": { "N": until.to_string() },
            // The table removes nothing at once that has ended; on AWS within two days.
            "expiresAt": { "N": (now / 1000 + 90_000).to_string() },
        });
        table.put(item).await;
    });
    writes.buffer_unordered(32).collect::<Vec<()>>().await;
}

async fn a_function_starts_with_fifty_thousand_revocations_in_little_time_and_memory(suite: Arc<Suite>) {
    for (what, of_tokens) in [("tokens", true), ("applications", false)] {
        let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
        let entity = Entity::new(&api, "revoked".to_owned()).await;
        let start = async || {
            let before = bundle.process("list-events").await;
            before.kill();
            until_gone(&[before]).await;
            let begun = Instant::now();
            // Its successor is there only after the run has noticed the end, and hands no request to the dead process.
            bundle.process("list-events").await;
            entity.get("/webhook/event/list").expect(200).await;
            (begun.elapsed(), memory_kilobytes(&bundle.process("list-events").await))
        };
        let empty = start().await;
        let table = Table::of(&api.env);
        list(&table, of_tokens).await;
        // That of the empty list.
        table.remove("REVOKED#SNAPSHOT", "LAST").await;
        let full = start().await;
        // The sweep that runs has read the list before, and does not again for some minutes.
        bundle.process("sweep-deliveries").await.kill();
        until("a snapshot", LONG, async || table.item("REVOKED#SNAPSHOT", "LAST").await).await;
        let snapshot = start().await;
        println!(
            "{LISTED} {what}: first request and kilobytes {full:?}, with a snapshot {snapshot:?}, with an empty list {empty:?}"
        );
        assert!(full.0 < Duration::from_secs(20), "{:?}", full.0);
        bundle.cut_power().await;
    }
}
