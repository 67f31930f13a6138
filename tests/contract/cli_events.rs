//! `waypost` publishes events, explains and follows deliveries, and opens the panel.

use std::{process::Stdio, sync::Arc};

use contract_test::contract_test;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::timeout,
};

use crate::{
    cli::Cli,
    harness::{Behaviour, LONG, Receiver, Suite, until},
};

fn text<'a>(json: &'a Value, member: &str) -> &'a str {
    json[member].as_str().unwrap_or_else(|| panic!("{member} in {json:#}"))
}

#[contract_test]
async fn the_command_line_publishes_an_event_once_for_a_key(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let publish = ["publish", "--type", "booking.created", "--data", r#"{"bookingIdentifier": "B-81", "total": 1.10}"#];
    let unmatched = cli.run(&publish).await;
    assert!(unmatched.code == Some(0) && unmatched.out.contains("no webhook matched it"), "{unmatched:?}");
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let with_key = [&publish[..], &["--idempotency-key", "booking-81-created"]].concat();
    let published = cli.json(&with_key).await;
    assert_eq!(cli.json(&with_key).await["eventIdentifier"], published["eventIdentifier"]);
    let delivery = &published["deliveries"][0];
    assert_eq!(text(delivery, "webhookIdentifier"), hook.id);
    let shown = entity.until_status(text(delivery, "deliveryIdentifier"), &["delivered"]).await;
    assert_eq!((text(&shown, "subject"), &shown["event"]["data"]["bookingIdentifier"]), ("B-81", &json!("B-81")));
    let body = String::from_utf8_lossy(&receiver.until("/", 1).await[0].body).into_owned();
    assert!(body.contains("1.10"), "{body}");
}

#[contract_test]
async fn why_gives_the_advice_of_the_service_and_the_next_commands(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    let hook =
        entity.hook(&receiver.on("/", [Behaviour::answer(503, &[("retry-after", "3600")], "no database")])).await;
    let delivery = entity.publish(json!({ "bookingIdentifier": "B-82" })).await;
    entity.until_status(&delivery, &["retrying"]).await;
    let explained = until("the delivery is found by its subject", LONG, async || {
        let ended = cli.run(&["why", "B-82"]).await;
        (ended.out.contains(&delivery)).then_some(ended.out)
    })
    .await;
    let shown = entity.delivery(&delivery).await;
    let advice = &shown["advice"];
    assert_eq!(advice["cause"], "unavailable", "{shown:#}");
    for part in [text(advice, "meaning"), text(advice, "remedy"), "no database", "503", "on the retry schedule"] {
        assert!(explained.contains(part), "{part} in {explained}");
    }
    let next = format!("\n  waypost resend {delivery}\n  waypost webhooks test {}", hook.id);
    assert!(explained.contains(&next), "{explained}");
    let event = text(&shown, "eventIdentifier");
    assert!(explained.contains(&format!("event     {event}")), "{explained}");
    until("the subject is found in other capitals", LONG, async || {
        let ended = cli.run(&["why", "#b-82"]).await;
        (ended.out.contains(&delivery) && ended.err.contains("Found the subject `B-82`")).then_some(())
    })
    .await;
    assert_eq!(cli.json(&["why", event]).await["deliveries"][0]["advice"], *advice);
    cli.json(&["webhooks", "pause", &hook.id]).await;
    let held = entity.publish(json!({ "bookingIdentifier": "B-83" })).await;
    entity.until_delivery(&held, "it waits for the end of the pause", |held| held["waitingFor"] == "pause").await;
    let explained = cli.run(&["why", &held]).await.out;
    assert!(explained.contains(&format!("waypost webhooks resume {}", hook.id)), "{explained}");
    let unknown = cli.run(&["why", "B-84"]).await;
    assert!(unknown.code == Some(1) && unknown.err.contains("nothing about `B-84` was found"), "{unknown:?}");
    let webhook = cli.run(&["why", &hook.id]).await;
    assert!(webhook.code == Some(2) && webhook.err.contains("`waypost webhooks show whk_"), "{webhook:?}");
    let unknown = cli.run(&["why", "evt_01m7w5gmev7xwvpyt3bc2k45jh"]).await;
    assert!(unknown.code == Some(1) && unknown.err.contains("no such event"), "{unknown:?}");
    assert!(unknown.out.is_empty() && unknown.err.contains("next: check the identifier"), "{unknown:?}");
}

#[contract_test]
async fn why_says_of_each_webhook_why_it_did_not_get_an_event(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(204)]);
    let hook = |name: &str, types: &[&str]| json!({ "name": name, "eventUrl": url, "eventList": types });
    let other = entity.hook_with(hook("Payees", &["payee.created"])).await;
    let mut large = hook("Large", &["booking.*"]);
    large["eventFilter"] = json!({ "total": [{ "numeric": [">=", 50] }] });
    let large = entity.hook_with(large).await;
    let off = entity.hook_with(hook("Off", &[])).await;
    entity.changed(&off.id, json!({ "enabled": false })).await;
    let published = entity.publish_of_type("booking.created", json!({ "bookingIdentifier": "B-87", "total": 1 })).await;
    let published = published.json();
    assert_eq!((&published["kept"], &published["deliveries"]), (&json!(true), &json!([])), "{published:#}");
    let event = text(&published, "eventIdentifier");
    let late = entity.hook_with(hook("Late", &["booking.*"])).await;

    // The service tries filters on events that it finds through an index.
    let explained = until("the filter was tried on the event", LONG, async || {
        let explained = cli.json(&["why", event]).await;
        (explained["withoutDelivery"][0]["reason"] == "filtered").then_some(explained)
    })
    .await;
    assert_eq!(explained["event"], entity.get(&format!("/webhook/event/{event}")).expect(200).await.json());
    let missed = explained["withoutDelivery"].as_array().expect("a list");
    let reasons: Vec<_> =
        missed.iter().map(|missed| (text(missed, "webhookIdentifier"), text(missed, "reason"))).collect();
    let expected = [
        (large.id.as_str(), "filtered"),
        (off.id.as_str(), "disabled"),
        (late.id.as_str(), "created-later"),
        (other.id.as_str(), "not-subscribed"),
    ];
    assert_eq!(reasons, expected);
    let shown = cli.run(&["why", event]).await.out;
    for part in ["B-87", "no webhook matched it", "Off (whk_", "does not match its filter", "waypost replay ID --from "]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    until("the event is found by its subject", LONG, async || {
        let ended = cli.run(&["why", "B-87"]).await;
        ended.out.contains(&format!("waypost why {event}")).then_some(())
    })
    .await;

    let delivery = entity.publish(json!({ "bookingIdentifier": "B-88", "total": 1 })).await;
    let shown = entity.until_status(&delivery, &["delivered"]).await;
    let shown = cli.run(&["why", text(&shown, "eventIdentifier")]).await.out;
    for part in [delivery.as_str(), "Delivered on attempt", "Off (whk_", "Payees (whk_"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains(&format!("({}): ", late.id)) && !shown.contains("waypost replay"), "{shown}");
    until("the event is listed with the webhooks without a delivery", LONG, async || {
        let ended = cli.run(&["why", "B-88"]).await;
        let names = ["Payees", "Large", "Off"].iter().all(|name| ended.out.contains(name));
        (names && ended.out.contains("no delivery to ")).then_some(())
    })
    .await;
}

