//! Rotating the signing keys while tokens are being issued and used: no valid token is refused, and no token is valid
//! for longer than its key.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base::Time;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract_test::contract_test;
use futures::{future::join_all, join};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time;

use crate::harness::{
    Api, AwsCall, Behaviour, Bundle, Entity, Forge, LONG, Receiver, Settings, Suite, Table, admin, invocation, now,
    until,
};

const GRANT: (&str, &str) = ("grant_type", "client_credentials");
/// The number of tokens issued between two rotations.
const TOKENS: usize = 200;
/// The number of times that each token is used.
const USES: usize = 10;
/// Functions keep keys in memory for five minutes. Anything that happens sooner did not wait for that.
const KEPT: Duration = Duration::from_secs(4 * 60);

/// Makes the published keys an hour old so that they may sign, since a rotation requires ten minutes.
async fn age_keys(table: &Table) {
    let mut item = table.item("KEYS", "JWKS").await.expect("keys are published");
    let published = Time::from_millis((now() - 3_600) * 1_000).to_string();
    for key in item["keys"]["L"].as_array_mut().expect("a list") {
        key["M"]["publishedDate"] = json!({ "S": published });
    }
    table.put(item).await;
}

/// Makes the keys old enough and runs the operator's program; asserts success, and returns the last output.
async fn rotate(bundle: &Bundle, options: &[&str]) -> String {
    age_keys(&Table::of(&bundle.service_env())).await;
    admin(bundle, &[&["signing-keys", "rotate"], options].concat()).await.done()
}

/// Performs one step of a rotation as Secrets Manager does, with keys that are old enough.
async fn step(api: &Api, step: &str, version: &str) -> Result<(), String> {
    age_keys(&Table::of(&api.env)).await;
    let event = json!({ "Step": step, "SecretId": "waypost/local/signing-key", "ClientRequestToken": version });
    let invoked = invocation(&api.env, "rotate-signing-key", event.to_string()).send().await;
    let answer = invoked.expect("functions can be invoked");
    let failed = !answer.status().is_success() || answer.headers().contains_key("x-amz-function-error");
    let text = answer.text().await.expect("the answer is text");
    if failed { Err(text) } else { Ok(()) }
}

/// The path of a list that any token of these tests may read, below its entity's path.
const LIST: &str = "webhook/event/list";

/// A client that checks only the status.
struct Client {
    http: reqwest::Client,
    env: Arc<BTreeMap<String, String>>,
}

impl Client {
    fn of(api: &Api) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client without TLS needs nothing");
        Self { http, env: Arc::clone(&api.env) }
    }

    /// Gets a new token. The request is repeated, since a function that is being replaced may not respond.
    async fn token(&self) -> String {
        until("a token", LONG, async || self.issue().await?["access_token"].as_str().map(str::to_owned)).await
    }

    /// Requests a token; `None` if there is no response.
    async fn issue(&self) -> Option<Value> {
        let form = [GRANT, ("scope", "integrations.read")];
        let request = self.http.post(format!("{}/oauth2/token", self.env["AUTH_URL"])).form(&form);
        let sent = request.basic_auth(&self.env["CLIENT_ID"], Some(&self.env["CLIENT_SECRET"])).send();
        sent.await.ok()?.json().await.ok()
    }

    /// The status of a request with this token. A 503, as a machine that stalls causes, says nothing about the token, so
    /// the request is repeated.
    async fn uses(&self, token: &str) -> StatusCode {
        self.uses_at(LIST, token).await
    }

    async fn uses_at(&self, path: &str, token: &str) -> StatusCode {
        until("an answer about the token", LONG, async || {
            Some(self.answers_at(path, token).await).filter(|status| *status != StatusCode::SERVICE_UNAVAILABLE)
        })
        .await
    }

    /// The status of one request with this token.
    async fn answers_at(&self, path: &str, token: &str) -> StatusCode {
        let path = format!("api/managing-entity/{}/{path}", self.env["MANAGING_ENTITY"]);
        let request = self.http.get(format!("{}/{path}", self.env["BASE_URL"])).bearer_auth(token);
        request.send().await.expect("the service answers").status()
    }
}

fn header(token: &str) -> Value {
    let encoded = token.split('.').next().expect("there is always a first part");
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(encoded).expect("base64")).expect("JSON")
}

fn kid(token: &str) -> String {
    header(token)["kid"].as_str().expect("tokens contain their key's id").to_owned()
}

