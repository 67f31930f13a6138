//! The records of idempotency keys: their lifetime, and how responses are stored in them.

use std::sync::Arc;

use contract_test::contract_test;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::asked::{Wanted, is_first, of_each};
use crate::{
    applications::text,
    harness::{Entity, Suite, Table, now},
};

async fn records(entity: &Entity) -> Vec<Value> {
    let items = Table::of(&entity.api().env).scan().await;
    let prefix = format!("IDEMPOTENCY#{}#", entity.id);
    let is_record = |item: &Value| item["pk"]["S"].as_str().is_some_and(|pk| pk.starts_with(&prefix));
    items.into_iter().filter(is_record).collect()
}

/// Changes a time in an entity's only record.
async fn set_time(entity: &Entity, attribute: &str, value: Value) {
    let mut records = records(entity).await;
    assert_eq!(records.len(), 1, "{records:#?}");
    let mut record = records.remove(0);
    record[attribute] = value;
    Table::of(&entity.api().env).put(record).await;
}

/// Makes an entity's only record this many seconds old.
async fn age(entity: &Entity, seconds: i64) {
    let then = Timestamp::from_second(now() - seconds).expect("a time");
    set_time(entity, "answeredDate", json!({ "S": format!("{then:.3}") })).await;
}

#[contract_test]
async fn a_secret_is_shown_again_for_ten_minutes_and_not_later(suite: Arc<Suite>) {
    for (entity, asked) in
        of_each(&suite, Wanted::ALL.into_iter().filter(|wanted| wanted.is_secret()), "https://hooks.example.com/").await
    {
        let wanted = asked.wanted;
        let first = asked.call(&entity, "key").expect(asked.status).await;
        age(&entity, 9 * 60).await;
        assert_eq!(asked.call(&entity, "key").expect(asked.status).await.text(), first.text(), "{wanted:?}");
        age(&entity, 10 * 60).await;
        let count = asked.count(&entity).await;
        let problem = asked.call(&entity, "key").refused(409, "secret-not-repeated").await;
        assert_eq!(asked.count(&entity).await, count, "{wanted:?}");
        let made = match wanted {
            Wanted::Webhook => text(&first.json(), "id"),
            Wanted::PanelLink => text(&first.json(), "id"),
            Wanted::Application => text(&first.json(), "clientId"),
            Wanted::ClientSecret => text(&first.json(), "secretId"),
            Wanted::Link => text(&first.json(), "connectionIdentifier"),
            _ => asked.about.clone(),
        };
        assert_eq!(problem["properties"]["id"], made, "{wanted:?}");
        let detail = text(&problem, "detail");
        let call = match wanted {
            Wanted::Application => format!("`POST …/application/{made}/secret`"),
            Wanted::ClientSecret => format!("`DELETE …/application/{{clientId}}/secret/{made}`"),
            Wanted::Link => "with a new key".to_owned(),
            Wanted::PanelLink => format!("`DELETE …/panel/link/{made}`"),
            _ => format!("`POST …/webhook/{made}/secret`"),
        };
        assert!(detail.contains(&call), "{wanted:?}: {detail}");
        // A different body always means a different request.
        asked.with_body(&entity, "key", &asked.other).refused(409, "idempotency-conflict").await;
    }
}

#[contract_test]
async fn an_answer_without_a_secret_is_repeated_for_a_day(suite: Arc<Suite>) {
    for (entity, asked) in
        of_each(&suite, Wanted::ALL.into_iter().filter(|wanted| !wanted.is_secret()), "https://hooks.example.com/")
            .await
    {
        let wanted = asked.wanted;
        let first = asked.call(&entity, "key").expect(asked.status).await;
        age(&entity, 23 * 60 * 60).await;
        assert_eq!(asked.call(&entity, "key").expect(asked.status).await.text(), first.text(), "{wanted:?}");
    }
}

#[contract_test]
async fn an_answer_that_shows_a_secret_is_kept_sealed(suite: Arc<Suite>) {
    for (entity, asked) in
        of_each(&suite, Wanted::ALL.into_iter().filter(|wanted| wanted.is_secret()), "https://hooks.example.com/").await
    {
        let wanted = asked.wanted;
        let answer = asked.call(&entity, "the very text of the key").expect(asked.status).await;
        let record = records(&entity).await.remove(0);
        let sealed = text(&record["sealedAnswer"], "S");
        let kept = record.to_string();
        assert!(record.get("answer").is_none() && sealed.contains('.'), "{wanted:?}: {record:#}");
        assert!(!kept.contains("the very text of the key"), "{wanted:?}: {record:#}");
        for (_, value) in answer.json().as_object().expect("an object") {
            let secret = value.as_str().filter(|text| text.len() >= 40).unwrap_or("nothing of it");
            assert!(!kept.contains(secret), "{wanted:?}: {record:#}");
        }
    }
    // A record copied to another entity's partition cannot be opened there.
    let (entity, stranger) = (suite.entity().await, suite.entity().await);
    let asked = Wanted::Application.asked(&entity, "").await;
    asked.call(&entity, "key").expect(201).await;
    asked.call(&stranger, "key").expect(201).await;
    let mut copied = records(&entity).await.remove(0);
    let place = records(&stranger).await.remove(0);
    copied["pk"] = place["pk"].clone();
    suite.table().put(copied).await;
    asked.call(&stranger, "key").refused(500, "internal-error").await;
}

#[contract_test]
async fn an_expired_key_counts_as_new(suite: Arc<Suite>) {
    let url = "https://hooks.example.com/";
    for (entity, asked) in of_each(&suite, [Wanted::Webhook, Wanted::TestEvent, Wanted::Link], url).await {
        let wanted = asked.wanted;
        let first = asked.call(&entity, "key").expect(asked.status).await;
        let lives = records(&entity).await[0]["expiresAt"]["N"].as_str().and_then(|at| at.parse::<i64>().ok());
        let lives = lives.expect("a number of seconds") - now();
        assert!((86_300..=86_400).contains(&lives), "a key is remembered for a day, not {lives} s");
        // The table removes an expired record days later; until then, the service ignores it.
        set_time(&entity, "expiresAt", json!({ "N": (now() - 1).to_string() })).await;
        let second = asked.call(&entity, "key").expect(asked.status).await;
        assert!(is_first(&second) && second.text() != first.text(), "{wanted:?}: {}", second.exchange);
        assert_eq!(asked.call(&entity, "key").expect(asked.status).await.text(), second.text(), "{wanted:?}");
    }
}
