//! The same where the store is a bucket, as it is on AWS.

use std::{sync::Arc, time::Duration};

use doubles::update_server::{archive, sha256};
use serde_json::{Value, json};

use crate::harness::{
    Api, Behaviour, Settings, Suite, UpdateServer, aws_authorization_of,
    geo_ip::{call, database, day, maxmind, operator, task, told},
    tests,
};

tests![releases_are_published_and_rolled_back_in_a_bucket];

const CITY: &str = "City";

/// An object of the bucket.
fn object(api: &Api, name: &str) -> String {
    format!("{}/geo-ip/local/{CITY}/{name}", api.env["S3_ENDPOINT"])
}

async fn read(api: &Api, name: &str) -> Option<Vec<u8>> {
    let request = reqwest::Client::new().get(object(api, name)).header("authorization", aws_authorization_of(&api.env));
    let answer = request.send().await.expect("the bucket answers");
    if answer.status() == 404 {
        return None;
    }
    Some(answer.error_for_status().expect("it is there").bytes().await.expect("a whole object").to_vec())
}

/// The pointer, which names the releases.
async fn pointer(api: &Api) -> Option<Value> {
    let pointer: Value = serde_json::from_slice(&read(api, "current.json").await?).expect("a pointer is JSON");
    for release in ["current", "previous"] {
        if let Some(name) = pointer[release]["sha256"].as_str() {
            let file = read(api, &format!("{name}.mmdb")).await.expect("what a pointer names is there");
            assert_eq!(sha256(&file), name);
        }
    }
    Some(pointer)
}

async fn releases_are_published_and_rolled_back_in_a_bucket(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    let secrets = [("geo-ip", json!({ "editions": [maxmind(CITY, &server)] }))];
    let settings = Settings::default().with("GEO_IP_STORE", "s3://geo-ip");
    let (bundle, api, _permit) = suite.other_bundle_with(settings, &secrets).await;
    let run = async |query: &str| told(&call(&api, query).await);

    server.offer(CITY, &day(9), &database(CITY, 9));
    assert!(run("").await.1.contains("would publish"));
    assert_eq!(pointer(&api).await, None);
    let (success, message) = run("?live=true").await;
    assert!(success && message.contains("published build"), "{message}");
    let first = pointer(&api).await.expect("published");
    assert_eq!(first["current"]["buildDate"], day(9));
    assert!(run("?live=true").await.1.contains("is up to date"));
    assert_eq!(server.received(&UpdateServer::download(CITY)).len(), 2);

    // Somebody else changes the pointer while the update is under way.
    let second = database(CITY, 7);
    server.offer(CITY, &day(7), &second);
    server.forget();
    let slow = Behaviour::answer(200, &[], archive(CITY, &second)).after(Duration::from_secs(1));
    server.instead(&UpdateServer::download(CITY), [slow]);
    let (answer, ()) = tokio::join!(task(&api, "?live=true"), async {
        server.until(&UpdateServer::download(CITY), 1).await;
        let changed = [first.to_string().as_bytes(), b"\n"].concat();
        let put = reqwest::Client::new().put(object(&api, "current.json")).body(changed);
        let put = put.header("authorization", aws_authorization_of(&api.env)).send().await;
        put.and_then(reqwest::Response::error_for_status).expect("the bucket takes it");
    });
    let (success, message) = told(&answer.expect("an answer"));
    assert!(!success && message.contains("the pointer was changed at the same time"), "{message}");
    assert_eq!(pointer(&api).await, Some(first));

    let (success, message) = run("?live=true").await;
    assert!(success && message.contains(&format!("was {}", day(9))), "{message}");
    let (success, said) = operator(&api, &["rollback", CITY]).await;
    assert!(success && said.contains("is current again"), "{said}");
    assert_eq!(pointer(&api).await.expect("published")["current"]["buildDate"], day(9));
    let (success, message) = run("?live=true").await;
    assert!(!success && message.contains("was rolled back and is blocked"), "{message}");

    // What neither readers nor a rollback need any more is removed.
    let oldest = pointer(&api).await.expect("published")["current"]["sha256"].as_str().expect("a text").to_owned();
    for age in [5, 3] {
        assert!(read(&api, &format!("{oldest}.mmdb")).await.is_some());
        server.offer(CITY, &day(age), &database(CITY, age));
        let (success, message) = run("?live=true").await;
        assert!(success && message.contains("published build"), "{message}");
    }
    assert!(read(&api, &format!("{oldest}.mmdb")).await.is_none());
    let (success, said) = operator(&api, &["rollback", CITY]).await;
    assert!(success && said.contains("is current again"), "{said}");
    let (success, said) = operator(&api, &["lookup", "1.1.1.1"]).await;
    assert!(success && said.contains("\"daysAgo\": 5"), "{said}");
    assert!(bundle.stop().await.success());
}
