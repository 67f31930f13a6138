//! `make run` as a program: refusals, settings and exits.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use contract_test::contract_test;
use futures::future::join_all;
use tokio::time::sleep;

use crate::harness::{Entity, Settings, Suite, free_port, refused_start, until_gone};
use nix::sys::signal::Signal;

/// A new data folder that exists as long as the value.
fn unused_folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().display().to_string();
    (folder, path)
}

async fn ends_in_good_order(suite: &Suite, signal: Signal) {
    let (bundle, _, _permit) = suite.other_bundle(Settings::default()).await;
    let children = bundle.processes();
    assert!(children.iter().any(|process| process.is("token")), "functions among {children:?}");
    bundle.signal(signal).await;
    let status = bundle.ended().await;
    assert_eq!(status.code(), Some(0), "{signal}");
    assert!(!bundle.data().join("service.env").exists(), "service.env still names a service that has ended");
}

#[contract_test]
async fn sigterm_ends_everything_in_good_order(suite: Arc<Suite>) {
    ends_in_good_order(&suite, Signal::SIGTERM).await;
}

#[contract_test]
async fn sigint_ends_everything_in_good_order(suite: Arc<Suite>) {
    ends_in_good_order(&suite, Signal::SIGINT).await;
}

#[contract_test]
async fn sigkill_leaves_nothing_behind(suite: Arc<Suite>) {
    let (bundle, _, _permit) = suite.other_bundle(Settings::default()).await;
    let children = bundle.processes();
    assert!(children.iter().any(|process| process.is("token")), "functions among {children:?}");
    bundle.signal(Signal::SIGKILL).await;
    bundle.ended().await;
    until_gone(&children).await;
}

#[contract_test]
async fn a_port_in_use_is_reported(suite: Arc<Suite>) {
    let (_folder, data) = unused_folder();
    let port = suite.bundle().port.to_string();
    let said = refused_start(&[("PORT", port.clone()), ("DATA", data)]).await;
    assert!(said.contains(&port) && said.contains("in use") && said.contains("PORT="), "{said}");
}

#[contract_test]
async fn data_in_use_are_reported(suite: Arc<Suite>) {
    let data = suite.bundle().data().display().to_string();
    let said = refused_start(&[("PORT", free_port().to_string()), ("DATA", data.clone())]).await;
    assert!(said.contains(&data) && said.contains("DATA="), "{said}");
    // The bundle that is using the data is not disturbed.
    suite.api.get("/openapi.json").expect(200).await;
    assert!(suite.bundle().data().join("service.env").exists());
}

#[contract_test]
async fn an_invalid_setting_is_reported(suite: Arc<Suite>) {
    for (name, value) in [
        ("PORT", "99999"),
        ("PORT", "abc"),
        ("QUIET", "loud"),
        ("LOG_LEVEL", "loud"),
        ("TOKEN_GUESSES_PER_CLIENT", "0"),
        ("PUBLISH_LIMIT", "many"),
        ("GEO_IP_ALLOW_HTTP", "perhaps"),
        ("SWEEP_INTERVAL", "soon"),
        ("SUBJECT_MEMBERS", "bookingNumber,,roomIdentifier"),
        ("EVENT_VALIDATION", "sometimes"),
        ("GEO_IP_STORE", "s3://geo-ip"),
        ("RETRY_SCHEDULE", "0s,soon"),
        ("BREAKER_OPEN", "soon"),
        ("TOKEN_LIFETIME", "abc"),
        ("DELIVERY_ALLOWED_NETWORKS", "127.0.0.1/99"),
        ("DELIVERY_ALLOW_HTTP", "perhaps"),
        ("ADMIN_PANEL_URL", "https://panel.example.com/?a=b"),
        ("PANEL_FRAME_ANCESTORS", "https://*.example.com"),
        ("PANEL_NAME", "\u{200b}"),
        ("PANEL_ACCENT_COLOR", "#ffd400"),
    ] {
        let (_folder, data) = unused_folder();
        let _permit = suite.bundle_permit().await;
        let port = free_port().to_string();
        let mut variables = vec![("DATA", data), (name, value.to_owned())];
        if name != "PORT" {
            variables.push(("PORT", port));
        }
        let said = refused_start(&variables).await;
        assert!(said.contains(name) || said.contains(&format!("--{}", name.to_lowercase())), "{name}={value}: {said}");
        assert!(!said.contains("invalid digit"), "an error for operators, not for programmers: {said}");
    }
}

