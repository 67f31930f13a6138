//! The callback's refusals, and how they affect the state.

use std::{collections::BTreeSet, fs, sync::Arc};

use contract_test::contract_test;
use fakes::provider::RequestOutcome;
use serde_json::{Value, json};

use crate::harness::{
    ApiResponse, Application, Choice, Entity, LONG, Suite, Visit, hash_of, invalid_values, now, outcome_of, until,
};

type Query<'a> = &'a [(&'a str, &'a str)];

/// The callback's path with these parameters, which are escaped.
fn callback(provider: &str, parameters: Query<'_>) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    format!("/api/public/{provider}/oauth2/callback?{query}")
}

/// Asserts that the provider has received no request so far, and that the person's callback still works.
async fn still_works(suite: &Suite, visit: &Visit) {
    assert_eq!(suite.providers().exchanges(visit.code()), []);
    visit.arrive("connected").await;
}

async fn visit(entity: &Entity) -> Visit {
    entity.visit("sim-basic", Choice::ALLOW).await
}

#[contract_test]
async fn malformed_values_are_refused_and_cost_nothing(suite: Arc<Suite>) {
    let visit = visit(&suite.entity().await).await;
    let code = ("code", visit.code());
    let state = ("state", visit.state.as_str());
    let long = "x".repeat(5_000);
    let cases: [(Query<'_>, &[&str]); 13] = [
        (&[], &["code", "state"]),
        (&[code], &["state"]),
        (&[state], &["code"]),
        (&[code, ("state", "")], &["state"]),
        (&[("code", ""), state], &["code"]),
        (&[("code", ""), ("state", "")], &["code", "state"]),
        (&[code, state, state], &["state"]),
        (&[code, code, state], &["code"]),
        (&[code, state, ("state", "other")], &["state"]),
        (&[("code", &long), state], &["code"]),
        (&[("error", "access_denied")], &["state"]),
        (&[("error", "access_denied"), ("error", "access_denied"), code, state], &["error"]),
        (&[("error", "access_denied"), ("error", "access_denied"), state], &["error"]),
    ];
    for (parameters, names) in cases {
        let problem = visit.at(callback("sim-basic", parameters)).refused(400, "invalid-request").await;
        let expected: BTreeSet<_> = names.iter().map(|name| format!("query/{name}")).collect();
        assert_eq!(BTreeSet::from_iter(invalid_values(&problem)), expected, "{parameters:?}: {problem:#}");
    }
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn an_unknown_state_is_refused(suite: Arc<Suite>) {
    let visit = visit(&suite.entity().await).await;
    let other = visit.state.to_lowercase();
    let swapped = visit.state.chars().rev().collect::<String>();
    let unknown = "A".repeat(43);
    for state in ["x", &unknown, &other, &swapped, &visit.state[1..], "STATE#x", "\0", "é", "../../x", " "] {
        if state != visit.state {
            let path = callback("sim-basic", &[("code", visit.code()), ("state", state)]);
            visit.at(path).refused(400, "invalid-state").await;
        }
    }
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn an_expired_state_is_refused(suite: Arc<Suite>) {
    let visit = visit(&suite.entity().await).await;
    let key = format!("STATE#{}", hash_of(&visit.state));
    assert!(suite.table().item(&key, "STATE").await.is_some(), "a state is stored by its hash");
    let moved = suite.table().set(&key, "STATE", "expiresDate", "2026-01-01T00:00:00.000Z").await;
    assert!(moved, "the state's expiry was moved");
    visit.callback().refused(400, "invalid-state").await;
    assert_eq!(suite.providers().exchanges(visit.code()), []);
}

#[contract_test]
async fn a_state_of_another_provider_is_refused_and_still_works_at_its_own(suite: Arc<Suite>) {
    let visit = visit(&suite.entity().await).await;
    for provider in ["square", "sim-body"] {
        let path = callback(provider, &[("code", visit.code()), ("state", &visit.state)]);
        visit.at(path).refused(400, "invalid-state").await;
        let path = callback(provider, &[("error", "access_denied"), ("state", &visit.state)]);
        visit.at(path).refused(400, "invalid-state").await;
    }
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn a_provider_that_does_not_exist_has_no_valid_state(suite: Arc<Suite>) {
    let visit = visit(&suite.entity().await).await;
    for provider in ["unknown", "mollie", "UPPER", "a_b", "sim-basic%20"] {
        let path = callback(provider, &[("code", visit.code()), ("state", &visit.state)]);
        visit.at(path).refused(400, "invalid-state").await;
    }
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn a_bad_access_token_is_refused_and_costs_nothing(suite: Arc<Suite>) {
    let visit = visit(&suite.entity().await).await;
    let forge = suite.forge();
    let mut expired = forge.claims();
    expired["scope"] = "payment.write".into();
    expired["exp"] = (now() - 5).into();
    let stranger = suite.forge().with_another_key();
    for authorization in [
        "Bearer".to_owned(),
        "Bearer nonsense".to_owned(),
        "Basic YTpi".to_owned(),
        String::new(),
        format!("Bearer {}", forge.token(&forge.header(), &expired)),
        format!("Bearer {}", stranger.token(&stranger.header(), &stranger.claims())),
    ] {
        visit.callback().header("authorization", &authorization).refused(401, "unauthorized").await;
    }
    // The scope and the entity are checked before the request's values (the contract's checks 3, 4 and 7).
    let mut claims = forge.claims();
    claims["scope"] = "payment.read payment.remove".into();
    let token = forge.token(&forge.header(), &claims);
    visit.callback().bearer(&token).refused(403, "insufficient-scope").await;
    suite.api.get(callback("sim-basic", &[])).bearer(&token).refused(403, "insufficient-scope").await;
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn an_access_token_for_another_entity_is_refused_and_costs_nothing(suite: Arc<Suite>) {
    let visit = visit(&suite.entity().await).await;
    let token = suite.api.token(Application::Demo, "payment.write").await;
    visit.callback().bearer(&token).refused(403, "entity-not-covered").await;
    let path = callback("sim-basic", &[("error", "access_denied"), ("state", &visit.state)]);
    visit.at(path).bearer(&token).refused(403, "entity-not-covered").await;
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn a_good_access_token_is_as_good_as_none(suite: Arc<Suite>) {
    let visit = visit(&suite.entity().await).await;
    let token = suite.api.token(Application::Platform, "payment.write").await;
    let answer = visit.callback().bearer(&token).expect(302).await;
    assert_eq!(outcome_of(&answer), "connected", "{}", answer.exchange);
}

#[contract_test]
async fn another_issuer_is_refused_and_costs_nothing(suite: Arc<Suite>) {
    let visit = suite.entity().await.visit("sim-pkce", Choice::ALLOW).await;
    assert_eq!(visit.back.parameter("iss"), suite.providers().issuer("sim-pkce"));
    let code = ("code", visit.code());
    let state = ("state", visit.state.as_str());
    let near = format!("{}/", visit.back.parameter("iss"));
    let other = suite.providers().issuer("sim-basic");
    for iss in ["https://evil.example", &near, &other, "x"] {
        let path = callback("sim-pkce", &[code, state, ("iss", iss)]);
        visit.at(path).refused(400, "invalid-state").await;
        let path = callback("sim-pkce", &[("error", "access_denied"), state, ("iss", iss)]);
        visit.at(path).refused(400, "invalid-state").await;
    }
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn a_missing_issuer_is_refused_where_the_provider_announces_it(suite: Arc<Suite>) {
    let visit = suite.entity().await.visit("sim-pkce", Choice::ALLOW).await;
    let code = ("code", visit.code());
    let state = ("state", visit.state.as_str());
    for parameters in [
        &[code, state][..],
        &[code, state, ("iss", "")],
        &[("error", "access_denied"), state],
        &[("error", "server_error"), state],
    ] {
        visit.at(callback("sim-pkce", parameters)).refused(400, "invalid-state").await;
    }
    still_works(&suite, &visit).await;
}

/// The cause of a refusal, as logged by the callback.
async fn cause(suite: &Suite, answer: &ApiResponse) -> String {
    let log = suite.bundle().data().join("logs/provider-callback.log");
    let request = answer.header("x-request-id");
    until("the cause is in the log", LONG, async || {
        let text = fs::read_to_string(&log).ok()?;
        let lines = text.lines().filter(|line| line.contains(request));
        let mut lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let refused = lines.find(|line| line["message"] == "refused")?;
        Some(refused["cause"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

#[contract_test]
async fn only_the_log_has_the_cause_of_a_refusal(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let (visit, expired, used) = (
        entity.visit("sim-pkce", Choice::ALLOW).await,
        entity.visit("sim-basic", Choice::ALLOW).await,
        entity.link("sim-basic", Choice::ALLOW).await,
    );
    let key = format!("STATE#{}", hash_of(&expired.state));
    assert!(suite.table().set(&key, "STATE", "expiresDate", "2026-01-01T00:00:00.000Z").await);
    let code = ("code", visit.code());
    let state = ("state", visit.state.as_str());
    let at = |provider: &str, more: Query<'_>| visit.at(callback(provider, &[&[code, state], more].concat()));
    let unknown = callback("sim-pkce", &[code, ("state", &"A".repeat(43))]);
    let own = visit.back.path(suite.api.base_url());
    let mut answers = Vec::new();
    for (call, words) in [
        (at("sim-pkce", &[("iss", "https://evil.example")]), "`iss` belongs to another provider"),
        (at("sim-pkce", &[]), "has no `iss`"),
        (at("sim-basic", &[]), "made for another provider"),
        (visit.at(callback("no-such", &[code, state])), "made for another provider"),
        (visit.at(callback("UPPER", &[code, state])), "no provider with this name"),
        (visit.at(callback("sim-pkce", &[code, ("state", "x")])), "this service did not issue the state"),
        (visit.at(unknown), "the state is unknown"),
        (suite.api.get(own), "sent no cookie"),
        (used.at(own), "another browser"),
        (expired.callback(), "has expired"),
        (suite.api.get(expired.back.path(suite.api.base_url())), "has expired"),
        (used.callback(), "was used"),
    ] {
        let answer = call.expect(400).await;
        let cause = cause(&suite, &answer).await;
        assert!(cause.contains(words) && !cause.contains(&visit.state), "{words}: {cause}");
        let mut body = answer.json();
        body["instance"] = Value::Null;
        answers.push(body);
    }
    assert_eq!(answers[0]["kind"], "invalid-state");
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    still_works(&suite, &visit).await;
}

#[contract_test]
async fn of_fifty_callbacks_at_once_one_exchanges_the_code(suite: Arc<Suite>) {
    let visit = Arc::new(visit(&suite.entity().await).await);
    let callbacks: Vec<_> = (0..50)
        .map(|_| {
            let visit = Arc::clone(&visit);
            tokio::spawn(async move { visit.callback().answered().await })
        })
        .collect();
    let mut answers: Vec<ApiResponse> = Vec::new();
    for callback in callbacks {
        answers.push(callback.await.expect("it did not panic"));
    }
    let of_status = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((of_status(302), of_status(400)), (1, 49), "{answers:#?}");
    assert_eq!(suite.providers().exchanges(visit.code()), [RequestOutcome::Done]);
}

#[contract_test]
async fn any_other_error_of_the_provider_is_a_failure(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for error in ["server_error", "temporarily_unavailable", "invalid_scope", "something-else"] {
        let visit = visit(&entity).await;
        let path = callback("sim-basic", &[("error", error), ("state", &visit.state)]);
        let answer = visit.at(&path).expect(302).await;
        let location = answer.header("location");
        assert!(location.contains("/panel/provider/sim-basic?outcome=failed&"), "{}", answer.exchange);
        assert!(location.contains(&format!("&error={error}&proof=")), "{}", answer.exchange);
        let page = visit.at(location.strip_prefix(suite.api.base_url()).expect("its own")).expect(200).await.text();
        assert!(page.contains(&format!("<code>{error}</code>")), "{page}");
        visit.at(&path).refused(400, "invalid-state").await;
        visit.callback().refused(400, "invalid-state").await;
        assert_eq!(suite.providers().exchanges(visit.code()), []);
    }
    assert!(entity.connections().await.is_empty());
}

#[contract_test]
async fn nothing_hostile_is_reflected(suite: Arc<Suite>) {
    const MARK: &str = "h0st1le";
    let entity = suite.entity().await;
    // A request line has room for three of these values.
    let long = MARK.repeat(400);
    for hostile in [
        "h0st1le\r\nSet-Cookie: h0st1le=1",
        "h0st1le\nLocation: https://h0st1le.example",
        "<script>h0st1le</script>",
        "\"'><img src=x onerror=h0st1le>",
        "h0st1le&outcome=connected#h0st1le",
        "https://h0st1le.example/%0d%0a",
        "h0st1le\0\u{1}\u{7f}\u{202e}",
        &long,
    ] {
        let visit = visit(&entity).await;
        let state = ("state", visit.state.as_str());
        let paths = [
            // Requests that are refused come first, since they do not change the state.
            callback("sim-basic", &[("code", hostile), ("state", hostile)]),
            callback("sim-basic", &[("code", hostile), state, state]),
            callback("sim-basic", &[("code", visit.code()), state, ("iss", hostile)]),
            callback("sim-basic", &[("error", hostile), ("error_description", hostile), ("state", hostile)]),
            callback("sim-basic", &[("error", hostile), ("error_description", hostile), ("error_uri", hostile), state]),
        ];
        for path in paths {
            // The page with the Problem's text comes first, since an outcome uses up the state.
            for accept in ["text/html", "*/*"] {
                let answer = visit.at(&path).header("accept", accept).answered().await;
                assert!([302, 400].contains(&answer.status), "{}", answer.exchange);
                let head = format!("{:?}", answer.headers);
                assert!(!head.contains(MARK) && !answer.text().contains(MARK), "{}", answer.exchange);
            }
        }
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("outcome", "connected"), ("entity", hostile), ("account", hostile), ("proof", hostile)])
            .finish();
        let page = visit.at(format!("/panel/provider/sim-basic?{query}")).expect(200).await;
        assert!(!page.text().contains(MARK) && !format!("{:?}", page.headers).contains(MARK), "{}", page.exchange);
    }
    assert_eq!(json!(entity.connections().await), json!([]));
}
