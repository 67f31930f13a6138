//! The test that `addresses` runs on a machine whose only interface is `lo`.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use contract_test::contract_test;
use fakes::{NameAnswer, NameServer};
use serde_json::{Value, json};

use crate::{
    addresses::{BANNED, PUBLIC, PUBLIC_V6, SILENT},
    harness::{Behaviour, Entity, LONG, Receiver, Suite, until},
};

fn ip(address: &str) -> IpAddr {
    address.parse().expect(address)
}

fn addresses(list: &[&str]) -> NameAnswer {
    NameAnswer::Addresses(list.iter().map(|address| ip(address)).collect())
}

/// Listeners on every address, public and banned, on one port.
struct Machine {
    names: NameServer,
    good: Vec<Receiver>,
    banned: Vec<Receiver>,
    port: u16,
}

impl Machine {
    async fn start() -> Self {
        let names =
            NameServer::start(SocketAddr::from(([127, 0, 0, 1], 53))).await.expect("port 53 is free in the namespace");
        let first = Receiver::start_at(SocketAddr::new(ip(PUBLIC), 0)).await;
        let port = first.address.port();
        let mut good = vec![first];
        good.push(Receiver::start_at(SocketAddr::new(ip(PUBLIC_V6), port)).await);
        let mut banned = Vec::new();
        for address in BANNED.iter().chain(&["127.0.0.2", "::1"]) {
            banned.push(Receiver::start_at(SocketAddr::new(ip(address), port)).await);
        }
        for receiver in good.iter().chain(&banned) {
            receiver.on("/", [Behaviour::status(200)]);
        }
        Self { names, good, banned, port }
    }

    fn url(&self, name: &str) -> String {
        format!("http://{name}:{}/", self.port)
    }

    fn arrived(&self) -> usize {
        self.good.iter().map(|receiver| receiver.everything().len()).sum()
    }

    /// Fails if a banned address received a connection.
    fn nothing_banned_was_dialled(&self) {
        for receiver in &self.banned {
            assert_eq!(receiver.connections(), 0, "{} was dialled", receiver.address);
        }
    }
}

/// Publishes to a webhook at this address; returns the delivery after its first attempt.
async fn first_attempt(suite: &Suite, url: &str) -> (Entity, Value) {
    let entity = suite.entity().await;
    entity.hook(url).await;
    let id = entity.publish(json!({})).await;
    let delivery = entity.until_delivery(&id, "has its first attempt", |shown| shown["attemptCount"] != 0).await;
    (entity, delivery)
}

fn ended_in(delivery: &Value, code: &str) -> bool {
    delivery["attempts"][0]["error"].as_str().is_some_and(|error| error.starts_with(&format!("{code}: ")))
}

