//! `waypost`, the command-line program for integrators, used with the service.

use std::{
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Instant,
};

use contract_test::contract_test;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::harness::{Behaviour, Entity, LONG, Receiver, Suite, is_signed_by, local, until};

/// The program, logged in as the platform's application.
pub struct Cli {
    env: [(&'static str, String); 5],
    /// A folder with an empty configuration.
    home: tempfile::TempDir,
}

/// The result of running the program.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Cli {
    pub fn of(suite: &Suite, entity: &Entity) -> Self {
        // The program resolves names as the system does, but a stack's names are made up.
        suite.bundle();
        let env = &suite.api.env;
        Self {
            env: [
                ("WAYPOST_ADDRESS", env["BASE_URL"].clone()),
                ("WAYPOST_ISSUER", env["AUTH_URL"].clone()),
                ("WAYPOST_ENTITY", entity.id.clone()),
                ("WAYPOST_CLIENT_ID", env["PLATFORM_CLIENT_ID"].clone()),
                ("WAYPOST_CLIENT_SECRET", env["PLATFORM_CLIENT_SECRET"].clone()),
            ],
            home: tempfile::tempdir().expect("a folder"),
        }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let program = local().expect("the bundle runs it").with_file_name("waypost");
        let mut command = Command::new(program);
        command.args(arguments).envs(self.env.iter().cloned()).kill_on_drop(true);
        command.env("HOME", self.home.path()).env("XDG_CONFIG_HOME", self.home.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program, and again while it reports a 503, as it asks its user to.
    pub async fn run(&self, arguments: &[&str]) -> Ended {
        let began = Instant::now();
        loop {
            let ended = timeout(LONG, self.command(arguments).output()).await.expect("it ends").expect("it can be run");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let ended = Ended { code: ended.status.code(), out: text(&ended.stdout), err: text(&ended.stderr) };
            let is_unavailable =
                ["try again; if it still fails", r#""status":503"#].iter().any(|said| ended.err.contains(*said));
            if !is_unavailable || began.elapsed() > LONG {
                return ended;
            }
        }
    }

    /// The JSON value printed by a successful run.
    pub async fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.run(&[arguments, &["--json"]].concat()).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    async fn listen(&self, arguments: &[&str]) -> Listening {
        let mut command = self.command(&[&["listen", "--json"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it can be run");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut listening = Listening { child, lines, begun: Value::Null };
        listening.begun = listening.next().await;
        listening
    }
}

struct Listening {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// The first line that it printed.
    begun: Value,
}

impl Listening {
    async fn next(&mut self) -> Value {
        let line = timeout(LONG, self.lines.next_line()).await.expect("a line comes").expect("it is text");
        serde_json::from_str(&line.expect("it still runs")).expect("each line is JSON")
    }

    fn webhook(&self) -> &str {
        self.begun["webhookIdentifier"].as_str().expect("it names its webhook")
    }

    /// Ends the program as Ctrl-C does.
    async fn end(mut self) -> (Value, ExitStatus) {
        let id = self.child.id().expect("it runs").try_into().expect("a process");
        kill(Pid::from_raw(id), Signal::SIGINT).expect("it runs");
        let last = self.next().await;
        (last, timeout(LONG, self.child.wait()).await.expect("it ends").expect("it can be awaited"))
    }
}

fn text<'a>(json: &'a Value, member: &str) -> &'a str {
    json[member].as_str().unwrap_or_else(|| panic!("{member} in {json:#}"))
}

#[contract_test]
async fn the_command_line_shows_and_resends_deliveries(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(410), Behaviour::status(204)])).await;
    let delivery = entity.publish(json!({ "bookingIdentifier": "B-77" })).await;
    entity.until_status(&delivery, &["failed"]).await;
    // A response of 410 disables the webhook.
    entity.changed(&hook.id, json!({ "enabled": true })).await;

    let arguments = ["deliveries", "--failed", "--subject", "B-77", "--webhook", &hook.id];
    let listed = until("the delivery is listed", LONG, async || {
        let listed = cli.json(&arguments).await;
        (listed[0]["status"] == "failed").then_some(listed)
    })
    .await;
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["id"]), (Some(1), &json!(delivery)), "{listed:#}");
    let table = cli.run(&arguments).await.out;
    assert!(table.contains(&delivery) && table.contains("410") && !table.contains('\u{1b}'), "{table:?}");

