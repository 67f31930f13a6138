//! The tables that `make bench` prints.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    deliveries::{Measured, Requests, Staged},
    feed,
    fresh_events::QuietList,
    geo_ip,
    growth::Growth,
    lambda::{Figures, ROUND_TRIPS, USUAL},
    prices::Price,
    run::{ENDPOINTS, Run, SIZE},
    times::Times,
    usage::{OURS, ROWS, Usage},
};

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Prints the figures for functions as Lambda runs them, and the accuracy of the emulated round trips.
pub fn lambda(figures: &[Figures], lateness: Duration) {
    let [first, usual, last] = ROUND_TRIPS.map(|time| format!("{:.0}", millis(time)));
    println!(
        "\n| each alone, one event after another, TLS | CPU | {first} / {usual} / {last} ms to AWS: in all | round trips in a row \
         | calls: table, queue | write, read units | connections: first, then to AWS, to endpoints | memory, at most | logged |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for figures in figures {
        let wall = figures.wall.map(|time| format!("{:.1}", millis(time))).join(" / ");
        let [table, queue] = figures.calls;
        let [aws, endpoints] = figures.connections;
        println!(
            "| {} | {:.2} ms | {wall} ms | {:.1} | {table:.1}, {queue:.1} | {:.1}, {:.1} | {:.0}, {aws:.1}, {endpoints:.1} \
             | {:.1} MB | {:.0} B |",
            figures.title,
            millis(figures.computing),
            figures.round_trips(),
            figures.writes,
            figures.reads,
            figures.connections_at_first,
            figures.peak as f64 / 1e6,
            figures.logged,
        );
    }
    println!("\nCalls of the table:\n");
    for figures in figures.iter().filter(|figures| !figures.operations.is_empty()) {
        let operations = figures.operations.iter().map(|(name, calls)| format!("{calls:.2} {name}"));
        println!("- {}: {}", figures.title, operations.collect::<Vec<_>>().join(", "));
    }
    println!(
        "\n| start to first answer, {usual} ms to AWS, TLS | median (95th percentile) | × hello world | program | `zip -9` |"
    );
    println!("|---|---|---|---|---|");
    for (index, of) in figures.iter().enumerate() {
        // List each program only once.
        if figures[..index].iter().any(|earlier| earlier.size == of.size) {
            continue;
        }
        let (program, zip) = of.size;
        println!(
            "| {} | {:.1} ({:.1}) ms | {:.1} | {:.2} MB | {:.2} MB |",
            of.title,
            millis(of.start.median),
            millis(of.start.high),
            of.start.median.as_secs_f64() / figures[0].start.median.as_secs_f64(),
            program as f64 / 1e6,
            zip as f64 / 1e6,
        );
    }
    println!(
        "\nA round trip took {:.3} ms longer than stated, on average; the table behind it is the embedded one, on the same \
         machine. The endpoint answers at once. Round trips in a row: the factor by which an invocation grows with the round \
         trip to AWS.",
        millis(lateness),
    );
}

/// Prints the cost of a million deliveries.
pub fn prices(prices: &[Price], batch: usize) {
    println!(
        "\n| a million deliveries of 1 KB, one webhook, delivered at once: list price | each alone | {batch} at once |"
    );
    println!("|---|---|---|");
    for Price { service, alone, shared } in prices {
        println!("| {service} | ${alone:.2} | ${shared:.2} |");
    }
    let sum = |of: fn(&Price) -> f64| prices.iter().map(of).sum::<f64>();
    println!("| **in all** | **${:.2}** | **${:.2}** |", sum(|price| price.alone), sum(|price| price.shared));
    println!("\nLambda's time is that with {:.0} ms to AWS.", millis(ROUND_TRIPS[USUAL]));
}

/// Prints the figures for updating a geo-IP database.
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

