//! Webhooks, event types, rights and signed requests: the requests, the output and the exit codes.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{
    ME, Person,
    fake::{Fake, SECRET, problem, webhook},
};

async fn logged_in(fake: &Fake) -> Person {
    let person = Person::new();
    person.log_in(fake).await.done();
    person
}

#[tokio::test]
async fn webhooks_are_listed_and_shown_with_their_state_and_address() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let said = person.run(&["webhooks"]).await.done();
    assert!(said.contains("Booking sync  whk_1  active  https://hooks.example.com/waypost"), "{said}");
    let mut narrow = person.command(&["webhooks"]);
    narrow.env("COLUMNS", "40");
    let said = Person::ended(narrow.spawn().expect("it is built")).await.done();
    assert!(said.lines().all(|line| line.chars().count() <= 40) && said.contains("whk_1"), "{said}");
    let shown = person.run(&["webhooks", "show", "whk_1"]).await.done();
    assert!(shown.contains("types      booking.*"), "{shown}");
    let listed: Value = serde_json::from_str(&person.run(&["webhooks", "--json"]).await.done()).expect("JSON");
    assert_eq!(listed[0]["deliveryState"], "active");
    fake.on(&format!("{ME}/webhook/list"), (200, json!([])));
    let ended = person.run(&["webhooks"]).await;
    assert!(ended.err.contains("waypost webhooks create") && ended.done().is_empty());
    fake.on(&format!("{ME}/webhook/whk_2"), problem(404, "webhook-not-found", "There is no such webhook."));
    let said = person.run(&["webhooks", "show", "whk_2"]).await.failed(1);
    assert!(said.contains("next: `waypost webhooks` lists"), "{said}");
}

#[tokio::test]
async fn a_pause_by_the_owner_is_marked_in_the_list_and_shown_with_its_times() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let paused = json!({
        "id": "whk_1", "name": "Booking sync", "deliveryState": "paused", "eventUrl": "https://hooks.example.com/waypost",
        "eventList": [], "order": "none", "payload": "full", "signature": "hmac", "headers": {}, "metadata": {},
        "createdDate": "2026-11-20T09:45:00.123Z", "pausedBy": "owner", "pausedSince": "2026-11-20T10:00:00.000Z",
        "pausedUntil": "2026-11-21T06:00:00.000Z",
    });
    fake.on(&format!("{ME}/webhook/list"), (200, json!([paused])));
    let said = person.run(&["webhooks"]).await.done();
    assert!(said.contains("whk_1  paused by its owner  https://hooks.example.com/waypost"), "{said}");
    fake.on(&format!("{ME}/webhook/whk_1"), (200, paused));
    let waiting = |number: u32, reason: &str| json!({ "id": format!("dlv_{number}"), "waitingFor": reason });
    let page = json!({ "items": [waiting(1, "pause"), waiting(2, "schedule"), waiting(3, "pause")] });
    fake.on(&format!("{ME}/webhook/delivery/list"), (200, page));
    let shown = person.run(&["webhooks", "show", "whk_1"]).await.done();
    assert!(shown.contains("by its owner since 2026-11-20 10:00:00Z until 2026-11-21 06:00:00Z"), "{shown}");
    assert!(shown.contains("waiting    3 (2 pause, 1 schedule)"), "{shown}");
    let asked = fake.received(&format!("{ME}/webhook/delivery/list"));
    assert_eq!(asked[0].query, "limit=100&status=pending%2Cretrying&webhookIdentifier=whk_1");
}

