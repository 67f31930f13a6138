//! The program against a fake service: files, exit codes, messages, forwarding. The project's contract tests run it
//! against the real service.

mod events;
mod fake;
mod following;
mod listening;
mod profiles;
mod reference;
mod webhooks;

use std::{
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use self::fake::{Fake, problem};

const ME: &str = "/api/managing-entity/hotel";

/// A person at a machine with an empty configuration.
struct Person {
    home: TempDir,
}

/// A run's result.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ended {
    fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    fn failed(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{self:?}");
        self.err
    }
}

impl Person {
    fn new() -> Self {
        Self { home: tempfile::tempdir().expect("a folder") }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waypost"));
        command.args(arguments).env_clear().env("HOME", self.home.path());
        command.env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program while the fake responds.
    async fn run(&self, arguments: &[&str]) -> Ended {
        Self::ended(self.command(arguments).spawn().expect("it is built")).await
    }

    async fn ended(child: Child) -> Ended {
        let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.expect("no panic");
        output.expect("it ends").into()
    }

    /// Runs the program with this text on standard input.
    async fn run_with(&self, arguments: &[&str], text: &str) -> Ended {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("it is built");
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
        Self::ended(child).await
    }

    async fn log_in(&self, fake: &Fake) -> Ended {
        let arguments =
            ["login", "--address", &fake.address, "--entity", "hotel", "--client-id", "app", "--client-secret-stdin"];
        self.run_with(&arguments, "s3cret\n").await
    }

    fn file(&self) -> PathBuf {
        let folder = if cfg!(target_os = "macos") { "Library/Application Support" } else { "config" };
        self.home.path().join(folder).join("waypost/login.json")
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it exists").permissions().mode() & 0o777
}

#[tokio::test]
async fn a_damaged_login_stops_only_commands_that_need_it() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    std::fs::write(person.file(), "{").expect("it exists");
    let said = person.run(&["token"]).await.failed(4);
    assert!(said.contains("login.json has no readable login") && said.contains("waypost login"), "{said}");
    let mut command = person.command(&["token"]);
    command.env("WAYPOST_ADDRESS", &fake.address).env("WAYPOST_ENTITY", "hotel");
    command.env("WAYPOST_CLIENT_ID", "app2").env("WAYPOST_CLIENT_SECRET", "other");
    assert_eq!(Person::ended(command.spawn().expect("it is built")).await.done(), "a.b.c\n");
}

#[tokio::test]
async fn a_login_is_checked_and_kept_for_this_user_alone() {
    let fake = Fake::start().await;
    let person = Person::new();
    let said = person.log_in(&fake).await.done();
    assert!(said.contains("as app for hotel") && !said.contains("s3cret"), "{said}");
    assert_eq!((mode(&person.file()), mode(person.file().parent().expect("a folder"))), (0o600, 0o700));
    // The address names its issuer.
    let asked = &fake.received("/issuer/oauth2/token")[0];
    assert_eq!(asked.body, "grant_type=client_credentials&client_id=app&client_secret=s3cret");
    assert_eq!(person.run(&["token"]).await.done(), "a.b.c\n");
    for request in fake.everything() {
        assert_eq!(request.header("service-version"), "2.0", "{request:?}");
        assert!(request.header("user-agent").starts_with("waypost-cli/"), "{request:?}");
    }
    person.run(&["logout"]).await.done();
    assert!(!person.file().exists());
    assert!(person.run(&["token"]).await.failed(4).contains("waypost login"));
}

#[tokio::test]
async fn a_secret_from_standard_input_has_no_byte_order_mark() {
    let fake = Fake::start().await;
    let person = Person::new();
    let arguments =
        ["login", "--address", &fake.address, "--entity", "hotel", "--client-id", "app", "--client-secret-stdin"];
    person.run_with(&arguments, "\u{feff}s3cret\r\n").await.done();
    assert!(fake.received("/issuer/oauth2/token")[0].body.ends_with("client_secret=s3cret"));
}

#[tokio::test]
async fn a_refused_login_is_not_kept() {
    let fake = Fake::start().await;
    fake.on("/issuer/oauth2/token", problem(401, "invalid-client", "The client could not be authenticated."));
    let person = Person::new();
    let said = person.log_in(&fake).await.failed(4);
    assert!(said.starts_with("error: The client could not be authenticated.\nnext: run `waypost login`"), "{said}");
    assert!(!person.file().exists());
    fake.on(&format!("{ME}/webhook/event/list"), problem(403, "entity-not-covered", "Not this hotel."));
    let said = person.log_in(&fake).await.failed(4);
    assert!(
        said.contains("Not this hotel.") && said.contains("managing entity that your application covers"),
        "{said}"
    );
    assert!(!person.file().exists());
}

#[tokio::test]
async fn the_environment_replaces_a_login() {
    let fake = Fake::start().await;
    let person = Person::new();
    let mut command = person.command(&["token"]);
    command.env("WAYPOST_ADDRESS", &fake.address).env("WAYPOST_ENTITY", "hotel");
    command.env("WAYPOST_CLIENT_ID", "app2").env("WAYPOST_CLIENT_SECRET", "other");
    assert_eq!(Person::ended(command.spawn().expect("it is built")).await.done(), "a.b.c\n");
    assert!(fake.received("/issuer/oauth2/token")[0].body.contains("client_id=app2&client_secret=other"));
}

#[tokio::test]
async fn white_space_around_a_variable_is_not_sent() {
    let fake = Fake::start().await;
    let person = Person::new();
    for arguments in [&["token"][..], &["login"], &["token", "--profile", "default"]] {
        let mut command = person.command(arguments);
        command.env("WAYPOST_ADDRESS", format!("{}\r", fake.address)).env("WAYPOST_ENTITY", "hotel\r\n");
        command.env("WAYPOST_CLIENT_ID", " app").env("WAYPOST_CLIENT_SECRET", "s3cret\r");
        // A variable with nothing else is not set.
        command.env("WAYPOST_ISSUER", "\r").env("WAYPOST_PROFILE", "default\r");
        Person::ended(command.spawn().expect("it is built")).await.done();
    }
    for asked in fake.received("/issuer/oauth2/token") {
        assert!(asked.body.ends_with("client_id=app&client_secret=s3cret"), "{asked:?}");
    }
    assert_eq!(fake.received(&format!("{ME}/webhook/event/list")).len(), 1);
}

#[tokio::test]
async fn every_end_has_its_exit_code_and_says_what_to_do() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    for wrong in [
        &["nothing"][..],
        &["deliveries", "--limit", "0"],
        &["deliveries", "--follow", "--limit", "5"],
        &["trigger"],
        &["trigger", "booking.created", "--list"],
        &["publish", "--type", "booking.created", "--data", "{"],
        &["publish", "--type", "booking.created", "--data", "@nothing"],
        &["open", "B-1"],
        &["show", "B-1"],
        &["resend", "evt_1"],
        &["cancel", "whk_1"],
        &["why", "whk_1"],
        &["token", "--profile", "../other"],
        &["webhooks", "create", "--name", "a"],
        &["webhooks", "change", "whk_1"],
        &["webhooks", "change", "whk_1", "--enable", "--disable"],
        &["webhooks", "change", "whk_1", "--no-headers", "--header", "X-Tenant: hotel"],
        &["webhooks", "change", "whk_1", "--header", "X-Tenant: @nothing"],
        &["webhooks", "change", "whk_1", "--max-attempts-per-second", "fast"],
        // The program cannot ask for a confirmation.
        &["webhooks", "remove", "whk_1"],
        &["types", "booking.", "show", "booking.created"],
        &["recover", "whk_1", "--from", "yesterday"],
        &["verify", "--secret-file", "nothing", "--body", "nothing", "--headers", "nothing"],
        // Standard input can be read once.
        &["verify", "--secret-file", "-", "--body", "-", "--header", "webhook-id: msg_1"],
        &["listen", "--forward", "ftp://localhost"],
        &["login", "--address", "http://api.example", "--entity", "a", "--client-id", "b"],
        &["login", "--entity", "a"],
    ] {
        person.run(wrong).await.failed(2);
    }
    let resend = format!("{ME}/webhook/delivery/dlv_1/resend");
    fake.on(&resend, problem(403, "insufficient-scope", "The token lacks a scope."));
    assert!(person.run(&["resend", "dlv_1"]).await.failed(4).contains("the scope integrations.write"));
    fake.on(&resend, problem(503, "service-unavailable", "Later."));
    assert!(person.run(&["resend", "dlv_1"]).await.failed(1).contains("urn:uuid:0c61d53d"));
    fake.on(&resend, (502, json!("<html>")));
    assert!(person.run(&["resend", "dlv_1"]).await.failed(1).contains("answered with status 502"));
    drop(fake);
    let said = person.run(&["show", "dlv_1"]).await.failed(3);
    assert!(said.contains("cannot be reached") && said.contains("check your network"), "{said}");
}