#[contract_test(on_demand)]
async fn only_public_addresses_are_dialled_and_only_those_that_were_checked(suite: Arc<Suite>) {
    let devices = fs::read_to_string("/proc/net/dev").expect("/proc is there on Linux");
    let devices: Vec<&str> = devices.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim).collect();
    assert_eq!(devices, ["lo"], "this test needs a machine without a network; the test in `addresses` provides it");
    let machine = Machine::start().await;
    let names = &machine.names;

    // Public addresses can be reached in every notation.
    names.on("good.example.com", [addresses(&[PUBLIC])]);
    names.on("both.example.com", [addresses(&[PUBLIC, PUBLIC_V6])]);
    names.on("half-dead.example.com", [addresses(&[SILENT, "93.184.216.36", PUBLIC])]);
    let mut many: Vec<String> = (36..60).map(|last| format!("93.184.216.{last}")).collect();
    many.push(PUBLIC.to_owned());
    names.on("many.example.com", [addresses(&many.iter().map(String::as_str).collect::<Vec<_>>())]);
    for (count, host) in [
        PUBLIC.to_owned(),
        format!("[{PUBLIC_V6}]"),
        format!("[::ffff:{PUBLIC}]"),
        "0x5db8d822".to_owned(),
        "good.example.com".to_owned(),
        "good.example.com.".to_owned(),
        "both.example.com".to_owned(),
        "half-dead.example.com".to_owned(),
        "many.example.com".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let (_, delivery) = first_attempt(&suite, &machine.url(host)).await;
        assert_eq!(delivery["status"], "delivered", "{host}: {delivery:#}");
        assert_eq!(machine.arrived(), count + 1, "{host}");
    }

    // A non-public address is refused when the webhook is created.
    for address in BANNED.iter().chain(&["127.0.0.2", "::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"]) {
        let host = if address.contains(':') { format!("[{address}]") } else { (*address).to_owned() };
        let body = json!({ "name": "x", "eventUrl": machine.url(&host), "eventList": [] });
        suite.entity().await.post("/webhook").json(&body).refused(400, "invalid-request").await;
    }

    // A name that resolves to a banned address, alone or among others and in any order, is blocked at the attempt.
    let arrived = machine.arrived();
    for (number, banned) in BANNED.iter().chain(&["127.0.0.2", "::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"]).enumerate()
    {
        for (form, answer) in
            [addresses(&[banned]), addresses(&[PUBLIC, banned]), addresses(&[banned, PUBLIC, PUBLIC_V6])]
                .into_iter()
                .enumerate()
        {
            let name = format!("bad-{number}-{form}.example.com");
            names.on(&name, [answer]);
            let (_, delivery) = first_attempt(&suite, &machine.url(&name)).await;
            assert!(ended_in(&delivery, "blocked"), "{banned}: {delivery:#}");
        }
    }
    assert_eq!(machine.arrived(), arrived, "a blocked attempt opens no connection");

    // A name that resolves differently the second time is resolved only once per attempt.
    names.on("rebinding.example.com", [addresses(&[PUBLIC]), addresses(&["10.0.0.1"])]);
    machine.good[0].on("/", [Behaviour::status(500), Behaviour::status(200)]);
    let (entity, delivery) = first_attempt(&suite, &machine.url("rebinding.example.com")).await;
    assert_eq!(delivery["attempts"][0]["httpStatus"], 500, "{delivery:#}");
    let id = delivery["id"].as_str().expect("openapi.yaml says so");
    let delivery = entity.until_status(id, &["failed", "delivered"]).await;
    assert_eq!(delivery["status"], "failed", "{delivery:#}");
    let attempts = delivery["attempts"].as_array().expect("openapi.yaml says so");
    let blocked = |attempt: &&Value| attempt["error"].as_str().is_some_and(|error| error.starts_with("blocked: "));
    assert_eq!(attempts.iter().filter(blocked).count(), attempts.len() - 1, "{delivery:#}");
    assert_eq!(names.lookups("rebinding.example.com"), attempts.len(), "each attempt resolves the name once");

    // Some names do not resolve.
    names.on("empty.example.com", [NameAnswer::Addresses(vec![])]);
    names.on("broken.example.com", [NameAnswer::Failure]);
    for name in ["unknown.example.com", "empty.example.com", "broken.example.com"] {
        let (_, delivery) = first_attempt(&suite, &machine.url(name)).await;
        assert!(ended_in(&delivery, "dns"), "{name}: {delivery:#}");
    }
    // Once the name resolves, the delivery succeeds.
    names.on("late.example.com", [NameAnswer::Unknown, NameAnswer::Unknown, addresses(&[PUBLIC])]);
    let (entity, delivery) = first_attempt(&suite, &machine.url("late.example.com")).await;
    let id = delivery["id"].as_str().expect("openapi.yaml says so").to_owned();
    until("the name resolves", LONG, async || (entity.delivery(&id).await["status"] != "retrying").then_some(())).await;
    let delivery = entity.delivery(&id).await;
    assert_eq!(delivery["status"], "delivered", "{delivery:#}");
    machine.nothing_banned_was_dialled();
}