#[tokio::test]
async fn an_enabled_webhook_is_shown_with_the_commands_for_missed_events() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let path = format!("{ME}/webhook/whk_1");
    let mut disabled = webhook("disabled");
    disabled["failingSince"] = json!("2026-11-15T09:45:00.000Z");
    disabled["disabledDate"] = json!("2026-11-20T09:45:00.123Z");
    let commands = "\n  waypost recover whk_1 --from 2026-11-15T09:40:00.000Z\n  waypost replay whk_1 --from \
                    2026-11-20T09:45:00.123Z --dry-run\n";
    fake.on(&path, (200, disabled.clone()));
    let said = person.run(&["webhooks", "change", "whk_1", "--enable"]).await.done();
    assert!(said.contains("state      active") && said.contains(commands), "{said}");
    fake.on(&path, (200, disabled));
    let ended = person.run(&["webhooks", "change", "whk_1", "--enable", "--json"]).await;
    assert!(ended.err.contains(commands), "{ended:?}");
    let changed: Value = serde_json::from_str(&ended.done()).expect("JSON");
    assert_eq!(changed["deliveryState"], "active");
    let said = person.run(&["webhooks", "change", "whk_1", "--enable"]).await.done();
    assert!(!said.contains("waypost recover"), "it was enabled before: {said}");
}

#[tokio::test]
async fn a_disabled_webhook_is_named_in_the_next_step() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    fake.on(&format!("{ME}/webhook/whk_1/test"), problem(409, "webhook-disabled", "The webhook is disabled."));
    let said = person.run(&["webhooks", "test", "whk_1"]).await.failed(1);
    assert!(said.contains("next: `waypost webhooks change whk_1 --enable` enables it"), "{said}");
}

#[tokio::test]
async fn secret_headers_come_from_files_and_are_never_printed() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let path = person.home.path().join("token.txt");
    std::fs::write(&path, "Bearer s3cret\n").expect("the folder can be written");
    let secret = format!("Authorization: @{}", path.display());
    let headers = ["--header", &secret, "--header", "X-Tenant: hotel"];
    let create = ["webhooks", "create", "--name", "Booking sync", "--url", "https://hooks.example.com/waypost"];
    let further = ["--max-attempts-per-second", "20", "--signature", "ed25519", "--metadata", r#"{"system": "pms-7"}"#];
    let said = person.run(&[&create[..], &headers, &further].concat()).await;
    assert!(!said.err.contains("Bearer") && !said.done().contains("Bearer"));
    let created = fake.received(&format!("{ME}/webhook"))[0].json();
    assert_eq!(created["headers"], json!({ "Authorization": "Bearer s3cret", "X-Tenant": "hotel" }));
    assert_eq!((&created["maxAttemptsPerSecond"], &created["signature"]), (&json!(20), &json!("ed25519")));
    assert_eq!(created["metadata"], json!({ "system": "pms-7" }));

    let piped = [&create[..], &["--header", "Authorization: @-"]].concat();
    let said = person.run_with(&piped, "Bearer s3cret\n").await;
    assert!(!said.err.contains("Bearer") && !said.done().contains("Bearer"));
    let created = fake.received(&format!("{ME}/webhook"))[1].json();
    assert_eq!(created["headers"], json!({ "Authorization": "Bearer s3cret" }));

    let change = |options: &[&'static str]| [&["webhooks", "change", "whk_1"], options].concat();
    person.run(&change(&["--header", "X-Tenant: ***"])).await.done();
    person.run(&change(&["--no-headers", "--max-attempts-per-second", "null", "--metadata", "null"])).await.done();
    let changed = fake.received(&format!("{ME}/webhook/whk_1"));
    assert_eq!(changed[0].json(), json!({ "headers": { "X-Tenant": "***" } }));
    assert_eq!(changed[1].json(), json!({ "headers": {}, "maxAttemptsPerSecond": null, "metadata": null }));

    // The message does not quote the value.
    let refused = person.run(&change(&["--header", "s3cret"])).await.failed(2);
    assert!(refused.contains("--header") && !refused.contains("s3cret"), "{refused}");
}

#[tokio::test]
async fn a_new_webhook_is_shown_with_its_public_key() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let keys = json!([{ "key": "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=" }]);
    let created = json!({ "id": "whk_2", "name": "Accounting", "signingSecret": SECRET, "publicKeys": keys });
    fake.on(&format!("{ME}/webhook"), (201, created));
    let url = "https://accounting.example.com/events";
    let create = ["webhooks", "create", "--name", "Accounting", "--url", url, "--signature", "ed25519"];
    let said = person.run(&create).await.done();
    assert!(said.contains(SECRET) && said.contains("\nPublic key: whpk_1SiA4o9h"), "{said}");
}

