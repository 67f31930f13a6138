//! Metrics: the numbers in the functions' logs are correct, and do not identify any customer.

use std::{fs, sync::Arc};

use contract_test::contract_test;
use serde_json::Value;

use crate::harness::{
    Agent, Application, Behaviour, Bundle, Choice, Entity, LONG, Receiver, Settings, Suite, delete_secret, until,
};

/// The lines in a function's log that CloudWatch turns into metrics.
pub fn lines(bundle: &Bundle, function: &str) -> Vec<Value> {
    let log = fs::read_to_string(bundle.data().join(format!("logs/{function}.log"))).unwrap_or_default();
    let lines = log.lines().filter(|line| line.contains("\"_aws\""));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The values that a metric has in these lines.
pub fn values(lines: &[Value], metric: &str) -> Vec<f64> {
    let values = lines.iter().filter_map(|line| line.get(metric)).flat_map(|value| match value {
        Value::Array(values) => values.clone(),
        value => vec![value.clone()],
    });
    values.map(|value| value.as_f64().expect("a number")).collect()
}

pub fn sum(lines: &[Value], metric: &str) -> f64 {
    values(lines, metric).iter().sum()
}

#[contract_test]
async fn successful_failed_and_exhausted_deliveries_are_counted(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let receiver = Receiver::start().await;
    let mut secrets = Vec::new();
    for (name, script, ends) in [
        ("at-once", &[204][..], "delivered"),
        ("later", &[500, 204], "delivered"),
        ("never", &[500, 500, 500], "failed"),
    ] {
        let entity = Entity::new(&api, name.to_owned()).await;
        let script: Vec<_> = script.iter().map(|status| Behaviour::status(*status)).collect();
        let hook = entity.hook(&receiver.on(&format!("/{name}"), script)).await;
        let delivery = entity.publish(serde_json::json!({})).await;
        entity.until_status(&delivery, &[ends]).await;
        secrets.extend([name.to_owned(), hook.id, delivery]);
    }
    // A run writes its line when it ends.
    let made = until("six attempts are counted", LONG, async || {
        let lines = lines(&bundle, "dispatch-deliveries");
        (sum(&lines, "DeliveriesAttempted") >= 6.0).then_some(lines)
    })
    .await;
    let counts = ["Attempted", "Succeeded", "Failed", "Exhausted"].map(|what| sum(&made, &format!("Deliveries{what}")));
    assert_eq!(counts, [6.0, 2.0, 4.0, 1.0], "{made:#?}");
    let first = values(&made, "FirstAttemptAfter");
    let arrivals = values(&made, "ArrivalAfter");
    assert_eq!((first.len(), arrivals.len()), (3, 2), "{made:#?}");
    let latest = arrivals.iter().copied().fold(0.0, f64::max);
    assert!(latest >= 500.0, "the retry came after about a second: {arrivals:?}");
    let in_flight = values(&made, "InFlightQuick");
    assert!(!in_flight.is_empty() && in_flight.iter().all(|most| (1.0..=50.0).contains(most)), "{made:#?}");
    assert_eq!(sum(&made, "BreakersOpened"), 0.0);
    for line in &made {
        let text = line.to_string();
        assert!(!secrets.iter().any(|secret| text.contains(secret.as_str())), "{text}");
        assert_eq!(line["_aws"]["CloudWatchMetrics"][0]["Namespace"], "Waypost");
    }

    let swept = until("a sweep logs the age of its work", LONG, async || {
        let lines = lines(&bundle, "sweep-deliveries");
        (!lines.is_empty()).then_some(lines)
    })
    .await;
    for metric in ["OldestOverdue", "DeliveriesSwept", "OutboxAge"] {
        assert_eq!(values(&swept, metric).len(), swept.len(), "every sweep logs {metric}");
        assert!(values(&swept, metric).iter().all(|seconds| (0.0..3_600.0).contains(seconds)), "{swept:#?}");
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_breaker_that_opens_is_counted_once(suite: Arc<Suite>) {
    let settings = Settings::default().with("BREAKER_THRESHOLD", "3").with("BREAKER_OPEN", "10m");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let entity = Entity::new(&api, "silent".to_owned()).await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::close()])).await;
    let delivery = entity.publish(serde_json::json!({})).await;
    entity.until_status(&delivery, &["failed"]).await;
    until("the breaker is open", LONG, async || (entity.listed(&hook).await["health"] == "open").then_some(())).await;
    // The run of another attempt may write its line first.
    let counted = until("the attempts and the breaker are counted", LONG, async || {
        let lines = lines(&bundle, "dispatch-deliveries");
        (sum(&lines, "DeliveriesAttempted") >= 3.0 && sum(&lines, "BreakersOpened") >= 1.0).then_some(lines)
    })
    .await;
    assert_eq!(sum(&counted, "BreakersOpened"), 1.0, "{counted:#?}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn people_who_come_back_from_a_provider_are_counted_by_outcome(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, "linked".to_owned()).await;
    entity.visit("sim-basic", Choice::DENY).await.arrive("denied").await;
    let visit = entity.visit("sim-basic", Choice::ALLOW).await;
    visit.arrive("connected").await;
    // The state has already been used.
    visit.callback().expect(400).await;
    // A callback that a stalling machine delays for too long is counted as an error, and was repeated.
    let of_people = |line: &Value| line.get("Callbacks").is_some() && line["Outcome"] != "error";
    let counted = until("three people are counted", LONG, async || {
        let lines: Vec<_> = lines(&bundle, "provider-callback").into_iter().filter(of_people).collect();
        (sum(&lines, "Callbacks") >= 3.0).then_some(lines)
    })
    .await;
    let outcomes: Vec<_> = counted.iter().map(|line| line["Outcome"].as_str().expect("a text")).collect();
    assert_eq!(outcomes, ["denied", "connected", "refused"], "{counted:#?}");
    for line in &counted {
        assert!(!line.to_string().contains("linked") && !line.to_string().contains(&visit.state), "{line}");
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn only_responses_of_a_failed_service_are_counted(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let token = api.token(Application::Demo, "").await;
    let task = |key: &str| {
        let request = serde_json::json!({ "key": key, "environment": "local" });
        api.post("/task/geo-ip-update").bearer(&token).json(&request)
    };
    let refused = task("wrong").expect(403).await;
    assert_eq!(refused.json()["kind"], "task-refused");
    delete_secret(&bundle.service_env(), "task-key").await;
    task("wrong").refused(503, "service-unavailable").await;
    let counted = until("the answer is counted", LONG, async || {
        let lines = lines(&bundle, "geo-ip-update");
        (!lines.is_empty()).then_some(lines)
    })
    .await;
    // A stalling machine causes a 503 before the refusal.
    assert!(refused.is_repetition || values(&counted, "ServerErrors") == [1.0], "{counted:#?}");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_tool_that_the_service_fails_is_counted_like_an_answer(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let agent = Agent::of(&Entity::new(&api, "covered".to_owned()).await).await;
    let webhook = serde_json::json!({ "name": "n", "eventUrl": "http://127.0.0.1:9/", "eventList": [] });
    assert_eq!(agent.refused("create_webhook", serde_json::json!({})).await["kind"], "invalid-request");
    delete_secret(&bundle.service_env(), "data-keys").await;
    agent.unavailable("create_webhook", webhook).await;
    let counted = until("the failure is counted", LONG, async || {
        let lines = lines(&bundle, "mcp");
        // Lines in the audit trail are also metrics.
        (!values(&lines, "ServerErrors").is_empty()).then_some(lines)
    })
    .await;
    assert_eq!(values(&counted, "ServerErrors"), [1.0], "{counted:#?}");
    assert!(bundle.stop().await.success());
}
