//! Concurrent changes to a webhook, and changes that are conditional on its version.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use futures::future::{join, join_all};
use serde_json::{Map, Value, json};

use crate::{
    harness::{AwsCall, Behaviour, Entity, Moment, Receiver, Settings, Suite, is_signed_by},
    webhook_changes::{settled, violations},
};

#[contract_test]
async fn a_change_of_another_version_is_refused_with_the_current_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let second = entity.changed(&hook.id, json!({ "name": "second", "version": 1 })).await;
    assert_eq!(second["version"], 2);
    for version in [1u64, 3, 4_294_967_298, u64::MAX] {
        for change in [json!({ "name": "third", "version": version }), json!({ "version": version })] {
            let problem = entity.change(&hook.id, &change).refused(409, "version-conflict").await;
            assert_eq!(problem["properties"]["currentVersion"], 2);
            assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("now 2.")), "{problem}");
        }
    }
    assert_eq!(entity.webhook(&hook.id).await, second);
    // Values are checked before the version.
    let fields = violations(&entity, &hook, &json!({ "version": 1, "name": "" })).await;
    assert_eq!(fields, ["body/name"]);
}

#[contract_test]
async fn of_fifty_changes_of_one_version_one_is_made(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let changes = (0..50).map(|number| {
        let entity = entity.clone();
        let id = hook.id.clone();
        async move { entity.change(&id, &json!({ "name": format!("number {number}"), "version": 1 })).answered().await }
    });
    let answers = join_all(changes).await;
    let made: Vec<Value> =
        answers.iter().filter(|answer| answer.status == 200).map(crate::harness::ApiResponse::json).collect();
    let refused = answers.iter().filter(|answer| answer.status == 409).count();
    assert_eq!((made.len(), refused), (1, 49));
    assert_eq!(entity.webhook(&hook.id).await, made[0]);
    assert_eq!(made[0]["version"], 2);
}

#[contract_test]
async fn a_change_whose_answer_from_the_table_is_lost_is_no_conflict(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "versions".to_owned()).await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let webhook = hook.id.clone();
    let changes = move |call: &AwsCall| call.operation == "TransactWriteItems" && call.mentions(&webhook);
    let mut held = setup.table.hold("changed, answer lost", Moment::After, changes);
    let lost = async move {
        held.reached().await;
        held.lose();
    };
    let change = entity.changed(&hook.id, json!({ "name": "second", "version": 1 }));
    let (changed, ()) = join(change, lost).await;
    assert_eq!((&changed["name"], &changed["version"]), (&json!("second"), &json!(2)));
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn changes_at_once_without_a_version_are_all_made_and_lose_no_secret(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let kinds = ["booking.created", "booking.cancelled", "booking.expired"];
    let changes = (0..30).map(|number| {
        let entity = entity.clone();
        let id = hook.id.clone();
        let change = match number % 3 {
            0 => json!({ "name": format!("number {number}") }),
            1 => json!({ "headers": { "X-Number": number.to_string() } }),
            _ => json!({ "eventList": [kinds[0], kinds[number % 2 + 1]] }),
        };
        async move { entity.change(&id, &change).once().expect(200).await.json() }
    });
    let answers = join_all(changes).await;
    let versions: BTreeSet<u64> = answers.iter().filter_map(|answer| answer["version"].as_u64()).collect();
    // A response shows the webhook after the change, and possibly after later ones.
    assert!(versions.iter().all(|version| (2..=31).contains(version)), "{versions:?}");
    let after = entity.webhook(&hook.id).await;
    assert_eq!(after["version"], 31, "each change has created a separate version");
    assert!(after["name"].as_str().is_some_and(|name| name.starts_with("number ")), "{after:#}");
    assert_eq!(after["headers"].as_object().map(Map::len), Some(1), "{after:#}");
    assert_eq!(after["eventList"].as_array().map(Vec::len), Some(2), "{after:#}");
    let last = answers.iter().find(|answer| answer["version"] == 31).expect("versions were checked");
    assert_eq!(settled(last), settled(&after));
    entity.publish(json!({})).await;
    assert!(is_signed_by(&receiver.until("/", 1).await[0], &hook.secret));
}

#[contract_test]
async fn a_change_and_a_new_secret_at_once_are_both_made(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let receiver = Receiver::start().await;
    let hook = entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let (secret, changed) = tokio::join!(
        entity.new_secret(&hook.id),
        join_all((0..20).map(|number| {
            let change = json!({ "name": format!("number {number}") });
            entity.change(&hook.id, &change).once().expect(200)
        })),
    );
    assert_eq!(changed.len(), 20);
    assert_eq!(entity.webhook(&hook.id).await["version"], 21);
    entity.publish(json!({})).await;
    let received = receiver.until("/", 1).await.remove(0);
    for secret in [&secret, &hook.secret] {
        assert!(is_signed_by(&received, secret), "a secret was lost");
    }
}

#[contract_test]
async fn a_change_never_makes_a_removed_webhook_again(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for _ in 0..5 {
        let hook = entity.hook("http://127.0.0.1:9/").await;
        let changes = join_all((0..8).map(|number| {
            let change = json!({ "name": format!("number {number}"), "enabled": number % 2 == 0 });
            entity.change(&hook.id, &change).answered()
        }));
        let (answers, _) = tokio::join!(changes, entity.remove(&hook.id).expect(200));
        assert!(answers.iter().all(|answer| answer.status == 200 || answer.status == 404), "{answers:#?}");
        entity.get(&format!("/webhook/{}", hook.id)).refused(404, "webhook-not-found").await;
    }
    assert_eq!(entity.get("/webhook/list").expect(200).await.json(), json!([]));
}