#[tokio::test]
async fn a_webhook_is_created_and_changed_with_the_given_settings_alone() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let create = ["webhooks", "create", "--name", "Booking sync", "--url", "https://hooks.example.com/waypost"];
    let said = person.run(&create).await.done();
    assert!(said.contains(&format!("shown only now: {SECRET}")), "{said}");
    let filter = r#"{"a": [1.10]}"#;
    let settings =
        ["--types", "booking.*,payment.refunded", "--order", "subject", "--payload", "thin", "--filter", filter];
    person.run(&[&create[..], &settings].concat()).await.done();
    let created = fake.received(&format!("{ME}/webhook"));
    let url = "https://hooks.example.com/waypost";
    assert_eq!(created[0].json(), json!({ "name": "Booking sync", "eventUrl": url, "eventList": [] }));
    assert_eq!(
        (&created[1].json()["eventList"][1], &created[1].json()["order"]),
        (&json!("payment.refunded"), &json!("subject"))
    );
    assert!(created[1].body.contains(&format!(r#""eventFilter":{filter}"#)), "{created:?}");

    let change = |options: &[&'static str]| [&["webhooks", "change", "whk_1"], options].concat();
    let said = person.run(&change(&["--disable"])).await.done();
    assert!(said.contains("state      active"), "{said}");
    person.run(&change(&["--enable", "--types", "all", "--filter", "null"])).await.done();
    person.run(&change(&["--retries", "none", "--timeout", "5"])).await.done();
    let mut changed = fake.received(&format!("{ME}/webhook/whk_1"));
    changed.retain(|request| request.method == "PATCH");
    assert_eq!(changed[0].json(), json!({ "enabled": false }));
    assert_eq!(changed[1].json(), json!({ "enabled": true, "eventList": [], "eventFilter": null }));
    assert_eq!(changed[2].json(), json!({ "retries": "none", "timeoutSeconds": 5 }));
}

#[tokio::test]
async fn a_signing_secret_whose_response_was_lost_is_requested_with_its_key() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let create = ["webhooks", "create", "--name", "Booking sync", "--url", "https://hooks.example.com/waypost"];
    for (path, arguments) in [
        (format!("{ME}/webhook"), &create[..]),
        (format!("{ME}/webhook/whk_1/secret"), &["webhooks", "rotate", "whk_1"]),
    ] {
        fake.on(&path, problem(503, "service-unavailable", "Later."));
        assert!(person.run(arguments).await.done().contains(SECRET));
        for _ in 0..3 {
            fake.on(&path, problem(503, "service-unavailable", "Later."));
        }
        let said = person.run(arguments).await.failed(1);
        person.run(&[arguments, &["--idempotency-key", "mine"]].concat()).await.done();
        let sent = fake.received(&path);
        let keys: Vec<_> = sent.iter().map(|request| request.header("idempotency-key")).collect();
        assert!(keys.len() == 6 && keys[0] == keys[1] && keys[2] == keys[4] && keys[1] != keys[2], "{keys:?}");
        assert!(keys[0].len() == 32 && keys[5] == "mine", "{keys:?}");
        assert!(said.contains(&format!("`--idempotency-key {}` within 10 minutes", keys[4])), "{said}");
    }
}

#[tokio::test]
async fn a_webhook_is_rotated_paused_resumed_tested_and_removed() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let said = person.run(&["webhooks", "rotate", "whk_1"]).await.done();
    assert!(said.contains(SECRET) && said.contains("is valid until 2026-11-21 09:45:00Z"), "{said}");
    person.run(&["webhooks", "rotate", "whk_1", "--at-once"]).await.done();
    let rotated = fake.received(&format!("{ME}/webhook/whk_1/secret"));
    assert_eq!(rotated[0].json(), json!({}));
    assert_eq!(rotated[1].json(), json!({ "overlapSeconds": 0, "endPrevious": true }));
    let mut ending = webhook("paused");
    ending["pausedUntil"] = json!("2100-01-01T00:00:00.000Z");
    fake.on(&format!("{ME}/webhook/whk_1/pause"), (200, ending));
    let said = person.run(&["webhooks", "pause", "whk_1", "--until", "2100-01-01T00:00:00Z"]).await.done();
    assert!(said.contains("whk_1 is paused until 2100-01-01 00:00:00Z."), "{said}");
    let said = person.run(&["webhooks", "pause", "whk_1"]).await.done();
    assert!(said.contains("paused until you resume it. `waypost webhooks resume whk_1`"), "{said}");
    let paused = fake.received(&format!("{ME}/webhook/whk_1/pause"));
    assert_eq!(paused[0].json(), json!({ "until": "2100-01-01T00:00:00Z" }));
    fake.on(&format!("{ME}/webhook/whk_1"), (200, webhook("paused")));
    let said = person.run(&["webhooks", "resume", "whk_1"]).await.done();
    assert!(said.contains("whk_1 is failing") && said.contains("waypost deliveries --webhook whk_1"), "{said}");
    let said = person.run(&["webhooks", "resume", "whk_1"]).await.done();
    assert_eq!(said, "whk_1 was not paused; it is unchanged: failing.\n");
    fake.on(&format!("{ME}/webhook/delivery/dlv_9"), (200, json!({ "status": "delivered" })));
    let said = person.run(&["webhooks", "test", "whk_1"]).await.done();
    assert!(said.contains("dlv_9.\nIt was delivered."), "{said}");
    let error = "connect: the endpoint refused the connection";
    let failed =
        json!({ "status": "retrying", "attempts": [{ "attemptNumber": 1, "httpStatus": null, "error": error }] });
    fake.on(&format!("{ME}/webhook/delivery/dlv_9"), (200, failed));
    let said = person.run(&["webhooks", "test", "whk_1"]).await.done();
    assert!(said.contains(&format!("The attempt failed: {error}. The delivery is `retrying`")), "{said}");
    let removal = person.run(&["webhooks", "remove", "whk_1"]).await.failed(2);
    assert!(removal.contains("add --yes"), "{removal}");
    assert_eq!(person.run(&["webhooks", "remove", "whk_1", "--yes"]).await.done(), "It is removed.\n");
}

#[tokio::test]
async fn types_are_listed_by_their_beginning_and_shown_with_samples() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let said = person.run(&["types"]).await.done();
    assert!(said.contains("booking.created") && said.contains("payment.refunded"), "{said}");
    let listed: Value = serde_json::from_str(&person.run(&["types", "pay", "--json"]).await.done()).expect("JSON");
    assert_eq!(listed, json!([{ "label": "Payment refunded", "value": "payment.refunded" }]));
    let shown = person.run(&["types", "show", "booking.created"]).await.done();
    assert!(shown.contains("A booking was made.") && shown.contains("\"nights\": 3"), "{shown}");
    let ended = person.run(&["types", "x"]).await;
    assert!(ended.err.contains("No event type begins with `x`") && ended.done().is_empty());
}

