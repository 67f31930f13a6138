//! A data folder of the first release opens and goes on: what it kept works, and what it had begun is finished.
//!
//! `former_data/data.tar.gz` was made by that release in seconds: six webhooks, eight events, an outage, a second application.
//! Only `expiresAt` was moved on afterwards, to the year 2100, so that time does not empty it. `facts.json` says what its clients
//! were told. Its secrets protect nothing else.

use std::{collections::BTreeSet, fs, sync::Arc};

use serde_json::{Value, json};

use crate::applications::claims;
use crate::harness::{
    Api, Behaviour, Bundle, Entity, LONG, Receiver, Settings, Suite, is_signed_by, project, tests, until,
};

tests![
    the_webhooks_deliveries_and_applications_of_the_first_release_are_there,
    what_the_first_release_had_left_open_is_recovered_and_sent,
];

fn facts() -> Value {
    let text = fs::read_to_string(project().join("tests/contract/former_data/facts.json")).expect("the facts");
    serde_json::from_str(&text).expect("JSON")
}

async fn opened(suite: &Suite) -> (Bundle, Api, Entity) {
    let archive = project().join("tests/contract/former_data/data.tar.gz");
    // What is retried waits for hours, so that nothing happens by itself.
    let settings = Settings::default().with("RETRY_SCHEDULE", "0s,5s,5h");
    let bundle = Bundle::start_from(&archive, settings).await.expect("a folder of the first release opens");
    let api = suite.api_of(&bundle);
    let entity = Entity::new(&api, facts()["managingEntity"].as_str().expect("a text").to_owned()).await;
    (bundle, api, entity)
}

async fn the_webhooks_deliveries_and_applications_of_the_first_release_are_there(suite: Arc<Suite>) {
    let _permit = suite.no_other_bundle().await;
    let (bundle, api, entity) = opened(&suite).await;
    let facts = facts();
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", facts["application"]["clientId"].as_str().expect("a text")),
        ("client_secret", facts["application"]["clientSecret"].as_str().expect("a text")),
    ];
    let token = api.post("/oauth2/token").form(&form).expect(200).await.json();
    let token = token["access_token"].as_str().expect("a text");
    assert_eq!(claims(token)["may_publish"], true, "every application could publish then");
    let listed = entity.get("/webhook/list").expect(200).await.json();
    let names: BTreeSet<&str> =
        listed.as_array().expect("a list").iter().map(|hook| hook["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["amz", "down", "fail", "gone", "ok"].into());
    let ok = listed.as_array().expect("a list").iter().find(|hook| hook["name"] == "ok").expect("it is listed");
    assert_eq!(ok["headers"], json!({ "X-Api-Key": "***" }), "values that were kept bare are not shown");
    for status in ["delivered", "failed", "cancelled"] {
        for id in facts["deliveries"][status].as_array().expect("a list") {
            let delivery = entity.delivery(id.as_str().expect("a text")).await;
            assert_eq!(delivery["status"], status, "{delivery}");
            let attempts = delivery["attempts"].as_array().map_or(0, Vec::len);
            assert_eq!(json!(attempts), delivery["attemptCount"], "{delivery}");
        }
        // The index that lists them by state is younger than they are.
        let listed = entity.get(&format!("/webhook/delivery/list?limit=100&status={status}")).expect(200).await.json();
        let listed = listed["items"].as_array().expect("openapi.yaml says so");
        let listed: Vec<_> = listed.iter().map(|delivery| &delivery["id"]).collect();
        let expected = facts["deliveries"][status].as_array().expect("a list");
        assert!(expected.iter().all(|id| listed.contains(&id)), "{status}: {listed:?}");
    }
    // Its events are shown, each with one delivery for each webhook that wanted it.
    let first = facts["deliveries"]["delivered"][0].as_str().expect("a text");
    let event = entity.delivery(first).await["event"].clone();
    let path = format!("/webhook/event/{}", event["id"].as_str().expect("openapi.yaml says so"));
    let shown = entity.get(&path).expect(200).await.json();
    assert_eq!(shown["data"], event["data"]);
    let deliveries = shown["deliveries"].as_array().expect("openapi.yaml says so");
    assert!(deliveries.iter().any(|delivery| delivery["id"] == first), "{shown:#}");
    bundle.cut_power().await;
}

async fn what_the_first_release_had_left_open_is_recovered_and_sent(suite: Arc<Suite>) {
    let _permit = suite.no_other_bundle().await;
    let (bundle, _, entity) = opened(&suite).await;
    let facts = facts();
    let receiver = Receiver::start().await;
    let (kept, gone) = (receiver.on("/kept", [Behaviour::status(200)]), receiver.on("/gone", [Behaviour::status(200)]));
    let id = |name: &str| facts["webhooks"][name]["id"].as_str().expect("a text").to_owned();
    let headers = json!({ "X-Api-Key": "topsecretvalue" });
    for (name, change) in [
        ("ok", json!({ "eventUrl": kept, "headers": headers })),
        ("gone", json!({ "eventUrl": gone, "headers": headers, "enabled": true })),
    ] {
        entity.call("PATCH", &format!("/webhook/{}", id(name))).json(&change).expect(200).await;
    }
    // The secret of before signs a new event.
    entity.publish_of_type("booking.created", json!({ "after": "the update" })).await;
    let sent = until("the new event", LONG, async || receiver.received("/kept").into_iter().next()).await;
    assert!(is_signed_by(&sent, facts["webhooks"]["ok"]["signingSecret"].as_str().expect("a text")));
    assert_eq!(sent.header("x-api-key"), "topsecretvalue");
    // What had failed with a 410 is found, although no index knew it then.
    let range = json!({ "since": "2020-01-01T00:00:00Z" });
    let recovered = entity.post(&format!("/webhook/{}/recover", id("gone"))).json(&range).expect(202).await.json();
    assert_eq!(recovered["count"], 1, "{recovered}");
    until("what had failed, and the new event", LONG, async || (receiver.received("/gone").len() >= 2).then_some(()))
        .await;
    bundle.cut_power().await;
}
