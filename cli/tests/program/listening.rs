//! `listen`: what it receives, forwards, acknowledges and removes.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    Ended, ME, Person,
    fake::{Fake, SECRET, problem},
};

/// Starts `listen`, and ends it with a signal once the fake has received this many acknowledgements.
async fn listened(person: &Person, fake: &Fake, arguments: &[&str], acknowledged: usize, signal: Signal) -> Ended {
    let child = person.command(&[&["listen"], arguments].concat()).spawn().expect("it is built");
    let id = Pid::from_raw(child.id().try_into().expect("a process"));
    let ended = tokio::spawn(Person::ended(child));
    fake.until(&format!("{ME}/webhook/whk_1/feed/ack"), acknowledged).await;
    // By its second read from now on, the program has handled the response to the acknowledgement.
    let reads = format!("{ME}/webhook/whk_1/feed/read");
    fake.until(&reads, fake.received(&reads).len() + 2).await;
    kill(id, signal).expect("it runs");
    ended.await.expect("no panic")
}

#[tokio::test]
async fn listen_forwards_acknowledges_and_removes_its_webhook() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    let first = r#"{"id":"evt_1","type":"booking.created","subject":"B-1","data":{"total":1.10}}"#;
    fake.deliver(&[first]);
    fake.on("/hooks", (204, Value::Null));
    let target = format!("{}/hooks", fake.address);
    let types = ["--forward", &target, "--types", "booking.created,payment.*"];
    let ended = listened(&person, &fake, &types, 1, Signal::SIGINT).await;
    assert!(ended.err.contains(SECRET) && ended.err.contains("whk_1 is removed"), "{ended:?}");
    let said = ended.done();
    assert!(said.contains("booking.created  B-1  dlv_0  204"), "{said}");

    let wanted = fake.received(&format!("{ME}/webhook"))[0].json();
    assert_eq!(wanted["delivery"], "pull");
    assert_eq!((&wanted["temporary"], &wanted["eventList"]), (&json!(true), &json!(["booking.created", "payment.*"])));
    let forwarded = &fake.received("/hooks")[0];
    assert_eq!((forwarded.body.as_str(), forwarded.header("webhook-signature")), (first, "v1,abc="));
    assert_eq!(forwarded.header("authorization"), "");
    let acknowledged = fake.received(&format!("{ME}/webhook/whk_1/feed/ack"));
    assert_eq!(acknowledged[0].json(), json!({ "confirmed": ["rcp_0"] }));
    let removed = fake.received(&format!("{ME}/webhook/whk_1"));
    assert_eq!((removed.len(), removed[0].method.as_str()), (1, "DELETE"));

    fake.deliver(&[r#"{"id":"evt_2","type":"booking.created"}"#]);
    fake.on("/hooks", (500, json!({})));
    let said = listened(&person, &fake, &["--forward", &target], 2, Signal::SIGINT).await.done();
    assert!(said.contains("evt_2  dlv_0  500"), "{said}");
    let acknowledged = fake.received(&format!("{ME}/webhook/whk_1/feed/ack"));
    assert_eq!(acknowledged[1].json(), json!({ "failed": [{ "receipt": "rcp_0", "reason": "HTTP 500: {}" }] }));
}

#[tokio::test]
async fn a_slow_answer_holds_up_no_other_event() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    // The address responds to no request until all have arrived.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it listens").port().to_string();
    let endpoint = tokio::spawn(async move {
        let mut streams = Vec::new();
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut request = Vec::new();
            while !request.ends_with(b"{}") {
                assert_ne!(stream.read_buf(&mut request).await.expect("a request"), 0, "the whole request");
            }
            streams.push(stream);
        }
        for mut stream in streams {
            // The response head is malformed, and is read as in production.
            stream.write_all(b"HTTP/1.1 200 OK\r\nno colon\r\nX-A : one\r\n two\r\nContent-Length: 0\r\n\r\n").await?;
        }
        std::io::Result::Ok(())
    });
    fake.deliver(&["{}", "{}", "{}"]);
    let said = listened(&person, &fake, &["--forward", &port], 3, Signal::SIGINT).await.done();
    endpoint.await.expect("no panic").expect("written");
    assert_eq!(said.matches("  200  ").count(), 3, "{said}");
}