/// The ids of the published keys, in order.
async fn published(api: &Api) -> Vec<String> {
    let keys = api.get("/oauth2/jwks").expect(200).await.json();
    let keys = keys["keys"].as_array().expect("openapi.yaml says so");
    keys.iter().map(|key| key["kid"].as_str().expect("openapi.yaml says so").to_owned()).collect()
}

/// The ids of the current and the next key, as stored.
fn kept(bundle: &Bundle) -> [String; 2] {
    let text = fs::read_to_string(bundle.data().join("secrets/signing-key.json")).expect("the bundle has keys");
    let secret: Value = serde_json::from_str(&text).expect("secrets are JSON");
    ["current", "next"].map(|name| secret[name]["kid"].as_str().expect("each has a name").to_owned())
}

/// Ends a function's process, so that the next request starts a new process without cached keys, as happens on AWS.
async fn replace(bundle: &Bundle, function: &str) {
    bundle.process(function).await.kill();
}

/// Sets a published key's expiry, in seconds since the Unix epoch.
async fn end_key(table: &Table, kid: &str, end: i64) {
    let mut item = table.item("KEYS", "JWKS").await.expect("keys are published");
    let keys = item["keys"]["L"].as_array_mut().expect("a list");
    let key = keys.iter_mut().find(|key| key["M"]["kid"]["S"] == kid).expect("it is published");
    key["M"]["until"] = json!({ "S": Time::from_millis(end * 1000).to_string() });
    table.put(item).await;
}