    let shown = cli.run(&["show", &delivery]).await.out;
    assert!(shown.contains("failed") && shown.contains("B-77"), "{shown}");
    assert!(shown.contains(&format!("{} ({})", text(&hook.json, "name"), hook.id)), "{shown}");
    let wrong = cli.run(&["resend", "B-77"]).await;
    assert!(wrong.code == Some(2) && wrong.err.contains("`waypost why B-77`"), "{wrong:?}");
    let resent = cli.json(&["resend", &delivery]).await;
    assert_eq!((&resent["id"], &resent["status"]), (&json!(delivery), &json!("pending")), "{resent:#}");
    entity.until_status(&delivery, &["delivered"]).await;
    assert_eq!(cli.json(&["show", &delivery]).await["attemptCount"], 2);

    let again = cli.run(&["resend", &delivery]).await;
    // A busy machine may make the attempt after the program has ended.
    let results = [
        format!("Attempt 3 of {delivery} succeeded: 204."),
        format!("The attempt of {delivery} has not finished yet"),
        format!("{delivery} has not been sent again yet"),
    ];
    assert!(again.code == Some(0) && results.iter().any(|result| again.out.contains(result)), "{again:?}");
}

#[contract_test]
async fn resend_names_a_feed_and_an_earlier_delivery_that_held_this_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let feed = entity.hook_with(json!({ "name": "feed", "delivery": "pull", "eventList": [] })).await;
    let unread = entity.publish(json!({ "bookingIdentifier": "B-79" })).await;
    entity.until_delivery(&unread, "waits for a reader", |delivery| delivery["waitingFor"] == "reader").await;
    let said = cli.run(&["resend", &unread]).await;
    assert!(said.code == Some(0) && said.out.contains("until a program reads the webhook's feed."), "{said:?}");
    assert!(!said.out.contains("next attempt"), "{said:?}");
    entity.changed(&feed.id, json!({ "enabled": false })).await;

    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::answer(503, &[("retry-after", "3600")], "")]);
    entity.hook_with(json!({ "name": "ordered", "eventUrl": url, "eventList": [], "order": "subject" })).await;
    let first = entity.publish(json!({ "bookingIdentifier": "B-80" })).await;
    entity.until_status(&first, &["retrying"]).await;
    let held = entity.publish(json!({ "bookingIdentifier": "B-80" })).await;
    entity.until_delivery(&held, "waits for its turn", |delivery| delivery["waitingFor"] == "order").await;
    let said = cli.run(&["resend", &held]).await;
    let notice = format!("A resend does not wait for the earlier delivery about B-80 ({first})");
    assert!(said.code == Some(0) && said.out.contains(&notice), "{said:?}");
}