#[contract_test]
async fn follow_prints_a_delivery_when_it_ends(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(500), Behaviour::status(204)])).await;
    let before = entity.publish(json!({ "bookingIdentifier": "B-85" })).await;
    entity.until_status(&before, &["retrying", "delivered"]).await;
    let mut command = cli.command(&["deliveries", "--follow", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be run");
    let mut notices = BufReader::new(child.stderr.take().expect("piped")).lines();
    let begun = timeout(LONG, notices.next_line()).await.expect("it begins").expect("it is text");
    assert!(begun.as_deref().is_some_and(|begun| begun.contains("Press Ctrl-C")), "{begun:?}");
    let after = entity.publish(json!({ "bookingIdentifier": "B-86" })).await;
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut ended = Vec::new();
    while !ended.contains(&after) {
        let line = timeout(LONG, lines.next_line()).await.expect("a line comes").expect("it is text");
        let delivery: Value = serde_json::from_str(&line.expect("it still runs")).expect("JSON");
        assert_eq!(delivery["status"], "delivered", "{delivery:#}");
        ended.push(text(&delivery, "id").to_owned());
    }
    assert_eq!(ended.iter().filter(|id| **id == after).count(), 1, "{ended:?}");
    kill(Pid::from_raw(child.id().expect("it runs").try_into().expect("a process")), Signal::SIGINT).expect("it runs");
    let status = timeout(LONG, child.wait()).await.expect("it ends").expect("it can be awaited");
    assert_eq!(status.code(), Some(0));
}

#[contract_test]
async fn open_creates_a_link_into_the_panel(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let link = cli.json(&["open", "whk_01m74zy5eva3kj3s4w04zg1hhc"]).await;
    let address = format!("{}/panel#code=", suite.api.env["BASE_URL"]);
    assert!(text(&link, "url").starts_with(&address), "{link:#}");
    assert_eq!(link["place"], "/panel/webhooks/whk_01m74zy5eva3kj3s4w04zg1hhc");
    let printed = cli.run(&["open", "--print"]).await;
    assert!(printed.code == Some(0) && printed.out.starts_with(&address), "{printed:?}");
}