#[test]
fn a_closed_standard_error_changes_no_exit_code() {
    let person = Person::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = person.command(&["token"]);
    assert_eq!(command.stderr(writer).status().expect("it runs").code(), Some(4), "there is no login");
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    // `trigger` without a webhook makes three requests with one token.
    fake.on(&format!("{ME}/webhook/whk_1/test"), problem(401, "unauthorized", "It is revoked."));
    let before = fake.received("/issuer/oauth2/token").len();
    let said = person.run(&["trigger", "booking.created"]).await.done();
    assert!(said.contains("whk_1 (Booking sync): dlv_9"), "{said}");
    assert_eq!(fake.received("/issuer/oauth2/token").len() - before, 2);
    let sent = fake.received(&format!("{ME}/webhook/whk_1/test"));
    assert_eq!(sent[1].json(), json!({ "type": "booking.created" }));
}

#[tokio::test]
async fn deliveries_are_plain_when_piped_and_paged_to_the_limit() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    let arguments = ["deliveries", "--failed", "--subject", "B-1 ü", "--webhook", "whk_1", "--limit", "150"];
    let said = person.run(&arguments).await.done();
    assert!(!said.contains('\u{1b}') && said.lines().count() == 3, "{said:?}");
    assert!(said.contains("retrying") && said.contains("500") && said.contains("dlv_2"), "{said}");
    assert!(said.contains("  Booking sync  "), "{said}");
    let asked = fake.received(&format!("{ME}/webhook/delivery/list"));
    let filters = "status=failed%2Cretrying&subject=B-1+%C3%BC&webhookIdentifier=whk_1";
    assert_eq!(asked[0].query, format!("limit=100&{filters}"));
    assert_eq!(asked[1].query, format!("limit=100&{filters}&cursor=more"));
    let listed: Value = serde_json::from_str(&person.run(&["deliveries", "--json"]).await.done()).expect("JSON");
    assert_eq!(listed[1]["id"], "dlv_2");
    let shown = person.run(&["show", "dlv_1"]).await.done();
    assert!(shown.contains("delivered") && shown.contains("204  87 ms"), "{shown}");
    assert!(shown.contains("webhook   Booking sync (whk_1)"), "{shown}");
    for command in ["resend", "cancel"] {
        let shown: Value = serde_json::from_str(&person.run(&[command, "dlv_1", "--json"]).await.done()).expect("JSON");
        assert_eq!(shown["id"], "dlv_1");
        assert_eq!(fake.received(&format!("{ME}/webhook/delivery/dlv_1/{command}")).len(), 1);
    }
}

