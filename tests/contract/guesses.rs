//! Guessing credentials at the token issuer: failed attempts are limited by client identifier and address. Clients at
//! other addresses are not locked out, and a successful attempt writes nothing.

use std::{
    cell::Cell,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use contract_test::contract_test;
use futures::{StreamExt, stream};
use serde_json::json;

use crate::harness::{Api, ApiResponse, Call, Settings, Suite, admin, is_limited};

/// How many guesses an address may make at a client within a few minutes.
const GUESSES: usize = 100;
const GRANT: (&str, &str) = ("grant_type", "client_credentials");

/// An address that no other run of a test has used: failed attempts count for minutes.
fn new_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    Ipv4Addr::new(127, 0, 2, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Makes a guess below the limit. A guess that got a 503 may have counted twice, so a later one may be turned away.
async fn guess(call: Call, repeated: &Cell<bool>) -> ApiResponse {
    let answer = call.answered().await;
    repeated.set(repeated.get() || answer.is_repetition);
    assert!(answer.status == 401 || answer.status == 429 && repeated.get(), "{}", answer.exchange);
    answer
}

fn ask(api: &Api, id: &str, secret: &str) -> Call {
    api.post("/oauth2/token").form(&[GRANT, ("client_id", id), ("client_secret", secret)])
}

/// The demo application's token request with its real secret.
fn good(api: &Api) -> Call {
    ask(api, &api.env["CLIENT_ID"], &api.env["CLIENT_SECRET"])
}

fn is_turned_away(answer: &ApiResponse) {
    let body = answer.json();
    assert_eq!(body["error"], "temporarily_unavailable", "{}", answer.exchange);
    assert!(body["type"].as_str().is_some_and(|kind| kind.ends_with("/problems/too-many-attempts")), "{body}");
    assert_eq!(answer.header("cache-control"), "no-store");
    let properties = &body["properties"];
    let name = properties["limitName"].as_str().expect("openapi.yaml says so");
    assert!(name.starts_with("failed-authentications-of-"), "{body}");
    let limit = properties["limit"].as_u64().and_then(|limit| limit.try_into().ok()).expect("openapi.yaml says so");
    assert!((1..=60).contains(&is_limited(answer, name, limit, 360)), "{}", answer.exchange);
}

async fn turned_away(call: Call) {
    is_turned_away(&call.expect(429).await);
}

#[contract_test]
async fn guesses_at_one_client_end_for_that_client_and_address_alone(suite: Arc<Suite>) {
    let api = &suite.api;
    let attacker = api.at_address(new_address());
    let victim = &api.env["CLIENT_ID"];
    let guesses = (0..GUESSES).map(|number| ask(&attacker, victim, &format!("guess{number}")).answered());
    let answers: Vec<_> = stream::iter(guesses).buffer_unordered(10).collect().await;
    // A guess that gets a 503 is counted as well, and is repeated.
    let wrong = answers.iter().filter(|answer| answer.status == 401).count();
    assert!(wrong > GUESSES / 2, "only {wrong} guesses were allowed");
    turned_away(ask(&attacker, victim, "guess")).await;
    turned_away(good(&attacker)).await;
    for path in ["/oauth2/introspect", "/oauth2/revoke"] {
        let form = [("token", "x"), ("client_id", victim.as_str()), ("client_secret", "guess")];
        turned_away(attacker.post(path).form(&form)).await;
    }
    // Any client can forge the proxy header.
    turned_away(good(&attacker).header("x-forwarded-for", "192.0.2.1")).await;
    good(api).expect(200).await;
    good(&api.at_address(new_address())).expect(200).await;
    let id = &api.env["PLATFORM_CLIENT_ID"];
    let secret = &api.env["PLATFORM_CLIENT_SECRET"];
    ask(&attacker, id, secret).expect(200).await;
}

#[contract_test]
async fn guesses_at_many_clients_end_for_the_address(suite: Arc<Suite>) {
    let settings = Settings::default().with("TOKEN_GUESSES_PER_ADDRESS", "20").with("TOKEN_GUESSES_PER_CLIENT", "3");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let attacker = api.at_address(Ipv4Addr::new(127, 0, 0, 9));
    let repeated = Cell::new(false);
    for number in 0..3 {
        guess(ask(&attacker, "*", &number.to_string()), &repeated).await;
    }
    turned_away(ask(&attacker, "*", "x")).await;
    for number in 3..20 {
        guess(ask(&attacker, &format!("app{number}"), "x"), &repeated).await;
    }
    turned_away(ask(&attacker, "app20", "x")).await;
    turned_away(good(&attacker)).await;
    let basic = attacker.post("/oauth2/token").header("authorization", "Basic YTpi").form(&[GRANT]);
    turned_away(basic).await;
    good(&api).expect(200).await;
    // A malformed request does not count as a guess and gets its own error.
    let malformed = [GRANT, ("client_id", "a"), ("client_secret", "b"), ("client_assertion", "c")];
    attacker.post("/oauth2/token").form(&malformed).expect(400).await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn unreadable_credentials_count_as_a_guess(suite: Arc<Suite>) {
    let settings = Settings::default().with("TOKEN_GUESSES_PER_ADDRESS", "7").with("TOKEN_GUESSES_PER_CLIENT", "3");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let attacker = api.at_address(Ipv4Addr::new(127, 0, 0, 11));
    // Invalid `Basic` credentials and invalid assertions, with and without a client identifier.
    let basic = |path: &str| attacker.post(path).header("authorization", "Basic §").form(&[GRANT, ("token", "x")]);
    let assertion = |client: &str| {
        let kind = ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
        attacker.post("/oauth2/token").form(&[GRANT, kind, ("client_assertion", "a.b.c"), ("client_id", client)])
    };
    let repeated = Cell::new(false);
    for path in ["/oauth2/token", "/oauth2/introspect", "/oauth2/revoke"] {
        let answer = guess(basic(path), &repeated).await;
        let is_challenged = answer.header("www-authenticate").starts_with("Basic");
        assert!(is_challenged || answer.status == 429, "{}", answer.exchange);
    }
    turned_away(basic("/oauth2/token")).await;
    turned_away(assertion("")).await;
    let victim = &api.env["CLIENT_ID"];
    for _ in 0..3 {
        guess(assertion(victim), &repeated).await;
    }
    turned_away(assertion(victim)).await;
    turned_away(ask(&attacker, victim, "guess")).await;
    guess(ask(&attacker, "appOther", "guess"), &repeated).await;
    turned_away(assertion("appAnother")).await;
    good(&api).expect(200).await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn concurrent_guesses_are_limited(suite: Arc<Suite>) {
    let attacker = suite.api.at_address(new_address());
    let guesses = (0..300).map(|number| ask(&attacker, "appAtOnce", &number.to_string()).send());
    let answers: Vec<_> = stream::iter(guesses).buffer_unordered(50).collect().await;
    let refused = answers.iter().filter(|answer| answer.status == 401).count();
    // There are fewer if a guess was counted but its response came too late.
    assert!(refused <= 100, "{refused}");
    answers.iter().filter(|answer| ![401, 503].contains(&answer.status)).for_each(is_turned_away);
    turned_away(ask(&attacker, "appAtOnce", "one more")).await;
}

#[contract_test]
async fn an_operator_unblocks_an_address_or_one_client_of_it(suite: Arc<Suite>) {
    let settings = Settings::default().with("TOKEN_GUESSES_PER_ADDRESS", "8").with("TOKEN_GUESSES_PER_CLIENT", "3");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    let source = Ipv4Addr::new(127, 0, 0, 21);
    let victim = &api.env["CLIENT_ID"];
    let client = api.at_address(source);
    let guess = async |id: &str, times: u32| {
        for _ in 0..times {
            ask(&client, id, "guess").expect(401).await;
        }
    };
    let unblock = async |more: &[&str]| {
        let run = admin(&bundle, &[&["application", "unblock", &source.to_string(), "--json"], more].concat()).await;
        assert!(run.err.contains(r#""action":"guesses.forget""#), "{}", run.err);
        run.json()["clientsForgotten"].clone()
    };
    guess(victim, 3).await;
    guess("appOther", 3).await;
    turned_away(good(&client)).await;
    assert_eq!(unblock(&["--client", victim]).await, 1);
    good(&client).expect(200).await;
    turned_away(ask(&client, "appOther", "x")).await;
    // The count for the whole address remains.
    guess(victim, 2).await;
    turned_away(good(&client)).await;
    assert_eq!(unblock(&["--client", victim]).await, 1);
    turned_away(good(&client)).await;
    assert_eq!(unblock(&[]).await, 1);
    good(&client).expect(200).await;
    guess("appOther", 3).await;
    turned_away(ask(&client, "appOther", "x")).await;
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn a_guess_that_cannot_be_counted_is_not_answered(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let counts = |call: &crate::harness::AwsCall| call.operation == "UpdateItem" && call.mentions("GUESSES#");
    good(&setup.api).expect(200).await;
    // Every retry by the SDK is refused, too.
    setup.table.refuse(usize::MAX, "ProvisionedThroughputExceededException", counts);
    let answer = ask(&setup.api, "appNobody", "guess").expect(503).await;
    assert_eq!(answer.json()["error"], "temporarily_unavailable", "{}", answer.exchange);
    assert!(!answer.header("retry-after").is_empty(), "{}", answer.exchange);
    good(&setup.api).expect(200).await;
    assert!(setup.bundle.stop().await.success());
}

#[contract_test]
async fn a_successful_attempt_writes_nothing(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let id = setup.api.env["CLIENT_ID"].clone();
    good(&setup.api).expect(200).await; // each day's first use is recorded
    let about = setup.table.calls_mentioning(&id);
    for _ in 0..5 {
        good(&setup.api).expect(200).await;
    }
    let operations: Vec<_> = setup.table.calls_mentioning(&id).split_off(about.len());
    assert!(operations.iter().all(|call| call.operation == "BatchGetItem"), "{operations:?}");
    assert_eq!(json!(operations.len()), 5);
    assert!(setup.bundle.stop().await.success());
}