/// Prints how times grow with the amount of data.
pub fn growth(all: &[Growth]) {
    println!("\n| p50 (p95), by how many there are | of | | | | with each more |");
    println!("|---|---|---|---|---|---|");
    for growth in all {
        let cell = |(count, times): &(usize, Times)| {
            format!("{count}: {:.1} ({:.1}) ms", millis(times.median), millis(times.high))
        };
        let mut cells: Vec<String> = growth.times.iter().map(cell).collect();
        cells.resize(3, String::new());
        let step = if growth.step == 1 { String::new() } else { format!(" per {}", growth.step) };
        let slope = growth.slope() * 1e3;
        println!("| {} | {} | {} | {slope:+.2} ms{step} |", growth.what, growth.of, cells.join(" | "));
    }
    for growth in all.iter().filter(|growth| !growth.reads.is_empty()) {
        let read = growth.times.iter().zip(&growth.reads);
        let read = read.map(|((count, _), (calls, units))| format!("{count}: {calls} calls, {units} read units"));
        println!("\n{}: {}", growth.what, read.collect::<Vec<_>>().join("; "));
    }
}

/// Prints the times for a quiet webhook's lists behind fresh events.
pub fn quiet_lists(lists: &[QuietList]) {
    println!(
        "\n| list of a quiet webhook | fresh events | pages to the first delivery | read units | p50 / p95 / p99 ms |"
    );
    println!("|---|---|---|---|---|");
    for QuietList { status, events, pages, reads, times } in lists {
        println!("| {status} | {events} | {pages} | {reads} | {} |", times.in_millis());
    }
}

/// Prints throughput and latency.
pub fn speed(calm: &[Measured], full: &[Measured]) {
    let rate = |count: usize, time: Duration| format!("{:.0}", count as f64 / time.as_secs_f64());
    println!("\n| deliveries, {SIZE} bytes | {} |", endpoints().join(" | "));
    println!("|---|{}", "---|".repeat(ENDPOINTS.len()));
    let row = |name: &str, values: Vec<String>| println!("| {name} | {} |", values.join(" | "));
    let each =
        |runs: &[Measured], value: &dyn Fn(&Run) -> String| runs.iter().map(|measured| value(&measured.run)).collect();
    row("publishes/s acknowledged", each(full, &|run| rate(run.published, run.publishing)));
    row("deliveries/s", each(full, &|run| rate(run.deliveries(), run.delivering)));
    let arrived = |run: &Run| {
        let [half, most] = run.mostly;
        [half, most, run.delivering].map(|time| format!("{:.1}", time.as_secs_f64())).join(" / ")
    };
    row("50 % / 95 % / all arrived after, full load, s", each(full, &arrived));
    let acknowledgement = each(full, &|run| run.acknowledgement.in_millis());
    row("acknowledgement, p50 / p95 / p99 ms", acknowledgement);
    row("publish to arrival, full load, ms", each(full, &|run| run.arrival.in_millis()));
    row("publish to arrival, 50/s, ms", each(calm, &|run| run.arrival.in_millis()));
    let acknowledgement = each(calm, &|run| run.acknowledgement.in_millis());
    row("acknowledgement, 50/s, ms", acknowledgement);
    row("events", each(full, &|run| run.published.to_string()));
    row("received more than once", each(full, &|run| run.duplicates.to_string()));
}