#[contract_test]
async fn the_command_line_sends_the_sample_of_a_type(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let unknown = cli.run(&["trigger", "booking.creatd"]).await;
    assert!(unknown.code == Some(2) && unknown.err.contains("booking.created"), "{unknown:?}");
    let none = cli.run(&["trigger", "booking.created"]).await;
    assert!(none.code == Some(2) && none.err.contains("there is no webhook"), "{none:?}");
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let sent = cli.json(&["trigger", "booking.cancelled"]).await;
    entity.until_status(sent["deliveryIdentifier"].as_str().expect("one delivery"), &["delivered"]).await;
    let event = receiver.until("/", 1).await[0].json();
    assert_eq!((&event["type"], &event["test"]), (&json!("booking.cancelled"), &json!(true)));
    let data = r#"{"bookingNumber": "B-7", "total": 1.10}"#;
    let sent = cli.json(&["trigger", "booking.created", "--data", data]).await;
    entity.until_status(sent["deliveryIdentifier"].as_str().expect("one delivery"), &["delivered"]).await;
    let received = receiver.until("/", 2).await.remove(1);
    assert_eq!(received.json()["test"], true);
    assert!(String::from_utf8_lossy(&received.body).ends_with(&format!(r#""data":{data}}}"#)), "{received:?}");
    let refused = cli.run(&["trigger", "webhook.test", "--data", data]).await;
    assert!(refused.code == Some(2) && refused.err.contains("name another `type`"), "{refused:?}");
    for filter in [r#"{"a": [1], "a": [2]}"#, r#"{"a": {"b": [1], "b": [2]}}"#] {
        let twice = cli.run(&["listen", "--filter", filter]).await;
        assert!(twice.code == Some(2) && twice.err.contains("must be given only once"), "{twice:?}");
    }
}

#[contract_test]
async fn the_command_line_logs_in_and_says_why_it_is_refused(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let mut cli = Cli::of(&suite, &entity);
    let said = cli.run(&["login"]).await;
    assert!(said.code == Some(0) && said.out.contains(&entity.id), "{said:?}");
    let token = cli.run(&["token"]).await;
    assert!(token.code == Some(0) && token.out.matches('.').count() == 2, "{token:?}");
    let missing = cli.run(&["show", "dlv_01m7w5gmev32p3wwt3y0b8j32h"]).await;
    assert!(missing.code == Some(1) && missing.err.contains("waypost deliveries"), "{missing:?}");
    cli.env[4].1 = "wrong".to_owned();
    let refused = cli.run(&["deliveries"]).await;
    assert!(refused.code == Some(4) && refused.err.contains("next: run `waypost login`"), "{refused:?}");
    cli.env[3].1 = suite.api.env["CLIENT_ID"].clone();
    cli.env[4].1 = suite.api.env["CLIENT_SECRET"].clone();
    let foreign = cli.run(&["deliveries"]).await;
    assert!(foreign.code == Some(4) && foreign.err.contains("managing entity"), "{foreign:?}");
}

#[contract_test]
async fn listen_forwards_events_as_an_endpoint_would_get_them(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    let refusal = Behaviour::answer(500, &[], "no\ndatabase");
    let target = receiver.on("/hooks", [refusal, Behaviour::status(204)]);
    let mut listening = cli.listen(&["--forward", &target, "--types", "booking.*"]).await;
    let delivery = entity.publish(json!({ "bookingIdentifier": "B-1", "total": 1.10 })).await;
    let failed = listening.next().await;
    assert_eq!(
        (&failed["deliveryIdentifier"], &failed["failure"]),
        (&json!(delivery), &json!("HTTP 500: no database"))
    );
    // The second attempt is made on the service's schedule.
    let confirmed = listening.next().await;
    assert_eq!((&confirmed["attemptNumber"], &confirmed["httpStatus"]), (&json!(2), &json!(204)), "{confirmed:#}");
    let shown = entity.until_status(&delivery, &["delivered"]).await;
    let secret = listening.begun["signingSecret"].as_str().expect("it shows the secret").to_owned();
    for received in receiver.received("/hooks") {
        assert!(is_signed_by(&received, &secret), "{received:?}");
        assert_eq!(received.header("service-delivery-id"), delivery);
        assert_eq!(received.json(), shown["event"]);
    }
    let webhook = listening.webhook().to_owned();
    let (ended, status) = listening.end().await;
    assert_eq!((&ended["removed"], status.code()), (&json!(true), Some(0)));
    entity.get(&format!("/webhook/{webhook}")).refused(404, "webhook-not-found").await;
}

#[contract_test]
async fn trigger_reaches_the_listen_of_this_machine(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    let mut listening = cli.listen(&[]).await;
    // The program waits a few seconds for the first attempt, which may come later on a busy machine.
    let mut sent = Value::Null;
    let mut arrived = Value::Null;
    for _ in 0..5 {
        if sent["status"] == "delivered" {
            break;
        }
        sent = cli.json(&["trigger", "payment.refunded"]).await;
        assert_eq!(sent["webhookIdentifier"], listening.webhook());
        arrived = listening.next().await;
        assert_eq!(arrived["deliveryIdentifier"], sent["deliveryIdentifier"]);
    }
    assert_eq!(sent["status"], "delivered");
    let body: Value = serde_json::from_str(arrived["body"].as_str().expect("it prints bodies")).expect("JSON");
    assert_eq!((&body["type"], &body["test"]), (&json!("payment.refunded"), &json!(true)));
    let delivery = sent["deliveryIdentifier"].as_str().expect("one delivery");
    entity.until_status(delivery, &["delivered"]).await;
    listening.end().await;
}