#[tokio::test]
async fn a_filter_is_sent_as_it_was_given() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    fake.deliver(&["{}"]);
    let filter = r#"{"a": [300000000000000000000000000000000000001], "a": [1.10]}"#;
    listened(&person, &fake, &["--filter", filter], 1, Signal::SIGINT).await.done();
    let sent = &fake.received(&format!("{ME}/webhook"))[0].body;
    assert!(sent.contains(&format!(r#""eventFilter":{filter}"#)), "{sent}");
    assert!(person.run(&["listen", "--filter", "{"]).await.failed(2).contains("it is not JSON"));
}

#[tokio::test]
async fn listen_reports_a_closed_port_and_an_expired_receipt() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    fake.deliver(&["{}"]);
    let expired = json!({ "items": [{ "receipt": "r", "deliveryIdentifier": "d", "outcome": "expired" }] });
    fake.on(&format!("{ME}/webhook/whk_1/feed/ack"), (200, expired));
    // The port is taken, so that no other test listens there.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 1], 0).into()).expect("a port is free");
    let closed = socket.local_addr().expect("it has an address");
    let ended = listened(&person, &fake, &["--forward", &closed.to_string()], 1, Signal::SIGTERM).await;
    assert!(ended.err.contains("dlv_0 was answered too late"), "{ended:?}");
    assert!(ended.done().to_lowercase().contains("refused"));
    let acknowledged = fake.received(&format!("{ME}/webhook/whk_1/feed/ack"))[0].json();
    let reason = acknowledged["failed"][0]["reason"].as_str().expect("a reason").to_lowercase();
    assert!(reason.contains("refused"), "{reason}");
}

#[tokio::test]
async fn listen_without_an_address_prints_and_confirms_as_json() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    let body = r#"{"id":"evt_1","type":"booking.created","data":{"total":1.10}}"#;
    fake.deliver(&[body]);
    let said = listened(&person, &fake, &["--json"], 1, Signal::SIGINT).await.done();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["kind"], &lines[0]["signingSecret"]), (&json!("listening"), &json!(SECRET)));
    assert_eq!((&lines[1]["deliveryIdentifier"], &lines[1]["body"]), (&json!("dlv_0"), &json!(body)));
    assert_eq!(lines[2], json!({ "kind": "ended", "webhookIdentifier": "whk_1", "removed": true }));
    let acknowledged = fake.received(&format!("{ME}/webhook/whk_1/feed/ack"));
    assert_eq!(acknowledged[0].json(), json!({ "confirmed": ["rcp_0"] }));
}

#[tokio::test]
async fn listen_waits_for_a_service_that_fails_and_says_so_once() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    let feed = format!("{ME}/webhook/whk_1/feed/read");
    for _ in 0..2 {
        fake.on(&feed, problem(503, "service-unavailable", "Later."));
    }
    fake.deliver(&["{}"]);
    let ended = listened(&person, &fake, &[], 1, Signal::SIGINT).await;
    assert_eq!(ended.err.matches("Later. Trying again until the service answers.").count(), 1, "{ended:?}");
    assert!(ended.err.contains("answers again"), "{ended:?}");
}

#[tokio::test]
async fn listen_ends_when_its_webhook_is_removed_elsewhere() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    fake.on(&format!("{ME}/webhook/whk_1/feed/read"), problem(404, "webhook-not-found", "There is no such webhook."));
    let ended = person.run(&["listen"]).await;
    assert!(ended.err.contains("Run `waypost listen` again"), "{ended:?}");
    assert_eq!(ended.code, Some(1));
    assert_eq!(fake.received(&format!("{ME}/webhook/whk_1")).len(), 0);
}
