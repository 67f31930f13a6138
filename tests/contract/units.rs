//! The cost of publishing and delivering: DynamoDB units, and the number of sequential calls. docs/scaling.md has the
//! conclusions.
//!
//! Operations run one at a time here, so that they share no calls; under load, they do, but the units stay the same.

use std::{cell::Cell, fmt::Debug, iter::repeat_n, sync::Arc, time::Duration};

use base::{SystemRandom, random::uuid};
use contract_test::contract_test;
use fakes::booking;
use serde_json::{Value, json};

use crate::delivery_list::hook_for;
use crate::harness::{
    Behaviour, Entity, Hook, Interposed, LONG, Metered, Receiver, Settings, Suite, Table, announced, in_a_row, now,
    stored, until, until_gone,
};
use crate::sweep::until_first_sweep;

/// Three retries, each as early as the contract allows.
const SCHEDULE: &str = "0s,1s,1s,1s";
/// A sweep that finds nothing makes no call that counts here, and a sweep that finds a lost announcement makes the same
/// calls that the announcement would have caused.
const SWEEP_INTERVAL: &str = "30s";
/// How often to measure before a cost is considered too high: on a machine that stalls, functions repeat calls, and
/// concurrent calls run one after the other.
const TRIES: usize = 5;
/// The number of deliveries to each webhook before the measurement, so that functions have started and filled their
/// caches.
const WARM_UP: usize = 3;
/// The minimum duration of a table call while sequential calls are being counted, so that concurrent calls overlap even
/// on a busy machine. Publishing waits two seconds for the queue.
const ROUND_TRIP: Duration = Duration::from_secs(1);
/// An attribute that is named only when an event is inserted.
const OF_AN_EVENT: &str = "'targets': ?";
/// The number of webhooks that a popular event has.
const MANY: usize = 20;
/// The maximum number of webhooks per entity.
const MOST: usize = 200;

/// The cost of an operation, for the publishing and the delivering function.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    writes: f64,
    reads: f64,
    /// The number of sequential calls.
    in_a_row: usize,
}

impl Cost {
    fn of(calls: &[&Metered]) -> Self {
        let sum = |units: fn(&Metered) -> f64| calls.iter().map(|call| units(call)).sum();
        Self {
            writes: sum(|call| call.writes),
            reads: sum(|call| call.reads),
            in_a_row: in_a_row(calls.iter().copied()),
        }
    }

    fn is_at_most(&self, writes: f64, reads: f64) -> bool {
        self.writes <= writes && self.reads <= reads
    }
}

/// Whether a call is of a kind that publish-event makes: it reads webhooks, writes the event (after a large body), and
/// announces first attempts.
fn is_of_publishing(metered: &Metered) -> bool {
    let call = &metered.call;
    match call.operation.as_str() {
        "Query" => call.mentions("WHK#"),
        "PutItem" => call.mentions("\"BODY\""),
        "BatchExecuteStatement" => call.mentions(OF_AN_EVENT),
        "SendMessageBatch" => announced(call).iter().any(|due| due.number == 1),
        _ => false,
    }
}

/// Whether a call is of a kind that dispatch-deliveries makes: the first claim inserts the head, and all other writes
/// change it.
fn is_of_delivering(metered: &Metered) -> bool {
    let call = &metered.call;
    match call.operation.as_str() {
        // No other function makes calls at this time. On a machine that stalls, the webhook is read again,
        // consistently, before the request.
        "BatchGetItem" => !(call.mentions("WHK#") && call.mentions("\"ConsistentRead\":true")),
        "BatchExecuteStatement" => !is_of_publishing(metered),
        "UpdateItem" | "DeleteItem" => call.mentions("STA#") || call.mentions("HLT#"),
        "SendMessageBatch" => !is_of_publishing(metered),
        _ => false,
    }
}

/// Asserts that a cost is as low as it should be.
async fn assert_low<C: Debug>(what: &str, mut measure: impl AsyncFnMut() -> C, is_low: impl Fn(&C) -> bool) {
    let mut costs = Vec::new();
    while costs.len() < TRIES {
        let cost = measure().await;
        if is_low(&cost) {
            return;
        }
        costs.push(cost);
    }
    panic!("{what} costs too much: {costs:#?}");
}