#[tokio::test]
async fn a_list_begins_again_once_if_its_cursor_has_expired() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    let list = format!("{ME}/webhook/delivery/list");
    let expired = || problem(400, "invalid-cursor", "Ask again without cursor.");
    fake.on(&list, (200, json!({ "items": [], "nextCursor": "old" })));
    fake.on(&list, expired());
    let said = person.run(&["deliveries", "--limit", "150"]).await.done();
    assert!(said.contains("dlv_2"), "{said}");
    let asked = fake.received(&list);
    assert_eq!((asked[1].query.as_str(), asked[2].query.as_str()), ("limit=100&cursor=old", "limit=100"));
    fake.on(&list, expired());
    fake.on(&list, expired());
    person.run(&["deliveries"]).await.failed(1);
}

#[tokio::test]
async fn a_refusal_is_a_problem_in_one_line_for_programs() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    let refused = problem(403, "insufficient-scope", "The token lacks a scope.");
    fake.on(&format!("{ME}/webhook/delivery/dlv_1/resend"), refused.clone());
    let said = person.run(&["resend", "dlv_1", "--json"]).await.failed(4);
    assert_eq!((said.lines().count(), serde_json::from_str::<Value>(&said).expect("JSON")), (1, refused.1));
    let said = person.run(&["show", "B-1", "--json"]).await.failed(2);
    assert!(said.contains("error: "), "the service was not asked: {said}");
}

#[tokio::test]
async fn a_limit_of_the_service_is_waited_for() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    let resend = format!("{ME}/webhook/delivery/dlv_1/resend");
    fake.on(&resend, problem(429, "too-many-requests", "At most 300 a minute."));
    let ended = person.run(&["resend", "dlv_1"]).await;
    assert!(ended.err.contains("sending the request again in 1 s"), "{ended:?}");
    assert_eq!(ended.done(), "Attempt 1 of dlv_1 succeeded: 204.\n");
    assert_eq!(fake.received(&resend).len(), 2);
}

#[tokio::test]
async fn an_unknown_type_is_named_before_a_missing_webhook() {
    let fake = Fake::start().await;
    let person = Person::new();
    person.log_in(&fake).await.done();
    fake.on(&format!("{ME}/webhook/list"), (200, json!([])));
    let unknown = problem(404, "event-type-not-found", "The event type must be a key in the catalogue.");
    fake.on(&format!("{ME}/webhook/event/type/booking.creatd"), unknown);
    let said = person.run(&["trigger", "booking.creatd"]).await.failed(2);
    assert!(said.contains("must be a key in the catalogue"), "{said}");
}