#[tokio::test]
async fn whoami_shows_the_rights_of_a_token_without_the_secret() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let said = person.run(&["whoami"]).await.done();
    assert!(said.contains("integrations.write") && said.contains("valid for 1 h 0 min"), "{said}");
    assert!(!said.contains("s3cret") && !said.contains("a.b.c"), "{said}");
    let asked = &fake.received("/issuer/oauth2/introspect")[0];
    assert_eq!(asked.body, "token=a.b.c&client_id=app&client_secret=s3cret");
    let rights: Value = serde_json::from_str(&person.run(&["whoami", "--json"]).await.done()).expect("JSON");
    assert_eq!(rights["managing_entities"], json!(["hotel"]));
}

#[tokio::test]
async fn a_recovery_has_the_given_range_and_prints_its_numbers() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let range = ["--from", "2026-11-19T22:00:00Z", "--until", "2026-11-20T06:00:00+01:00", "--include", "failed"];
    let said = person.run(&[&["recover", "whk_1"], &range[..]].concat()).await.done();
    assert!(said.contains("being sent again: 12 (10 failed or cancelled, 2 waiting)"), "{said}");
    let progress = "`waypost recover whk_1 --from 2026-11-19T22:00:00.000Z --until 2026-11-20T05:00:00.000Z --include \
                    failed` shows how many are left.";
    assert!(said.contains(progress), "{said}");
    let sent = fake.received(&format!("{ME}/webhook/whk_1/recover"))[0].json();
    let expected =
        json!({ "createdFrom": "2026-11-19T22:00:00Z", "createdUntil": "2026-11-20T05:00:00Z", "include": "failed" });
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_recovery_of_a_paused_webhook_says_when_deliveries_are_sent() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let mut paused = webhook("paused");
    paused["pausedBy"] = json!("owner");
    fake.on(&format!("{ME}/webhook/whk_1"), (200, paused.clone()));
    let said = person.run(&["recover", "whk_1", "--from", "5m"]).await.done();
    assert!(
        said.contains("on hold: 12") && said.contains("until you resume it: `waypost webhooks resume whk_1`"),
        "{said}"
    );
    assert!(!said.contains("being sent again"), "{said}");
    paused["pausedBy"] = json!("service");
    paused["pausedUntil"] = json!("2026-11-20T09:50:00.000Z");
    fake.on(&format!("{ME}/webhook/whk_1"), (200, paused));
    let none = json!({ "count": 0, "countIsExact": true, "failed": 0, "waiting": 0, "message": "None has failed." });
    fake.on(&format!("{ME}/webhook/whk_1/recover"), (202, none));
    let said = person.run(&["recover", "whk_1", "--from", "5m"]).await.done();
    let sent = "None has failed.\nThe service paused the webhook. It checks the endpoint at 2026-11-20 09:50:00Z,";
    assert!(said.starts_with(sent) && said.contains("`waypost webhooks resume whk_1`"), "{said}");
}