/// The cost of an event with this data, and with this number of attempts to each of these webhooks, measured after
/// everything is recorded and counted.
async fn measured(setup: &Interposed, entity: &Entity, data: Value, webhooks: usize, attempts: usize) -> [Cost; 2] {
    setup.table.metered();
    setup.services.metered();
    let bytes = data.to_string().len();
    entity.post("/webhook/event").json(&json!({ "type": "booking.created", "data": data })).expect(202).await;
    let mut calls = Vec::new();
    until("every attempt is counted", LONG, async || {
        calls.extend(setup.table.metered());
        let of = |operation: &str, item: &str| {
            let counts = |metered: &&Metered| metered.call.operation == operation && metered.call.mentions(item);
            calls.iter().filter(counts).count()
        };
        // The final success resets the failures.
        let is_over = of("UpdateItem", "STA#") >= attempts * webhooks
            && of("UpdateItem", "HLT#") >= (attempts - 1) * webhooks
            && of("DeleteItem", "HLT#") >= usize::from(attempts > 1) * webhooks;
        is_over.then_some(())
    })
    .await;
    calls.extend(setup.services.metered());
    let of = [is_of_publishing as fn(&Metered) -> bool, is_of_delivering];
    let [publishing, delivering] =
        of.map(|is_of| Cost::of(&calls.iter().filter(|call| is_of(call)).collect::<Vec<_>>()));
    println!("{bytes} bytes to {webhooks} webhooks, {attempts} attempts each: {publishing:?} and {delivering:?}");
    // If the calls had other names, every cost would seem low.
    let costs = |cost: &Cost| cost.writes > 0.0 && cost.reads > 0.0;
    assert!(costs(&publishing) && (webhooks == 0 || costs(&delivering)), "{publishing:?} and {delivering:?}");
    for Metered { call, reads, writes, .. } in &calls {
        println!("  {}: {reads} read units, {writes} write units", call.operation);
    }
    [publishing, delivering]
}

