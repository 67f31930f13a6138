//! Geo-IP updates with a bucket as the store, as on AWS, and the operator's commands for them.

use std::sync::Arc;

use contract_test::contract_test;
use fakes::{
    Ministack,
    update_server::{archive, sha256},
};
use geo_ip::testing::DatabaseBuilder;
use serde_json::{Value, json};

use crate::harness::{
    Api, Behaviour, Gate, Settings, Suite, UpdateServer, admin, aws_caller,
    geo_ip::{call, database, day, maxmind, operator, task, task_result},
    now,
};

const CITY: &str = "City";

fn object(api: &Api, name: &str) -> String {
    format!("{}/geo-ip/local/{CITY}/{name}", api.env["S3_ENDPOINT"])
}

async fn read(api: &Api, name: &str) -> Option<Vec<u8>> {
    let request = aws_caller(&api.env).sign(reqwest::Client::new().get(object(api, name)));
    let answer = request.send().await.expect("the bucket answers");
    if answer.status() == 404 {
        return None;
    }
    Some(answer.error_for_status().expect("it is there").bytes().await.expect("a whole object").to_vec())
}

async fn pointer(api: &Api) -> Option<Value> {
    let pointer: Value = serde_json::from_slice(&read(api, "current.json").await?).expect("a pointer is JSON");
    for release in ["current", "previous"] {
        if let Some(name) = pointer[release]["name"].as_str() {
            let file = read(api, &format!("{name}.mmdb")).await.expect("the file that a pointer names exists");
            assert_eq!(pointer[release]["sha256"], sha256(&file));
        }
    }
    Some(pointer)
}

#[contract_test]
async fn releases_are_published_and_rolled_back_in_a_bucket(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    let secrets = [("geo-ip", json!({ "editions": [maxmind(CITY, &server)] }))];
    let s3 = Ministack::start("s3").await;
    let made = reqwest::Client::new().put(format!("{}/geo-ip", s3.url())).send().await.expect("it answers");
    assert!(made.status().is_success(), "{made:?}");
    let settings = Settings::default().with("GEO_IP_STORE", "s3://geo-ip").overriding("--s3", s3.url());
    let (bundle, api, _permit) = suite.other_bundle_with(settings, &secrets).await;
    let run = async |query: &str| task_result(&call(&api, query).await);

    server.offer(CITY, &day(9), &database(CITY, 9));
    assert!(run("").await.1.contains("would publish"));
    assert_eq!(pointer(&api).await, None);
    let (success, message) = run("?live=true").await;
    assert!(success && message.contains("published build"), "{message}");
    let first = pointer(&api).await.expect("published");
    assert_eq!(first["current"]["buildDate"], day(9));
    assert!(run("?live=true").await.1.contains("is up to date"));
    assert_eq!(server.received(&UpdateServer::download(CITY)).len(), 2);

    // Another writer changes the pointer during the update.
    let second = database(CITY, 7);
    server.offer(CITY, &day(7), &second);
    server.forget();
    let offers = Gate::closed();
    let slow = Behaviour::answer(200, &[], archive(CITY, &second)).behind(&offers);
    server.instead(&UpdateServer::download(CITY), [slow]);
    let (answer, ()) = tokio::join!(task(&api, "?live=true"), async {
        server.until(&UpdateServer::download(CITY), 1).await;
        let changed = [first.to_string().as_bytes(), b"\n"].concat();
        let put = reqwest::Client::new().put(object(&api, "current.json")).body(changed);
        let put = aws_caller(&api.env).sign(put).send().await;
        put.and_then(reqwest::Response::error_for_status).expect("the bucket takes it");
        offers.open();
    });
    let (success, message) = task_result(&answer.expect("an answer"));
    assert!(!success && message.contains("another process changed the pointer"), "{message}");
    assert_eq!(pointer(&api).await, Some(first));

    let (success, message) = run("?live=true").await;
    assert!(success && message.contains(&format!("was {}", day(9))), "{message}");
    let (success, said) = operator(&api, &["rollback", CITY]).await;
    assert!(success && said.contains("is current again"), "{said}");
    assert_eq!(pointer(&api).await.expect("published")["current"]["buildDate"], day(9));
    let (success, message) = run("?live=true").await;
    assert!(!success && message.contains("was rolled back and is blocked"), "{message}");

    // Releases that neither readers nor a rollback need are removed.
    let oldest = pointer(&api).await.expect("published")["current"]["name"].as_str().expect("a text").to_owned();
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

fn built_at(hour: i64) -> Vec<u8> {
    const DAY: i64 = 24 * 60 * 60;
    let built = u64::try_from((now() / DAY - 7) * DAY + hour * 3600).expect("after 1970");
    DatabaseBuilder::new(CITY, built).with_many(200).with("1.1.1.0/24", json!({ "hour": hour })).build()
}

#[contract_test]
async fn an_operator_updates_and_unblocks_one_of_two_releases_of_a_day(suite: Arc<Suite>) {
    let server = UpdateServer::start().await;
    let secrets = [("geo-ip", json!({ "editions": [maxmind(CITY, &server)] }))];
    let (bundle, _, _permit) = suite.other_bundle_with(Settings::default(), &secrets).await;
    let update = async || admin(&bundle, &["geo-ip", "update"]).await;
    let [morning, evening] = [6, 18].map(built_at);

    server.offer(CITY, &day(7), &morning);
    let first = admin(&bundle, &["geo-ip", "update", "--json"]).await.json();
    assert_eq!(first["success"], true, "{first}");
    server.offer(CITY, &day(7), &evening);
    let said = update().await.done();
    assert!(said.contains("T18:00:00Z") && said.contains("T06:00:00Z"), "{said}");

    let rolled_back = admin(&bundle, &["geo-ip", "rollback", CITY, "--json"]).await.json();
    assert_eq!(rolled_back["current"], rolled_back["blocked"], "both are of one day");
    let [current, blocked] = ["currentRelease", "blockedRelease"].map(|name| rolled_back[name].clone());
    assert_eq!((&current["sha256"], &blocked["sha256"]), (&json!(sha256(&morning)), &json!(sha256(&evening))));
    let hour = |release: &Value| {
        release["buildTime"].as_str().expect("a time").split_once('T').map(|(_, time)| time.to_owned())
    };
    assert_eq!((hour(&current).as_deref(), hour(&blocked).as_deref()), (Some("06:00:00Z"), Some("18:00:00Z")));
    let looked_up = admin(&bundle, &["geo-ip", "lookup", "1.1.1.77", "--json"]).await.json();
    assert_eq!((&looked_up[0]["sha256"], &looked_up[0]["buildTime"]), (&current["sha256"], &current["buildTime"]));

    // The output states the reason, and the exit code reports the failure.
    let refused = update().await;
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.out.contains(&sha256(&evening)) && refused.out.contains("is blocked"), "{}", refused.out);

    let refusal = admin(&bundle, &["geo-ip", "unblock", CITY, &sha256(&morning)]).await.failed(3);
    assert!(refusal.contains(&sha256(&evening)), "the refusal lists the blocked releases: {refusal}");
    admin(&bundle, &["geo-ip", "unblock", CITY, "short"]).await.failed(2);
    let unblocked = admin(&bundle, &["geo-ip", "unblock", CITY, &sha256(&evening)[..12], "--json"]).await.json();
    assert_eq!(unblocked["unblocked"], json!(sha256(&evening)));
    let said = update().await.done();
    assert!(said.contains("published build") && said.contains("T18:00:00Z"), "{said}");
    assert!(bundle.stop().await.success());
}