/// Prints throughput and latency of feeds.
pub fn feed(measured: &feed::Measured) {
    let rate = |count: usize, time: Duration| format!("{:.0}", count as f64 / time.as_secs_f64());
    let waiting = feed::WAITING;
    let [first, second] = feed::READERS;
    println!("\n| feeds, {SIZE} bytes, p50 / p95 / p99 | push | pull, {first} reader | pull, {second} readers |");
    println!("|---|---|---|---|");
    let row = |name: &str, push: &dyn Fn(&Run) -> String, pull: &dyn Fn(&feed::FeedRun) -> String| {
        let pull: Vec<String> = measured.pull.iter().map(pull).collect();
        println!("| {name} | {} | {} |", push(&measured.push), pull.join(" | "));
    };
    let both = |name: &str, value: &dyn Fn(&Run) -> String| row(name, value, &|pull| value(&pull.run));
    let none = |_: &Run| "–".to_owned();
    both("publishes/s acknowledged", &|run| rate(run.published, run.publishing));
    both("deliveries/s", &|run| rate(run.deliveries(), run.delivering));
    both("acknowledgement to arrival, full load, ms", &|run| run.after_acknowledgement.in_millis());
    both("events", &|run| run.published.to_string());
    row("received more than once", &|run| run.duplicates.to_string(), &|pull| pull.reading.duplicates().to_string());
    row("deliveries per read", &none, &|pull| format!("{:.1}", pull.reading.deliveries_per_read()));
    row("reads refused with 429", &none, &|pull| pull.reading.refused.to_string());
    let drained = |name: &str, value: &dyn Fn(&feed::Draining) -> String| {
        let values: Vec<String> = measured.draining.iter().map(value).collect();
        println!("| {waiting} waiting: {name} | – | {} |", values.join(" | "));
    };
    drained("draining, s", &|run| format!("{:.1}", run.time.as_secs_f64()));
    drained("deliveries/s", &|run| rate(run.reading.confirmed, run.time));
    drained("deliveries per read", &|run| format!("{:.1}", run.reading.deliveries_per_read()));
    drained("reads refused with 429", &|run| run.reading.refused.to_string());

    println!("\n| acknowledgement to arrival, 50/s, p50 / p95 / p99 ms | push | pull, 1 reader that waits |");
    println!("|---|---|---|");
    for feed::CalmRuns { waiting, push, pull } in &measured.calm {
        let [push, pull] = [push, pull].map(|run| run.after_acknowledgement.in_millis());
        println!("| {waiting} in the feed when it began | {push} | {pull} |");
    }

    println!("\n| a read of limit 1 | p50 / p95 / p99 ms |");
    println!("|---|---|");
    for (waiting, times) in &measured.single_reads {
        println!("| {waiting} in the feed | {} |", times.in_millis());
    }
}

/// The column headings, one for each number of endpoints.
fn endpoints() -> [String; ENDPOINTS.len()] {
    ENDPOINTS.map(|endpoints| format!("{endpoints} endpoint{}", if endpoints == 1 { "" } else { "s" }))
}

/// Prints the processes' processor time and memory.
pub fn usage(full: &[Measured], idle: &Usage, idle_for: Duration, resident: &BTreeMap<&'static str, u64>) {
    println!("\n| CPU per delivery, full load | {} | idle | resident |", endpoints().join(" | "));
    println!("|---|{}---|---|", "---|".repeat(ENDPOINTS.len()));
    let row = |name: &str, value: &dyn Fn(&Usage) -> Duration, resident: Option<u64>| {
        let per_delivery = |of: &Measured| format!("{:.2} ms", millis(value(&of.usage)) / of.run.deliveries() as f64);
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
}

/// Prints a delivery's processor time by stage, and how often each stage ran.
pub fn stages(staged: &[Staged<'_>]) {
    let loads = ["50/s", "full load"].into_iter().flat_map(|load| endpoints().map(|of| format!("{of}, {load}")));
    println!("\n| CPU per delivery in µs, and how often | {} |", loads.collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---|".repeat(staged.len()));
    let micros = |time: Duration, deliveries: usize| time.as_secs_f64() * 1e6 / deliveries as f64;
    let row = |name: &str, value: &dyn Fn(&Staged<'_>) -> String| {
        println!("| {name} | {} |", staged.iter().map(value).collect::<Vec<_>>().join(" | "));
    };
    for function in OURS {
        let whole = |of: &Staged<'_>| micros(of.whole.usage.row(function), of.whole.run.deliveries());
        row(&format!("**{function}**"), &|of| format!("{:.0}", whole(of)));
        let names: BTreeSet<&str> = staged.iter().flat_map(|of| of.stages.names(function)).collect();
        for name in names {
            row(&format!("– {name}"), &|of| {
                let stage = of.stages.get(function, name);
                let often = stage.count as f64 / of.deliveries as f64;
                format!("{:.0}, {often:.2}", micros(stage.computing, of.deliveries))
            });
        }
        let rest = |of: &Staged<'_>| whole(of) - micros(of.stages.sum(function), of.deliveries);
        row("– the rest: invocation, JSON, decisions, log", &|of| format!("{:.0}", rest(of)));
    }
}

/// Prints the requests to the table.
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
