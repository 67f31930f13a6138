//! `waypost` manages webhooks, shows types and rights, checks signatures, and recovers deliveries.

use std::{fs, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    cli::Cli,
    harness::{Behaviour, LONG, Received, Receiver, Suite, is_signed_by, until},
};

fn text<'a>(json: &'a Value, member: &str) -> &'a str {
    json[member].as_str().unwrap_or_else(|| panic!("{member} in {json:#}"))
}

#[contract_test]
async fn a_webhook_lives_from_its_creation_to_its_removal_by_commands(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let none = cli.run(&["webhooks"]).await;
    assert!(none.code == Some(0) && none.out.is_empty() && none.err.contains("webhooks create"), "{none:?}");
    let receiver = Receiver::start().await;
    let url = receiver.on("/hooks", [Behaviour::status(204)]);
    let create = ["webhooks", "create", "--name", "Booking sync", "--url", &url, "--types", "booking.*"];
    let created = cli.json(&[&create[..], &["--filter", r#"{"nights": [3]}"#, "--order", "subject"]].concat()).await;
    let id = text(&created, "id").to_owned();
    let secret = text(&created, "signingSecret").to_owned();
    assert_eq!((&created["eventFilter"], &created["order"]), (&json!({ "nights": [3] }), &json!("subject")));

    let list = cli.run(&["webhooks"]).await.out;
    assert!(list.contains("Booking sync") && list.contains(&id) && list.contains("active"), "{list}");
    assert_eq!(cli.json(&["webhooks", "show", &id]).await, entity.webhook(&id).await);
    let changed =
        cli.json(&["webhooks", "change", &id, "--types", "all", "--filter", "null", "--payload", "thin"]).await;
    assert_eq!((&changed["eventList"], &changed["payload"]), (&json!([]), &json!("thin")), "{changed:#}");
    assert!(changed.get("eventFilter").is_none() && changed["name"] == "Booking sync", "{changed:#}");
    assert_eq!(cli.json(&["webhooks", "change", &id, "--disable"]).await["deliveryState"], "disabled");
    let refused = cli.run(&["webhooks", "test", &id]).await;
    let enable = format!("waypost webhooks change {id} --enable");
    assert!(refused.code == Some(1) && refused.err.contains(&enable), "{refused:?}");
    let since = text(&entity.webhook(&id).await, "disabledDate").to_owned();
    let enabled = cli.run(&["webhooks", "change", &id, "--enable"]).await.out;
    assert!(enabled.contains(&format!("waypost replay {id} --from {since} --dry-run")), "{enabled}");
    assert_eq!(entity.webhook(&id).await["deliveryState"], "active");

    let sent = cli.json(&["webhooks", "test", &id]).await;
    let delivery = text(&sent, "deliveryIdentifier");
    entity.until_status(delivery, &["delivered"]).await;
    assert!(is_signed_by(&receiver.until("/hooks", 1).await[0], &secret));
    until("the test event is listed with the name of its webhook", LONG, async || {
        let list = cli.run(&["deliveries", "--webhook", &id]).await.out;
        (list.contains(delivery) && list.contains("Booking sync") && list.contains("(test)")).then_some(())
    })
    .await;

    let rotated = cli.json(&["webhooks", "rotate", &id]).await;
    let again = cli.run(&["webhooks", "rotate", &id]).await;
    assert!(again.code == Some(1) && again.err.contains("--at-once"), "{again:?}");
    let at_once = cli.json(&["webhooks", "rotate", &id, "--at-once"]).await;
    assert_ne!(text(&rotated, "signingSecret"), text(&at_once, "signingSecret"));
    let sent = cli.json(&["webhooks", "test", &id]).await;
    let delivery = text(&sent, "deliveryIdentifier");
    entity.until_status(delivery, &["delivered"]).await;
    let received = receiver.received("/hooks");
    let last = received.iter().find(|received| received.header("service-delivery-id") == delivery);
    let last = last.expect("it was delivered");
    assert!(is_signed_by(last, text(&at_once, "signingSecret")) && !is_signed_by(last, &secret));

    assert_eq!(cli.json(&["webhooks", "pause", &id, "--until", "1h"]).await["pausedBy"], "owner");
    let endless = cli.run(&["webhooks", "pause", &id]).await.out;
    assert!(endless.contains("paused until you resume it"), "{endless}");
    assert_eq!(cli.json(&["webhooks", "resume", &id]).await["deliveryState"], "active");
    let again = cli.run(&["webhooks", "resume", &id]).await.out;
    assert_eq!(again, format!("{id} was not paused; it is unchanged: active.\n"));
    let unasked = cli.run(&["webhooks", "remove", &id]).await;
    assert!(unasked.code == Some(2) && unasked.err.contains("--yes"), "{unasked:?}");
    assert_eq!(cli.json(&["webhooks", "remove", &id, "--yes"]).await["id"], id);
    let missing = cli.run(&["webhooks", "show", &id]).await;
    assert!(missing.code == Some(1) && missing.err.contains("next: `waypost webhooks`"), "{missing:?}");
}

#[contract_test]
async fn the_command_line_sets_headers_rate_signature_and_metadata(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    let url = receiver.on("/hooks", [Behaviour::status(204)]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("token.txt");
    fs::write(&path, "Bearer s3cret\n").expect("the folder can be written");
    let secret = format!("Authorization: @{}", path.display());
    let create = ["webhooks", "create", "--name", "Booking sync", "--url", &url, "--max-attempts-per-second", "50"];
    let headers = ["--header", &secret, "--header", "X-Tenant: hotel"];
    let further = ["--signature", "ed25519", "--metadata", r#"{"system": "pms-7"}"#];
    let created = cli.json(&[&create[..], &headers, &further].concat()).await;
    let id = text(&created, "id").to_owned();
    assert_eq!(created["headers"], json!({ "Authorization": "***", "X-Tenant": "***" }), "{created:#}");
    assert_eq!(
        (&created["maxAttemptsPerSecond"], &created["metadata"]["system"]),
        (&json!(50), &json!("pms-7")),
        "{created:#}"
    );
    assert!(text(&created["publicKeys"][0], "key").starts_with("whpk_"), "{created:#}");

    let change = ["webhooks", "change", &id, "--header", "authorization: ***", "--max-attempts-per-second", "null"];
    let changed = cli.json(&[&change[..], &["--signature", "hmac", "--metadata", "null"]].concat()).await;
    assert!(changed.get("maxAttemptsPerSecond").is_none() && changed.get("publicKeys").is_none(), "{changed:#}");
    assert_eq!(changed["metadata"], json!({}), "{changed:#}");
    cli.json(&["webhooks", "test", &id]).await;
    let received = receiver.until("/hooks", 1).await.remove(0);
    assert_eq!((received.header("authorization"), received.header("x-tenant")), ("Bearer s3cret", ""));
    assert_eq!(cli.json(&["webhooks", "change", &id, "--no-headers"]).await["headers"], json!({}));

    cli.json(&["webhooks", "pause", &id]).await;
    let list = cli.run(&["webhooks"]).await.out;
    assert!(list.contains("paused by its owner"), "{list}");
    let shown = cli.run(&["webhooks", "show", &id]).await.out;
    assert!(shown.contains("by its owner since ") && shown.contains("until you resume it"), "{shown}");
}

#[contract_test]
async fn the_command_line_lists_types_and_shows_their_samples(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let all = entity.get("/webhook/event/list").expect(200).await.json();
    assert_eq!(cli.json(&["types"]).await, all);
    let bookings = cli.json(&["types", "booking."]).await;
    let bookings = bookings.as_array().expect("a list");
    assert!(!bookings.is_empty() && bookings.iter().all(|kind| text(kind, "value").starts_with("booking.")));
    let details = entity.get("/webhook/event/type/booking.created").expect(200).await.json();
    assert_eq!(cli.json(&["types", "show", "booking.created"]).await, details);
    let shown = cli.run(&["types", "show", "booking.created"]).await.out;
    assert!(shown.contains(text(&details, "description").trim_end()) && shown.contains("Samples"), "{shown}");
    let unknown = cli.run(&["types", "show", "booking.creatd"]).await;
    assert!(unknown.code == Some(2) && unknown.err.contains("next: `waypost types`"), "{unknown:?}");
}

#[contract_test]
async fn whoami_shows_the_rights_of_the_application(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let rights = cli.json(&["whoami"]).await;
    assert_eq!(
        (&rights["active"], text(&rights, "client_id")),
        (&json!(true), suite.api.env["PLATFORM_CLIENT_ID"].as_str())
    );
    let shown = cli.run(&["whoami"]).await.out;
    for part in [entity.id.as_str(), "integrations.write", "valid for", &suite.api.env["BASE_URL"]] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

/// Writes a request to files as a developer would, and returns the arguments for checking it.
fn files_of(received: &Received, secret: &str, folder: &tempfile::TempDir) -> Vec<String> {
    let lines = received.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
    let mut arguments = vec!["verify".to_owned()];
    for (option, name, content) in [
        ("--secret-file", "secret.txt", secret.as_bytes()),
        ("--body", "body.json", received.body.as_slice()),
        ("--headers", "headers.txt", lines.collect::<String>().as_bytes()),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("the folder can be written");
        arguments.extend([option.to_owned(), path.display().to_string()]);
    }
    arguments
}

#[contract_test]
async fn a_request_of_the_service_verifies_with_its_secret_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    let url = receiver.on("/", [Behaviour::status(204)]);
    let body = json!({ "name": "x", "eventUrl": url, "eventList": [], "signature": "ed25519" });
    let hook = entity.hook_with(body).await;
    entity.publish(json!({ "total": 1.10, "guest": "Zoë" })).await;
    let mut received = receiver.until("/", 1).await.remove(0);
    let folder = tempfile::tempdir().expect("a folder");
    let verified = async |received: &Received, secret: &str| {
        let mut arguments = files_of(received, secret, &folder);
        // On a busy machine, the request may have been sent a while ago.
        arguments.extend(["--tolerance".to_owned(), "1d".to_owned()]);
        cli.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    for key in [hook.secret.as_str(), text(&hook.json["publicKeys"][0], "key")] {
        let valid = verified(&received, key).await;
        assert!(valid.code == Some(0) && valid.out.contains("The request is valid"), "{valid:?}");
    }
    let other = entity.new_secret(&hook.id).await;
    let wrong = verified(&received, &other).await;
    assert!(wrong.code == Some(1) && wrong.err.contains("the secret is probably wrong"), "{wrong:?}");
    received.body.push(b'\n');
    let longer = verified(&received, &hook.secret).await;
    assert!(longer.code == Some(1) && longer.err.contains("white space at its end"), "{longer:?}");
}

#[contract_test]
async fn the_command_line_recovers_the_failed_deliveries_of_a_webhook(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(410), Behaviour::status(204)])).await;
    let delivery = entity.publish(json!({ "bookingIdentifier": "B-78" })).await;
    entity.until_status(&delivery, &["failed"]).await;
    entity.until_gone(&hook).await;
    let disabled = cli.run(&["recover", &hook.id, "--from", "1h"]).await;
    assert!(disabled.code == Some(1) && disabled.err.contains("--enable"), "{disabled:?}");
    let future = cli.run(&["recover", &hook.id, "--from", "2100-01-01T00:00:00Z"]).await;
    assert!(future.code == Some(2) && future.err.contains("`--from` must be in the past"), "{future:?}");
    // The command that it prints includes the delivery that the endpoint refused.
    let enabled = cli.run(&["webhooks", "change", &hook.id, "--enable"]).await.out;
    let recover = enabled.lines().find_map(|line| line.trim().strip_prefix("waypost recover "));
    let options = recover.unwrap_or_else(|| panic!("{enabled}")).split(' ');
    let arguments: Vec<_> = ["recover"].into_iter().chain(options).chain(["--include", "failed"]).collect();
    let recovery = cli.json(&arguments).await;
    assert!(recovery["count"].is_u64() && recovery["waiting"] == 0, "{recovery:#}");
    // The count may omit failures from the last few seconds, which are also recovered.
    entity.until_status(&delivery, &["delivered"]).await;
}

#[contract_test]
async fn deliveries_of_a_paused_webhook_are_counted_and_recovered_on_hold(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let cli = Cli::of(&suite, &entity);
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(204)])).await;
    cli.json(&["webhooks", "pause", &hook.id]).await;
    let delivery = entity.publish(json!({ "bookingIdentifier": "B-79" })).await;
    entity.until_delivery(&delivery, "it waits for the end of the pause", |held| held["waitingFor"] == "pause").await;
    until("the waiting delivery is counted", LONG, async || {
        let shown = cli.run(&["webhooks", "show", &hook.id]).await.out;
        shown.lines().any(|line| line.starts_with("waiting ") && line.ends_with(" 1 (pause)")).then_some(())
    })
    .await;
    let recovery = cli.run(&["recover", &hook.id, "--from", "1h"]).await.out;
    let resume = format!("until you resume it: `waypost webhooks resume {}`", hook.id);
    assert!(recovery.contains(&resume) && !recovery.contains("sent again"), "{recovery}");
    let other = ["replay", &hook.id, "--from", "1h", "--types", "payee.*", "--dry-run"];
    let counted = cli.run(&other).await.out;
    assert!(!counted.contains("replayed in a moment"), "a dry run only counts: {counted}");
    cli.json(&["webhooks", "change", &hook.id, "--types", "booking.*"]).await;
    let counted = cli.run(&other).await.out;
    assert!(counted.contains("does not receive these types (payee.*)"), "{counted}");
}