#[contract_test]
async fn keys_rotate_under_load_and_no_good_token_is_refused(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let client = Client::of(&api);
    let [first, second] = kept(&bundle);
    let kids = RefCell::new(BTreeMap::<String, String>::new());
    let issued = Cell::new(0);
    let is_over = Cell::new(false);
    let load = join_all((0..8).map(async |_| {
        while !is_over.get() {
            let token = client.token().await;
            issued.set(issued.get() + 1);
            for _ in 0..USES {
                assert_eq!(client.uses(&token).await, 200, "a token of {}", kid(&token));
            }
            kids.borrow_mut().entry(kid(&token)).or_insert(token);
        }
    }));
    let a_part = async || {
        let enough = issued.get() + TOKENS;
        until("a part of the load", LONG, async || (issued.get() >= enough).then_some(())).await;
    };
    let rotations = async {
        for _ in 0..3 {
            a_part().await;
            rotate(&bundle, &[]).await;
            replace(&bundle, "token").await;
        }
        a_part().await;
        is_over.set(true);
    };
    join!(load, rotations);
    let kids = kids.into_inner();
    assert_eq!(kids.len(), 4, "each of four keys signed: {kids:?}");
    assert_eq!(published(&api).await[..2], [first.clone(), second.clone()], "old keys remain for their tokens");

    // Make the first key expire.
    let table = Table::of(&api.env);
    let item = table.item("KEYS", "JWKS").await.expect("keys are published");
    for key in item["keys"]["L"].as_array().expect("a list") {
        let ends = key["M"].get("until").is_some();
        let staying = kept(&bundle).iter().any(|kid| key["M"]["kid"]["S"] == kid.as_str());
        assert_ne!(ends, staying, "keys that no longer sign have an expiry: {key}");
    }
    end_key(&table, &first, now() - 1).await;
    replace(&bundle, "list-event-types").await;
    until("a function that has read the keys", LONG, async || (client.uses(&kids[&first]).await == 401).then_some(()))
        .await;
    assert!(!published(&api).await.contains(&first));
    for (kid, token) in &kids {
        assert_eq!(client.uses(token).await, if *kid == first { 401 } else { 200 }, "{kid}");
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn in_an_emergency_every_token_of_the_old_keys_is_refused(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let client = Client::of(&api);
    let forge = Forge::of(&bundle);
    let old = client.token().await;
    assert_eq!(client.uses(&old).await, 200);
    let before = kept(&bundle);

    let begun = Instant::now();
    let said = rotate(&bundle, &["--emergency"]).await;
    assert!(before.iter().all(|kid| said.contains(kid)), "{said}");
    let after = kept(&bundle);
    assert_eq!(published(&api).await, after, "no other keys are published");
    until("an old token that is refused", LONG, async || {
        let status = client.uses(&old).await;
        assert!(status == 200 || status == 401, "{status}");
        (status == 401).then_some(())
    })
    .await;
    // A token that a thief signed with that key is also refused.
    let stolen = forge.token(&forge.header(), &forge.claims());
    assert_eq!(client.uses(&stolen).await, 401);

    let new = until("a token of the new key", LONG, async || {
        let token = client.token().await;
        (kid(&token) == after[0]).then_some(token)
    })
    .await;
    // Functions learned from the list of revocations that the key had ended. They read the list twice a minute, and the
    // simulator checks that this is enough.
    assert!(begun.elapsed() < KEPT, "functions still knew the old keys for {:?}", begun.elapsed());
    assert_eq!(client.uses(&new).await, 200);

    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default()).await;
    let client = Client::of(&Api::of(&bundle, &suite.contract));
    assert_eq!(
        (client.uses(&old).await, client.uses(&stolen).await),
        (StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED)
    );
    assert_eq!((client.uses(&new).await, kid(&client.token().await)), (StatusCode::OK, after[0].clone()));
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn an_interrupted_rotation_leaves_a_service_that_issues_and_verifies(suite: Arc<Suite>) {
    const STEPS: [&str; 4] = ["createSecret", "setSecret", "testSecret", "finishSecret"];
    let (bundle, mut api, _permit) = suite.other_bundle(Settings::default()).await;
    let mut tokens = vec![Client::of(&api).token().await];
    for done in 1..=STEPS.len() {
        let version = format!("00000000-0000-4000-8000-00000000000{done}");
        for name in &STEPS[..done] {
            step(&api, name, &version).await.expect("done");
            step(&api, name, &version).await.expect("done again");
        }
        let before = kept(&bundle);
        bundle.cut_power().await;
        bundle.start_again(Settings::default()).await;
        api = Api::of(&bundle, &suite.contract);
        let client = Client::of(&api);
        assert_eq!(kept(&bundle), before, "only the operator's command writes the file");
        tokens.push(client.token().await);
        let published: BTreeSet<_> = published(&api).await.into_iter().collect();
        assert!(before.iter().all(|kid| published.contains(kid)), "{published:?}");
        for token in &tokens {
            assert_eq!(client.uses(token).await, 200, "after {done} steps");
        }
    }

    // The command completes an interrupted rotation, and the result survives the next start.
    let [_, next] = kept(&bundle);
    let said = rotate(&bundle, &[]).await;
    assert!(said.starts_with(&format!("{next} now signs access tokens")), "{said}");
    assert_eq!(kept(&bundle)[0], next);
    bundle.cut_power().await;
    bundle.start_again(Settings::default()).await;
    api = Api::of(&bundle, &suite.contract);
    let client = Client::of(&api);
    let token = client.token().await;
    assert_eq!(kid(&token), next);
    for token in tokens.iter().chain([&token]) {
        assert_eq!(client.uses(token).await, 200);
    }
    let gone = step(&api, "finishSecret", "00000000-0000-4000-8000-000000000001").await;
    assert!(gone.expect_err("refused").contains("begin with createSecret"));

    // An emergency cancels a rotation in progress, and the next rotation starts from the beginning.
    let version = "00000000-0000-4000-8000-000000000009";
    for name in &STEPS[..3] {
        step(&api, name, version).await.expect("done");
    }
    rotate(&bundle, &["--emergency"]).await;
    for name in ["setSecret", "finishSecret"] {
        assert!(step(&api, name, version).await.expect_err("given up").contains("begin with createSecret"));
    }
    let [current, next] = kept(&bundle);
    assert_eq!(published(&api).await, [current.clone(), next.clone()]);
    let said = rotate(&bundle, &[]).await;
    assert!(said.starts_with(&format!("{next} now signs access tokens")), "{said}");
    assert_eq!(published(&api).await, [current, next, kept(&bundle)[1].clone()]);
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_deployment_chooses_its_algorithm_and_may_change_it(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default().with("SIGNING_ALGORITHM", "EdDSA")).await;
    let client = Client::of(&api);
    let old = client.token().await;
    assert_eq!((header(&old)["alg"].as_str(), client.uses(&old).await), (Some("EdDSA"), StatusCode::OK));
    let keys = api.get("/oauth2/jwks").expect(200).await.json();
    let key = &keys["keys"][0];
    assert_eq!((&key["kty"], &key["crv"], &key["alg"]), (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA")));
    assert!(key.get("y").is_none());
    let decoded = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).expect("base64");
    let (message, signature) = old.rsplit_once('.').expect("three parts");
    UnparsedPublicKey::new(&ED25519, decoded(key["x"].as_str().expect("openapi.yaml says so")))
        .verify(message.as_bytes(), &decoded(signature))
        .expect("the published key verifies the token");

    // The next keys use the other algorithm, one after the other.
    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default()).await;
    for expected in ["EdDSA", "ES256"] {
        rotate(&bundle, &[]).await;
        replace(&bundle, "token").await;
        let client = Client::of(&Api::of(&bundle, &suite.contract));
        let token = client.token().await;
        assert_eq!((header(&token)["alg"].as_str(), client.uses(&token).await), (Some(expected), StatusCode::OK));
        assert_eq!(client.uses(&old).await, 200);
    }
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_key_that_would_end_before_its_token_is_replaced_by_the_next(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let [current, next] = kept(&bundle);
    let client = Client::of(&api);
    let token = client.token().await;
    end_key(&Table::of(&api.env), &current, now() + 600).await;
    replace(&bundle, "token").await;
    let refused = until("a refusal to issue", LONG, async || {
        let answer = client.issue().await?;
        (answer["error"] == "temporarily_unavailable" || answer.get("access_token").is_some()).then_some(answer)
    });
    assert_eq!(refused.await["status"], 503);
    assert_eq!(client.uses(&token).await, 200, "earlier tokens are valid until they expire");
    rotate(&bundle, &[]).await;
    assert_eq!(kid(&client.token().await), next, "the function loads the new key when it needs it");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn an_unknown_key_is_not_the_tokens_fault_while_the_table_is_down(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let client = Client::of(&setup.api);
    let forge = Forge::of(&setup.bundle);
    let token = client.token().await;
    assert_eq!(client.uses(&token).await, 200);
    let mut unknown = forge.header();
    unknown["kid"] = "nobodys".into();
    let unknown = forge.token(&unknown, &forge.claims());
    assert_eq!(client.uses(&unknown).await, 401);

    let keys = |call: &AwsCall| call.operation == "BatchGetItem" && call.mentions("JWKS");
    let is_down = Arc::new(AtomicBool::new(true));
    let refuses = Arc::clone(&is_down);
    let refused = move |call: &AwsCall| keys(call) && refuses.load(Ordering::Relaxed);
    setup.table.refuse(usize::MAX, "InternalServerError", refused);
    let until_it_is = async |expected: u16| {
        until("an answer about the unknown key", LONG, async || {
            let status = client.answers_at(LIST, &unknown).await;
            assert!(status == 401 || status == 503, "{status}");
            (status == expected).then_some(())
        })
        .await;
    };
    // Until the keys may be read again, the response reflects the last read.
    until_it_is(503).await;
    assert_eq!(client.uses(&token).await, 200, "tokens of known keys are valid");
    is_down.store(false, Ordering::Relaxed);
    until_it_is(401).await;
    assert!(setup.bundle.stop().await.success());
}

/// IAM permits a call only if one statement covers all its keys, and no statement covers both tokens' and deliveries'
/// keys. A call that read both would be refused, and each request waiting for it would get a 500.
#[contract_test]
async fn keys_share_no_call_with_reads_for_other_requests(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let client = Client::of(&setup.api);
    let forge = Forge::of(&setup.bundle);
    let mut unknown = forge.header();
    unknown["kid"] = "nobodys".into();
    let unknown = forge.token(&unknown, &forge.claims());
    let receiver = Receiver::start().await;
    let entity = Entity::new(&setup.api, "busy".to_owned()).await;
    entity.hook(&receiver.on("/", [Behaviour::status(200)])).await;
    let id = entity.publish(json!({})).await;
    entity.delivery(&id).await;
    setup.table.delay(usize::MAX, Duration::from_millis(900), |call| call.operation == "BatchGetItem");
    // The first two groups of requests occupy the two permitted calls, and the third group's reads wait together with
    // the reads of keys. Together, the requests stay below the function's concurrency, so that none waits for an
    // invocation.
    let shown = async |after: u64| {
        time::sleep(Duration::from_millis(after)).await;
        join_all((0..4).map(|_| entity.delivery(&id))).await
    };
    let path = format!("webhook/delivery/{id}");
    let refused = async {
        time::sleep(Duration::from_millis(400)).await;
        client.uses_at(&path, &unknown).await
    };
    let (_, _, _, status) = join!(shown(0), shown(200), shown(400), refused);
    assert_eq!(status, 401);
    let reads = setup.table.calls_mentioning("JWKS");
    assert!(!reads.is_empty() && reads.iter().all(|call| !call.mentions(&id)), "{reads:?}");
    assert!(setup.bundle.stop().await.success());
}