#[contract_test]
async fn publishing_and_delivering_cost_no_more_than_the_docs_say(suite: Arc<Suite>) {
    // The bookings have arbitrary sizes and do not conform to the schema, so warnings would be stored with them.
    let settings = Settings::default().with("RETRY_SCHEDULE", SCHEDULE).with("SWEEP_INTERVAL", SWEEP_INTERVAL);
    let settings = settings.with("EVENT_VALIDATION", "off");
    let (setup, _permit) = suite.other_bundle_interposed(settings).await;
    let receiver = Receiver::start().await;
    let [alone, many] = ["alone", "many"].map(|id| Entity::new(&setup.api, id.to_owned()));
    let alone = alone.await;
    let many = many.await;
    alone.hook(&receiver.on("/alone", [Behaviour::status(200)])).await;
    for number in 0..MANY {
        many.hook(&receiver.on(&format!("/many/{number}"), [Behaviour::status(200)])).await;
    }
    for _ in 0..WARM_UP {
        measured(&setup, &alone, booking(1_000), 1, 1).await;
    }
    // Publishing writes the event, at one unit per KB, and its entry in the index by entity. Compressed, 10 KB take 1.9
    // KB, so the event takes 2.1 KB. Compressed, 20 KB take 3.5 KB, which become a separate item of four units.
    // Publishing reads the webhooks.
    //
    // The claim inserts the head, which is in no index. The record changes the head, and adds it to the
    // index by webhook. The statistics are one update. Delivering reads the webhook, the event and the health, at half
    // a unit each. A separate body takes a whole unit.
    for (bytes, published, delivered) in
        [(1_000, 2.0, (4.0, 1.5)), (10_000, 4.0, (4.0, 1.5)), (20_000, 6.0, (4.0, 2.5))]
    {
        let measure = async || measured(&setup, &alone, booking(bytes), 1, 1).await;
        assert_low(&format!("an event of {bytes} bytes"), measure, |[publishing, delivering]: &[Cost; 2]| {
            publishing.is_at_most(published, 1.0) && delivering.is_at_most(delivered.0, delivered.1)
        })
        .await;
    }

    // An event that matches no webhook is stored like any other, and costs nothing extra.
    let unmatched = Entity::new(&setup.api, "unmatched".to_owned()).await;
    hook_for(&unmatched, "payee.created", &receiver.on("/unmatched", [Behaviour::status(200)])).await;
    let measure = async || measured(&setup, &unmatched, booking(1_000), 0, 1).await;
    assert_low("an event without a webhook", measure, |[publishing, delivering]: &[Cost; 2]| {
        publishing.is_at_most(2.0, 1.0) && delivering.is_at_most(0.0, 0.0)
    })
    .await;

    // A failure retried within seconds takes four units: for the claim, the record, the health and the statistics. The
    // delivery is not in any index yet. With four attempts, its head is smaller than 1 KB. The success takes a fifth
    // unit, since it removes the health item. Each attempt reads 1.5 units.
    let measure = async || {
        let fails = Behaviour::status(500);
        receiver.on("/alone", [fails.clone(), fails.clone(), fails, Behaviour::status(200)]);
        measured(&setup, &alone, booking(1_000), 1, 4).await
    };
    assert_low("an event with retries", measure, |[publishing, delivering]: &[Cost; 2]| {
        publishing.is_at_most(2.0, 1.0) && delivering.is_at_most(3.0 * 4.0 + 5.0, 4.0 * 1.5)
    })
    .await;

    measured(&setup, &many, booking(1_000), MANY, 1).await;
    // The event has 75 bytes for each of 20 webhooks, 2.1 KB in total: three units plus one. Each delivery takes four
    // units.
    let measure = async || measured(&setup, &many, booking(1_000), MANY, 1).await;
    let is_low = |[publishing, delivering]: &[Cost; 2]| publishing.writes + delivering.writes <= 84.0;
    assert_low("a popular event", measure, is_low).await;

    setup.table.delay(usize::MAX, ROUND_TRIP, |_| true);
    // Delivering makes four calls: prefetch, claim, record and count. The first claim inserts the head from the event.
    let measure = async || measured(&setup, &alone, booking(1_000), 1, 1).await;
    let is_low = |[publishing, delivering]: &[Cost; 2]| publishing.in_a_row <= 3 && delivering.in_a_row <= 4;
    assert_low("an event", measure, is_low).await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn a_body_is_sent_and_shown_as_published_however_it_is_stored(suite: Arc<Suite>) {
    let receiver = Receiver::start().await;
    let entity = suite.entity().await;
    let table = suite.table();
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    // Compression halves this text, but the result still does not fit into the event's item.
    let random: Vec<String> = (0..200).map(|_| uuid(&SystemRandom)).collect();
    let bodies = [(booking(100), "plain"), (booking(1_000), "packed"), (json!({ "random": random }), "apart")];
    for (index, (data, stored_as)) in bodies.into_iter().enumerate() {
        let id = entity.publish(data.clone()).await;
        let sent = receiver.until("/", 1 + index).await.pop().expect("it was sent");
        let event: Value = serde_json::from_slice(&sent.body).expect("JSON");
        assert_eq!(event["data"], data);
        let shown = entity.delivery(&id).await;
        assert_eq!(shown["event"], event);
        let event = event["id"].as_str().expect("a text");
        let kept = table.event(event).await.expect("it is kept");
        let (pk, sk) = stored::body_key(event);
        let body = table.item(&pk, &sk).await;
        let form = match &body {
            Some(body) => {
                assert!(kept.get("content").is_none() && body["content"]["M"].get("packed").is_some(), "{body:#}");
                "apart"
            }
            None if kept["content"]["M"].get("packed").is_some() => "packed",
            None => "plain",
        };
        assert_eq!(form, stored_as, "{kept:#}");
    }
}

#[contract_test]
async fn an_event_that_two_hundred_webhooks_want_waits_for_few_calls_in_a_row(suite: Arc<Suite>) {
    let settings = Settings::default().with("SWEEP_INTERVAL", SWEEP_INTERVAL);
    let (setup, _permit) = suite.other_bundle_interposed(settings).await;
    let receiver = Receiver::start().await;
    let entity = Entity::new(&setup.api, "most".to_owned()).await;
    for number in 0..MOST {
        entity.hook(&receiver.on(&format!("/most/{number}"), [Behaviour::status(200)])).await;
    }
    let events = Cell::new(0);
    let arrived = async || {
        let is_everything = || receiver.everything().len() >= MOST * events.get();
        until("every webhook has the events so far", LONG, async || is_everything().then_some(())).await;
    };
    let published = async || {
        events.set(events.get() + 1);
        setup.table.metered();
        setup.services.metered();
        entity.post("/webhook/event").json(&json!({ "type": "booking.created", "data": {} })).expect(202).await;
        let calls = setup.table.metered().into_iter().chain(setup.services.metered());
        let calls: Vec<_> = calls.filter(is_of_publishing).collect();
        let count = calls.len();
        let in_a_row = in_a_row(&calls);
        println!("an event to {MOST} webhooks: {count} calls, {in_a_row} in a row");
        assert!(count >= 2, "the webhooks are read, and the event is written");
        (count, in_a_row)
    };
    // The first request starts the functions, which open their connections.
    published().await;
    arrived().await;
    setup.table.delay(usize::MAX, ROUND_TRIP, |_| true);
    setup.services.delay(usize::MAX, ROUND_TRIP, |_| true);
    // One call reads the webhooks, one writes the event, and five or six announce: 50 messages of four deliveries each.
    // The first announcement does not wait for others.
    let measure = async || {
        arrived().await;
        published().await
    };
    let is_low = |&(count, in_a_row): &(usize, usize)| count <= 8 && in_a_row <= 3;
    assert_low("an event to many webhooks", measure, is_low).await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn a_function_that_starts_has_read_keys_and_revocations_after_two_calls(suite: Arc<Suite>) {
    let settings = Settings::default().with("SWEEP_INTERVAL", "1h");
    let (setup, _permit) = suite.other_bundle_interposed(settings).await;
    let entity = Entity::new(&setup.api, "start".to_owned()).await;
    setup.table.delay(usize::MAX, ROUND_TRIP, |_| true);
    let measure = async || {
        let before = setup.bundle.process("list-event-types").await;
        before.kill();
        until_gone(&[before]).await;
        setup.table.metered();
        // The successor starts once `local` has noticed that the process ended and sends it no more requests.
        setup.bundle.process("list-event-types").await;
        entity.get("/webhook/event/list").expect(200).await;
        let is_of_start = |call: &&Metered| call.call.mentions("JWKS") || call.call.mentions("REVOKED");
        let calls = setup.table.metered();
        let cost = Cost::of(&calls.iter().filter(is_of_start).collect::<Vec<_>>());
        println!("a start: {cost:?}");
        cost
    };
    assert_low("a start", measure, |cost: &Cost| cost.in_a_row == 2 && cost.is_at_most(0.0, 1.0)).await;
    assert!(setup.bundle.stop().await.success());
}

/// Adds deliveries to all webhooks, as newer copies of one that is waiting for its retry: first failed, then waiting,
/// then delivered ones. The first webhook has more than a page of delivered ones, and the second has more than a page
/// of failed ones. Returns the newest event.
async fn fill(table: &Table, entity: &Entity, hooks: &[Hook], model: &str) -> String {
    const FEW: usize = 3;
    const MORE_THAN_A_PAGE: usize = 30;
    let event = stored::event_of(model);
    let kept = table.event(&event).await.expect("it was published").to_string();
    let head = table.head(model).await.expect("it was attempted").to_string();
    let states = [("failed", "RECOVERABLE", 1), ("retrying", "WAITING", MOST), ("delivered", "DELIVERED", 0)];
    let wanted = states.into_iter().flat_map(|(status, group, busy)| {
        hooks.iter().enumerate().flat_map(move |(number, hook)| {
            repeat_n((status, group, hook), if number == busy { MORE_THAN_A_PAGE } else { FEW })
        })
    });
    let began = (now() + 1) * 1_000;
    let items = wanted.enumerate().flat_map(|(number, (status, group, hook))| {
        let id = stored::event_id(began + i64::try_from(number).expect("few"), number);
        let delivery = stored::delivery_id(&id, 0);
        let copy = |item: &str| -> Value {
            let copy = item.replace(model, &delivery).replace(&event, &id).replace(&hooks[0].id, &hook.id);
            serde_json::from_str(&copy).expect("still the item as JSON")
        };
        let mut kept = copy(&kept);
        kept["pk"]["S"] = stored::event_key(&id).0.into();
        let mut head = copy(&head);
        head["status"]["S"] = status.into();
        head["webhookKey"]["S"] = format!("{group}#{}", hook.id).into();
        if status == "failed" {
            head["entityKey"] = json!({ "S": format!("UNDELIVERED#{}", entity.id) });
        }
        if status != "retrying" {
            let attributes = head.as_object_mut().expect("an item is an object");
            attributes
                .retain(|name, _| !["nextAttemptDate", "claimableAt", "dueShard", "dueAt"].contains(&name.as_str()));
        }
        [kept, head]
    });
    let items: Vec<_> = items.collect();
    let newest = items[items.len() - 2]["sk"]["S"].as_str().expect("a text").to_owned();
    table.put_all(items).await;
    newest
}

/// Records that the sweep has passed all events in the next hour.
async fn pass_new_events(table: &Table) {
    let event = stored::event_id((now() + 3_600) * 1_000, 0);
    let body = event.strip_prefix("evt_").expect("an event's identifier");
    let bodies = vec![json!({ "S": body }); stored::SHARDS.into()];
    let positions = json!({
        "pk": { "S": "SWEEP" }, "sk": { "S": "OPENED" }, "version": { "N": "1" }, "bodies": { "L": bodies },
    });
    table.put(positions).await;
}

/// An API request, with the queries and units that it may use.
struct ListCost {
    path: String,
    queries: usize,
    reads: f64,
}

#[contract_test]
async fn lists_of_two_hundred_webhooks_cost_no_more_than_the_docs_say(suite: Arc<Suite>) {
    // A failed attempt is followed by a wait so long that the indexes show the delivery.
    let settings = Settings::default().with("SWEEP_INTERVAL", "1h").with("RETRY_SCHEDULE", "0s,1h");
    let settings = settings.with("EVENT_VALIDATION", "off");
    let (setup, _permit) = suite.other_bundle_interposed(settings).await;
    until_first_sweep(&setup).await;
    let entity = Entity::new(&setup.api, "lists".to_owned()).await;
    let mut hooks = vec![entity.hook("http://127.0.0.1:9/").await];
    let event = json!({ "type": "booking.created", "subject": "B-1001", "data": {} });
    let published = entity.publish_event(&event).await.json();
    let model = published["deliveries"][0]["deliveryIdentifier"].as_str().expect("one webhook, one delivery");
    entity.until_status(model, &["retrying"]).await;
    while hooks.len() < MOST {
        hooks.push(entity.hook("http://127.0.0.1:9/").await);
    }
    let table = Table::of(&setup.api.env);
    let event = fill(&table, &entity, &hooks, model).await;
    pass_new_events(&table).await;
    let of_webhook = |hook: usize| format!("/webhook/delivery/list?webhookIdentifier={}", hooks[hook].id);
    let cost = |path: &str, queries, reads| ListCost { path: path.to_owned(), queries, reads };
    for ListCost { path, queries, reads } in [
        cost("/webhook/delivery/list", 1, 27.0),
        cost("/webhook/delivery/list?type=booking.created", 1, 27.0),
        cost("/webhook/delivery/list?subject=B-1001", 1, 27.0),
        cost("/webhook/delivery/list?status=delivered", 1, 27.0),
        cost("/webhook/delivery/list?status=failed", 1, 14.0),
        cost(&format!("/webhook/delivery/list?eventIdentifier={event}"), 0, 1.0),
        cost(&of_webhook(0), 7, 18.0),
        cost(&format!("{}&status=failed", of_webhook(1)), 2, 15.0),
        // The list reads the webhooks, the new events, and three groups for each webhook.
        cost("/webhook/delivery/list?status=retrying", 602, 335.0),
        // Failed deliveries may have this code as well.
        cost("/webhook/delivery/list?lastErrorCode=connect", 603, 335.0),
        // Events that matched no webhook are in a separate partition.
        cost("/webhook/event", 2, 22.0),
    ] {
        // The first request starts the function, which reads keys and revocations.
        entity.get(&path).expect(200).await;
        let measure = async || {
            setup.table.metered();
            let page = entity.get(&path).expect(200).await.json();
            let calls = setup.table.metered();
            let made = calls.iter().filter(|metered| metered.call.operation == "Query").count();
            let units: f64 = calls.iter().map(|metered| metered.reads).sum();
            let shown = page["items"].as_array().map_or(0, Vec::len);
            println!("{path}: {made} queries, {units} read units, {shown} items");
            assert!(shown > 0 && units > 0.0, "{path} shows nothing, or its reads are not counted");
            (made, units)
        };
        let is_low = |&(made, units): &(usize, f64)| made <= queries && units <= reads;
        assert_low(&path, measure, is_low).await;
    }
    assert!(setup.bundle.stop().await.success());
}
