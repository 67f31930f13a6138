//! The tables of `make bench`.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    deliveries::{Requests, Run},
    emulators, function, geo_ip, history,
    times::Times,
    tokens::{Alone, Load, Piece},
    usage::{ROWS, TOKEN_ROWS, Usage},
};

/// Figures of the open-source Svix server 1.100.0 with PostgreSQL 15 and Redis 7, in the same load on two cores of such
/// a machine. Measured elsewhere and at another time: they say how large things are.
struct Anchor {
    publishes: [&'static str; 2],
    deliveries: [&'static str; 2],
    acknowledgement: [&'static str; 2],
    arrival: [&'static str; 2],
    calm_arrival: [&'static str; 2],
}

const ANCHOR: Anchor = Anchor {
    publishes: ["1157", "945"],
    deliveries: ["1157", "1889"],
    acknowledgement: ["27 / 42 / 48", "33 / 54 / 63"],
    arrival: ["38 / 55 / 63", "46 / 73 / 85"],
    calm_arrival: ["2.7–3.6 / 3.4–4.5 / 6.4–7.9", "2.7 / 3.8 / 5.6"],
};
const ANCHOR_COMPUTING: &str = "Svix, measured elsewhere, CPU per delivery with 1 and 2 endpoints: server 0.72 and 0.45 ms, \
     database 0.81 and 0.50 ms, queue 0.09 and 0.05 ms; resident: server 48 MB, queue 8 MB, database 200–350 MB; idle: 7–9 ms/s";

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The head of the first table.
pub fn functions_head(starts: usize, requests: usize) {
    println!("\n{starts} cold starts and {requests} warm requests each; medians (and 95th percentiles)\n");
    println!("| function | start to first response | × hello | warm request | binary | zip | resident |");
    println!("|---|---|---|---|---|---|---|");
}

/// A row of it.
pub fn function(name: &str, measured: &function::Measured, baseline: Duration) {
    let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "| {name} | {:.1} ({:.1}) ms | {:.2} | {:.2} ({:.2}) ms | {:.1} MiB | {:.1} MiB | {:.1} MiB |",
        millis(measured.start.median),
        millis(measured.start.high),
        millis(measured.start.median) / millis(baseline),
        millis(measured.warm.median),
        millis(measured.warm.high),
        mebi(measured.binary),
        mebi(measured.zip),
        mebi(measured.resident),
    );
}

/// An update of a geo-IP database.
pub fn update(measured: &geo_ip::Measured) {
    let mega = |bytes: u64| bytes as f64 / 1e6;
    println!("\n| geo-IP update | first | CPU | peak memory | beyond the database | unchanged | lookup |");
    println!("|---|---|---|---|---|---|---|");
    println!(
        "| {:.0} MB | {:.2} s | {:.2} s | {:.0} MB | {:.0} MB | {:.0} ms | {:.2} µs |",
        mega(measured.size),
        measured.time.as_secs_f64(),
        measured.computing.as_secs_f64(),
        mega(measured.peak),
        mega(measured.peak.saturating_sub(measured.size)),
        millis(measured.unchanged),
        measured.lookup.as_secs_f64() * 1e6,
    );
}

/// What a token costs.
pub fn tokens(pieces: &[Piece], alone: &Alone) {
    println!("\n| tokens | CPU | a second and core | instructions |");
    println!("|---|---|---|---|");
    let row = |name: &str, time: Duration, instructions: &str| {
        println!("| {name} | {:.1} µs | {:.0} | {instructions} |", time.as_secs_f64() * 1e6, 1.0 / time.as_secs_f64());
    };
    for piece in pieces {
        let instructions = piece.instructions.map_or_else(|| "–".to_owned(), |count| format!("{count:.0}"));
        row(piece.name, piece.time, &instructions);
    }
    row("the function `token`, alone: a token", alone.time, "–");
    println!(
        "\nIssued: the form read, the client authenticated by its secret, the scopes decided, the token signed, the answer \
         written. Validated: the header read, the key looked up, signature and claims checked, the revocations asked. Both \
         in one thread with application, keys and revocations in memory: without gate, audit line, Lambda and AWS's SDK. \
         The function alone has all of that, over HTTP to a runtime API and a table that answer from memory. It gets one event \
         at a time ({:.2} ms each), so that no two share a read of the table, as they do under load.",
        millis(alone.waiting)
    );
    if pieces.iter().any(|piece| piece.instructions.is_none()) {
        println!("No instructions were counted: valgrind is not installed.");
    } else {
        println!(
            "Instructions are those of the processor that valgrind plays, which lacks some extensions of this one."
        );
    }
}

/// How many tokens there are in a second.
pub fn token_load(load: &Load, clients: usize) {
    println!("\n| tokens through the local gateway, {clients} clients | |");
    println!("|---|---|");
    println!("| tokens/s | {:.0} |", load.tokens as f64 / load.time.as_secs_f64());
    println!("| p50 / p95 / p99 ms | {} |", load.waiting.in_millis());
    for name in TOKEN_ROWS {
        println!("| CPU per token: {name} | {:.3} ms |", millis(load.usage.row(name)) / load.tokens as f64);
    }
}

/// What the stand-ins can do alone.
pub fn emulators(measured: &emulators::Measured) {
    println!("\n| emulators alone, 32 clients | a second |");
    println!("|---|---|");
    println!("| table: items of 500 bytes put one by one | {:.0} |", measured.puts);
    println!("| table: the same, 25 statements in a call | {:.0} |", measured.statements);
    println!("| table: consistent reads one by one | {:.0} |", measured.gets);
    println!("| queue: messages sent, received and deleted one by one | {:.0} |", measured.messages);
    println!("| queue: the same, ten in a call | {:.0} |", measured.batched_messages);
}

/// What looking for something rare takes, by how much there is of everything.
pub fn history(measured: &[history::Measured]) {
    println!(
        "\n| deliveries of the entity | page of what has failed: none | recovery of nothing | webhook made and removed |"
    );
    println!("|---|---|---|---|");
    for measured in measured {
        let times = [measured.page, measured.recovery, measured.removal].map(Times::in_millis);
        println!("| {} | {} ms |", measured.deliveries, times.join(" ms | "));
    }
    println!("\nTimes are p50 / p95 / p99.");
}

/// How many and how soon.
pub fn speed(calm: &[Run], full: &[Run]) {
    let rate = |count: usize, time: Duration| format!("{:.0}", count as f64 / time.as_secs_f64());
    println!("\n| deliveries, 500 bytes | 1 endpoint | 2 endpoints | Svix, measured elsewhere: 1 | 2 |");
    println!("|---|---|---|---|---|");
    let row = |name: &str, values: Vec<String>, anchor: [&str; 2]| {
        println!("| {name} | {} | {} | {} |", values.join(" | "), anchor[0], anchor[1]);
    };
    let each = |runs: &[Run], value: &dyn Fn(&Run) -> String| runs.iter().map(value).collect();
    row("publishes/s acknowledged", each(full, &|run| rate(run.published, run.publishing)), ANCHOR.publishes);
    row("deliveries/s", each(full, &|run| rate(run.deliveries(), run.delivering)), ANCHOR.deliveries);
    let acknowledgement = each(full, &|run| run.acknowledgement.in_millis());
    row("acknowledgement, p50 / p95 / p99 ms", acknowledgement, ANCHOR.acknowledgement);
    row("publish to arrival, full load, ms", each(full, &|run| run.arrival.in_millis()), ANCHOR.arrival);
    row("publish to arrival, 50/s, ms", each(calm, &|run| run.arrival.in_millis()), ANCHOR.calm_arrival);
    let acknowledgement = each(calm, &|run| run.acknowledgement.in_millis());
    row("acknowledgement, 50/s, ms", acknowledgement, ["–", "–"]);
    row("events", each(full, &|run| run.published.to_string()), ["20000", "20000"]);
    row("received more than once", each(full, &|run| run.duplicates.to_string()), ["–", "–"]);
}

/// At whose expense.
pub fn usage(full: &[Run], idle: &Usage, idle_for: Duration, resident: &BTreeMap<&'static str, u64>) {
    println!("\n| CPU per delivery, full load | 1 endpoint | 2 endpoints | idle | resident |");
    println!("|---|---|---|---|---|");
    let row = |name: &str, value: &dyn Fn(&Usage) -> Duration, resident: Option<u64>| {
        let per_delivery = |run: &Run| format!("{:.2} ms", millis(value(&run.usage)) / run.deliveries() as f64);
        let runs: Vec<String> = full.iter().map(per_delivery).collect();
        let idle = millis(value(idle)) / idle_for.as_secs_f64();
        let resident = resident.map_or_else(|| "–".to_owned(), |bytes| format!("{:.0} MB", bytes as f64 / 1e6));
        println!("| {name} | {} | {idle:.1} ms/s | {resident} |", runs.join(" | "));
    };
    for name in ROWS {
        row(name, &|usage| usage.row(name), resident.get(name).copied());
    }
    row("**ours: publish-event and dispatch-deliveries**", &Usage::ours, None);
    row("everything but the bench", &Usage::all, None);
    println!("\n{ANCHOR_COMPUTING}");
}

/// The requests to the table.
pub fn requests(counted: &[Requests]) {
    println!("\n| table, per delivery | requests | parts of requests | write units | read units |");
    println!("|---|---|---|---|---|");
    for requests in counted {
        let per_delivery = |value: f64| value / requests.deliveries as f64;
        let row = |name: &str, count: [f64; 4]| {
            let [asked, parts, writes, reads] = count.map(per_delivery);
            println!("| {name} | {asked:.2} | {parts:.2} | {writes:.2} | {reads:.2} |");
        };
        let mut sum = [0.0; 4];
        for count in requests.counted.values() {
            for (sum, value) in sum.iter_mut().zip(numbers(count)) {
                *sum += value;
            }
        }
        row(&format!("**{}**", requests.title), sum);
        for (operation, count) in &requests.counted {
            row(&format!("– {operation}"), numbers(count));
        }
    }
}

fn numbers(count: &crate::counting_proxy::Count) -> [f64; 4] {
    [count.requests as f64, count.parts as f64, count.writes, count.reads]
}