#[tokio::test]
async fn a_range_in_the_future_is_refused_with_the_name_of_the_option() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    for command in ["recover", "replay"] {
        let refused = problem(400, "invalid-request", "`createdFrom` must be in the past");
        fake.on(&format!("{ME}/webhook/whk_1/{command}"), refused);
        let said = person.run(&[command, "whk_1", "--from", "2100-01-01T00:00:00Z"]).await.failed(2);
        assert_eq!(said, "error: `--from` must be in the past\n");
    }
}

#[tokio::test]
async fn a_replay_of_types_that_the_webhook_does_not_receive_says_so() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let none = json!({ "count": 0, "countIsExact": true, "dryRun": true, "message": "None is left." });
    fake.on(&format!("{ME}/webhook/whk_1/replay"), (202, none));
    let arguments = ["replay", "whk_1", "--from", "7d", "--types", "inventory.*", "--dry-run"];
    let said = person.run(&arguments).await.done();
    assert_eq!(said, "This webhook does not receive these types (inventory.*). It receives: booking.*.\n");
}

#[tokio::test]
async fn a_replay_has_the_given_range_and_types_and_prints_the_number() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    let arguments =
        ["replay", "whk_1", "--from", "2026-11-13T00:00:00Z", "--types", "booking.*,payment.*", "--dry-run"];
    let said = person.run(&arguments).await.done();
    assert!(said.contains("would deliver: 7"), "{said}");
    let sent = fake.received(&format!("{ME}/webhook/whk_1/replay"))[0].json();
    let types = ["booking.*", "payment.*"];
    assert_eq!(sent, json!({ "createdFrom": "2026-11-13T00:00:00Z", "types": types, "dryRun": true }));
    let begun = json!({ "count": 7, "countIsExact": true, "dryRun": false });
    fake.on(&format!("{ME}/webhook/whk_1/replay"), (202, begun));
    let said = person.run(&arguments[..arguments.len() - 1]).await.done();
    let progress = "`waypost replay whk_1 --from 2026-11-13T00:00:00.000Z --types 'booking.*,payment.*' --dry-run`";
    assert!(said.contains("within two minutes") && said.contains(progress), "{said}");
}