#[contract_test]
async fn an_invalid_description_of_a_payment_provider_is_reported(suite: Arc<Suite>) {
    for (content, fault) in [("{\"clientId\": \"a\", \"revokeURL\": \"hush\"}", "revokeURL"), ("{\"hush", "JSON")] {
        let (folder, data) = unused_folder();
        let _permit = suite.bundle_permit().await;
        std::fs::create_dir(folder.path().join("secrets")).expect("the folder is empty");
        std::fs::write(folder.path().join("secrets/provider-stripe.json"), content).expect("it is there");
        let said = refused_start(&[("PORT", free_port().to_string()), ("DATA", data)]).await;
        assert!(said.contains("provider-stripe.json") && said.contains(fault) && !said.contains("hush"), "{said}");
    }
}

#[contract_test]
async fn secrets_and_data_are_private(suite: Arc<Suite>) {
    use std::os::unix::fs::PermissionsExt;
    let data = suite.bundle().data();
    let mode = |path: &std::path::Path| path.metadata().expect("it is there").permissions().mode() & 0o077;
    for path in [data.clone(), data.join("secrets"), data.join("service.env"), data.join("functions.json")] {
        assert_eq!(mode(&path), 0, "other users may read {}", path.display());
    }
    let secrets = data.join("secrets").read_dir().expect("it is a folder");
    let secrets: Vec<_> = secrets.map(|entry| entry.expect("it can be read").path()).collect();
    for name in [
        "signing-key",
        "client-secret-pepper",
        "data-keys",
        "task-key",
        "demo-application",
        "platform-application",
        "provider-adyen",
        "provider-demo",
        "provider-mollie",
        "provider-paypal",
        "provider-revolut",
        "provider-square",
        "provider-stripe",
    ] {
        assert!(secrets.contains(&data.join(format!("secrets/{name}.json"))), "{name} is not among {secrets:?}");
    }
    assert!(secrets.iter().all(|path| mode(path) == 0));
}

#[contract_test]
async fn clients_receive_all_that_they_need(suite: Arc<Suite>) {
    let env = &suite.api.env;
    for name in [
        "BASE_URL",
        "AUTH_URL",
        "MANAGING_ENTITY",
        "CLIENT_ID",
        "CLIENT_SECRET",
        "PLATFORM_CLIENT_ID",
        "PLATFORM_CLIENT_SECRET",
        "TASK_KEY",
        "ENVIRONMENT",
        "DYNAMODB_ENDPOINT",
        "TABLE_NAME",
        "GEO_IP_STORE",
        "AWS_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ] {
        assert!(env.get(name).is_some_and(|value| !value.is_empty()), "{name} is missing in service.env");
    }
    assert_eq!(env["BASE_URL"], format!("http://127.0.0.1:{}", suite.bundle().port));
    assert_eq!((env["MANAGING_ENTITY"].as_str(), env["ENVIRONMENT"].as_str()), ("demo-hotel", "local"));
    let alphanumeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    for (id, secret) in [("CLIENT_ID", "CLIENT_SECRET"), ("PLATFORM_CLIENT_ID", "PLATFORM_CLIENT_SECRET")] {
        assert!(env[id].starts_with("app") && env[id].len() == 25 && alphanumeric(&env[id]), "{id}={}", env[id]);
        assert!(env[secret].len() == 43 && alphanumeric(&env[secret]), "{secret} is not 43 letters and digits");
    }
}

/// The pauses between requests are close to the idle limit, some shorter and some longer.
#[contract_test]
async fn an_idle_function_is_ended_without_losing_a_request(suite: Arc<Suite>) {
    const IDLE: u64 = 50;
    let settings = Settings::default().overriding("--function-idle", format!("{IDLE}ms"));
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "idle".to_owned()).await;
    let mut processes = BTreeSet::new();
    for pause in (IDLE - 10..=IDLE + 20).chain(IDLE - 5..=IDLE + 5) {
        join_all((0..4).map(async |_| drop(entity.get("/webhook/event/list").expect(200).await))).await;
        processes.extend(
            bundle.processes().iter().filter(|process| process.is("list-event-types")).map(|process| process.id),
        );
        sleep(Duration::from_millis(pause)).await;
    }
    assert!(processes.len() > 1, "it was ended: {processes:?}");
    let said = bundle.output();
    assert!(!said.contains("list-event-types exited"), "the planned end of a process is not logged as a crash: {said}");
}
