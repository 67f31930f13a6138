//! The receivers in docs/receiving-webhooks.md and docs/receivers.md: their programs, run on a free port, and requests
//! to them.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

use super::{Hook, LONG, descendants, memory_kilobytes, now, project, signature, until};

/// The body of a small event.
pub const EVENT: &[u8] = br#"{"id":"evt_1","type":"booking.created","data":{}}"#;

/// A running receiver.
pub struct Running {
    /// The receiver's process.
    pub child: Child,
    port: u16,
    log: PathBuf,
    _folder: TempDir,
}

impl Running {
    /// Starts a receiver with this secret, and waits until it listens.
    pub async fn start(mut command: Command, port: u16, secret: Option<&str>) -> Self {
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
    pub fn runs(&mut self) {
        let ended = self.child.try_wait().expect("a child can be looked at");
        assert!(ended.is_none(), "the receiver has ended: {ended:?}\n{}", self.log());
    }

    /// The receiver's output so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).expect("it has a log")).into_owned()
    }

    /// The memory that the receiver occupies.
    pub fn memory_kilobytes(&self) -> u64 {
        let own = i32::try_from(std::process::id()).expect("a process's number");
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        let process = descendants(own).into_iter().find(|process| Some(process.id) == id).expect("it runs");
        memory_kilobytes(&process)
    }

    /// Opens a connection, and sends the start of a request.
    pub async fn begin(&self, start: &[u8]) -> TcpStream {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).await.expect("it listens");
        connection.write_all(start).await.expect("a start is taken");
        connection
    }

    /// Sends a complete request, and returns the response's status, if a response arrives before the connection ends.
    pub async fn answer(&self, request: &[u8]) -> Option<u16> {
        self.text_of_answer(request).await.split(' ').nth(1)?.parse().ok()
    }

    /// Sends a complete request, and returns everything received before the connection ends.
    pub async fn text_of_answer(&self, request: &[u8]) -> String {
        let (mut read, mut write) =
            TcpStream::connect(("127.0.0.1", self.port)).await.expect("it listens").into_split();
        let mut answer = Vec::new();
        // Send and read concurrently: a response may arrive before the request is complete, and sending then stops.
        let exchange = async { tokio::join!(write.write_all(request), read.read_to_end(&mut answer)) };
        let _ = timeout(LONG, exchange).await.expect("the exchange ends");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Fails unless the receiver is still running and accepts an event.
    pub async fn takes_events(&mut self, hook: &Hook, after: &str) {
        let status = self.answer(&genuine(hook, EVENT)).await;
        self.runs();
        assert_eq!(status, Some(204), "after {after}: {}", self.log());
    }
}

/// The Python receiver, its `verify` with a package, its part for a public key, and its `store` with a database.
pub fn python_blocks() -> [String; 4] {
    blocks("python").try_into().unwrap_or_else(|blocks| panic!("the pages have four programs in Python: {blocks:?}"))
}

/// The Node.js receiver, and its part for a public key.
pub fn node_blocks() -> [String; 2] {
    blocks("js").try_into().unwrap_or_else(|blocks| panic!("the pages have two programs in Node.js: {blocks:?}"))
}

/// The only program in this language on the two pages.
pub fn only_block(language: &str) -> String {
    let [block] =
        <[String; 1]>::try_from(blocks(language)).unwrap_or_else(|blocks| panic!("one of {language}: {blocks:?}"));
    block
}

/// The two pages' programs in this language.
fn blocks(language: &str) -> Vec<String> {
    let pages = ["docs/receiving-webhooks.md", "docs/receivers.md"];
    let pages = pages.map(|page| fs::read_to_string(project().join(page)).expect("the page is text")).concat();
    let fence = format!("\n```{language}\n");
    let begun = pages.split(&fence).skip(1);
    begun.map(|begun| begun.split("```\n").next().expect("a split has a first part").to_owned()).collect()
}

/// The program, changed to listen on a port other than the documented one.
pub fn at(port: u16, program: &str) -> String {
    assert!(program.contains("8080"), "it listens on the documented port");
    program.replace("8080", &port.to_string())
}

/// A temporary folder for a program.
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Writes a program to a file in a folder; returns the file's path.
pub fn written(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a file in a temporary folder");
    path
}

/// A command that runs a program with these arguments.
pub fn with(program: &Path, arguments: &[&Path]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Sets or removes the signing secret in a receiver's environment.
pub fn with_secret(command: &mut Command, secret: Option<&str>) {
    command.env_remove("WEBHOOK_SECRET");
    if let Some(secret) = secret {
        command.env("WEBHOOK_SECRET", secret);
    }
}

/// A request with any signature, timestamp and announced length.
pub fn request(timestamp: &str, signatures: &[u8], length: &str, body: &[u8]) -> Vec<u8> {
    let head = "POST /events HTTP/1.1\r\nHost: hooks.example.com\r\nConnection: close\r\nwebhook-id: evt_1\r\n";
    let mut request = format!("{head}webhook-timestamp: {timestamp}\r\nwebhook-signature: ").into_bytes();
    request.extend(signatures);
    request.extend(format!("\r\nContent-Length: {length}\r\n\r\n").bytes());
    request.extend(body);
    request
}

/// A request with a signature from this time.
pub fn signed(hook: &Hook, timestamp: i64, body: &[u8]) -> Vec<u8> {
    let timestamp = timestamp.to_string();
    let signature = signature(&hook.secret, "evt_1", &timestamp, body);
    request(&timestamp, signature.as_bytes(), &body.len().to_string(), body)
}

/// A request with a signature from now.
pub fn genuine(hook: &Hook, body: &[u8]) -> Vec<u8> {
    signed(hook, now(), body)
}