#[tokio::test]
async fn a_list_that_its_limit_cuts_says_so() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    for arguments in [&["deliveries", "--limit", "1"][..], &["logs", "--limit", "1", "--json"]] {
        let ended = person.run(arguments).await;
        assert_eq!(ended.err, "1 shown; there may be more: `--limit 10` shows up to 10.\n");
        assert!(ended.done().contains("dlv_1"), "{arguments:?}");
    }
    let ended = person.run(&["deliveries"]).await;
    assert_eq!(ended.err, "", "there is no next page");
}

#[tokio::test]
async fn an_empty_list_of_deliveries_says_what_to_try_next() {
    let fake = Fake::start().await;
    let person = logged_in(&fake).await;
    for (arguments, hint) in [
        (&["deliveries"][..], "`waypost trigger TYPE`"),
        (&["deliveries", "--failed"], "`waypost webhooks show ID`"),
        (&["deliveries", "--failed", "--subject", "b-1"], "`waypost why SUBJECT` also tries other capitals"),
    ] {
        fake.on(&format!("{ME}/webhook/delivery/list"), (200, json!({ "items": [] })));
        let ended = person.run(arguments).await;
        assert!(ended.err.contains(hint), "{ended:?}");
        assert_eq!(ended.done(), "");
    }
}

#[tokio::test]
async fn a_signed_request_is_checked_without_a_login() {
    let person = Person::new();
    let file = |name: &str, content: &str| -> PathBuf {
        let path = person.home.path().join(name);
        std::fs::write(&path, content).expect("the folder can be written");
        path
    };
    let secret = file("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").display().to_string();
    let body = file("body", r#"{"test": 2432232314}"#).display().to_string();
    let verify = ["verify", "--secret-file", &secret, "--body", &body];
    let headers = [
        "--header",
        "Webhook-Id: msg_p5jXN8AQM9LWM0D4loKWxJek",
        "--header",
        "webhook-timestamp: 1614265330",
        "--header",
        "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ];
    let given = [&verify[..], &headers, &["--tolerance", "90000d"]].concat();
    let said = person.run(&given).await.done();
    assert!(said.starts_with("The request is valid"), "{said}");
    let old = person.run(&[&verify[..], &headers].concat()).await.failed(1);
    assert!(old.contains("the timestamp is too old") && old.contains("next: "), "{old}");
    let lines = headers.iter().filter(|line| **line != "--header").copied().collect::<Vec<_>>().join("\r\n");
    let lines = file("headers", &lines).display().to_string();
    // Each of the files may come from standard input, but only one of them.
    let files = [("--secret-file", &secret), ("--body", &body), ("--headers", &lines)];
    for (piped, path) in files {
        let mut arguments = vec!["verify", "--tolerance", "90000d"];
        for (option, path) in files {
            arguments.extend([option, if option == piped { "-" } else { path }]);
        }
        let text = std::fs::read_to_string(path).expect("it is text");
        let said = person.run_with(&arguments, &text).await.done();
        assert!(said.starts_with("The request is valid"), "{piped}: {said}");
    }
    let twice = person.run(&["verify", "--secret-file", "-", "--body", &body, "--headers", "-"]).await.failed(2);
    assert!(twice.contains("only one of --secret-file, --body and --headers"), "{twice}");
    file("body", r#"{"test": 1}"#);
    let changed = person.run(&[&verify[..], &["--headers", &lines, "--tolerance", "90000d", "--json"]].concat()).await;
    let faults: Value = serde_json::from_str(&changed.out).expect("JSON");
    assert_eq!((&faults["valid"], &faults["faults"][0]["kind"]), (&json!(false), &json!("secret-or-body")));
    assert_eq!(changed.code, Some(1));
    file("secret", "secret");
    assert!(person.run(&given).await.failed(2).contains("begins with `whsec_`"));
}
