//! Checks 3 and 4: which tokens are accepted, and which operations they permit.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{ApiResponse, Application, Suite, now};

/// Fails unless the response asks for a token without naming an error (RFC 6750 §3).
fn asked_for_a_token(answer: &ApiResponse) {
    let challenge = answer.header("www-authenticate");
    assert!(challenge.starts_with("Bearer") && !challenge.contains("error"), "{}", answer.exchange);
}

/// Fails unless every operation refuses this value of `Authorization` as an invalid token.
async fn refused_as_invalid(suite: &Suite, authorization: &str) {
    for operation in suite.contract.operations().iter().filter(|operation| operation.needs_token) {
        let path = operation.path.replace("{managingEntityIdentifier}", "covered").replace(['{', '}'], "");
        let answer = suite.api.call(&operation.method, path).header("authorization", authorization).expect(401).await;
        let challenge = answer.header("www-authenticate");
        let is_challenged = challenge.starts_with("Bearer") && challenge.contains(r#"error="invalid_token""#);
        assert!(is_challenged, "{authorization}: {}", answer.exchange);
    }
}

/// Sets a member, or removes it if the value is null.
fn set(object: &mut Value, name: &str, value: Value) {
    match value {
        Value::Null => drop(object.as_object_mut().and_then(|members| members.remove(name))),
        value => object[name] = value,
    }
}

#[contract_test]
async fn a_token_that_the_issuer_did_not_make_is_refused(suite: Arc<Suite>) {
    let forge = suite.forge();
    let header = forge.header();
    let claims = forge.claims();
    let good = forge.token(&header, &claims);
    suite.api.get("/api/managing-entity/covered/webhook/list").bearer(&good).expect(200).await;

    let with_header = |name: &str, value: Value| {
        let mut header = header.clone();
        set(&mut header, name, value);
        forge.token(&header, &claims)
    };
    let with_claim = |name: &str, value: Value| {
        let mut claims = claims.clone();
        set(&mut claims, name, value);
        forge.token(&header, &claims)
    };
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let (head, _) = signed.split_once('.').expect("two parts");
    let other = forge.token(&header, &json!({ "iss": "x" }));
    let other_payload = other.split('.').nth(1).expect("three parts");
    let twice = |text: &str, member: &str| text.replacen('{', &format!("{{{member},"), 1);
    let tokens = [
        "garbage".to_owned(),
        String::new(),
        "a.b.c".to_owned(),
        "..".to_owned(),
        format!("{signed}."),
        signed.to_owned(),
        format!("{good}.{signature}"),
        format!("{head}.{other_payload}.{signature}"),
        format!("{signed}.{}", signature.chars().rev().collect::<String>()),
        format!("{good}="),
        "x".repeat(5_000),
        forge.token_without_signature(&claims),
        forge.token_with_public_key_as_secret(&claims),
        with_header("alg", "none".into()),
        with_header("alg", "HS256".into()),
        with_header("alg", "ES384".into()),
        with_header("alg", Value::Null),
        with_header("typ", "JWT".into()),
        with_header("typ", "id+jwt".into()),
        with_header("typ", Value::Null),
        with_header("kid", "another".into()),
        with_header("kid", "../../etc/passwd".into()),
        with_header("kid", Value::Null),
        with_header("crit", json!(["exp"])),
        with_header("crit", json!(["unheard-of"])),
        with_header("b64", false.into()),
        with_claim("iss", Value::Null),
        with_claim("iss", "https://issuer.example.com".into()),
        with_claim("aud", Value::Null),
        with_claim("aud", "https://api.example.com".into()),
        with_claim("aud", json!(["https://api.example.com"])),
        with_claim("exp", Value::Null),
        with_claim("exp", "tomorrow".into()),
        forge.token_of_texts(header.to_string(), twice(&claims.to_string(), r#""exp":99999999999"#)),
        forge.token_of_texts(header.to_string(), twice(&claims.to_string(), r#""managing_entities":["*"]"#)),
        forge.token_of_texts(header.to_string(), "[]"),
        forge.token_of_texts(header.to_string(), "null"),
        suite.forge().with_another_key().token(&header, &claims),
    ];
    for token in tokens {
        refused_as_invalid(&suite, &format!("Bearer {token}")).await;
    }
}

#[contract_test]
async fn a_token_that_is_no_longer_or_not_yet_valid_is_refused(suite: Arc<Suite>) {
    let forge = suite.forge();
    // No leeway: issuer and API read the same clock. The future is later than the last request, even on a slow machine.
    for (claim, from_now) in [("exp", -2), ("exp", -3_600), ("nbf", 3_600), ("iat", 3_600)] {
        let mut claims = forge.claims();
        claims[claim] = (now() + from_now).into();
        refused_as_invalid(&suite, &format!("Bearer {}", forge.token(&forge.header(), &claims))).await;
    }
}

#[contract_test]
async fn only_a_bearer_token_in_the_header_is_accepted(suite: Arc<Suite>) {
    for authorization in [None, Some("Basic YTpi"), Some("Digest username=x"), Some("Bearerx")] {
        let call = suite.api.get("/api/managing-entity/covered/webhook/list");
        let call = authorization.into_iter().fold(call, |call, value| call.header("authorization", value));
        let answer = call.expect(401).await;
        asked_for_a_token(&answer);
    }
    // RFC 6750 allows a token in the query; this service ignores it there.
    let token = suite.api.token(Application::Platform, "").await;
    let answer =
        suite.api.get(format!("/api/managing-entity/covered/webhook/list?access_token={token}")).expect(401).await;
    asked_for_a_token(&answer);
    let lower_case =
        suite.api.get("/api/managing-entity/covered/webhook/list").header("authorization", format!("bearer {token}"));
    lower_case.expect(200).await;
}

#[contract_test]
async fn a_token_is_bound_to_its_entities(suite: Arc<Suite>) {
    let own = &suite.api.env["MANAGING_ENTITY"];
    let token = suite.api.token(Application::Demo, "").await;
    suite.api.get(format!("/api/managing-entity/{own}/webhook/list")).bearer(&token).expect(200).await;
    // The parameter in the path is decoded before it is compared.
    let encoded = own.replace('-', "%2D");
    suite.api.get(format!("/api/managing-entity/{encoded}/webhook/%6Cist")).bearer(&token).expect(200).await;
    for foreign in
        ["another-hotel", &own.to_uppercase(), &format!("{own}%20"), &format!("{own}%00"), "*", "%2A", &own[1..]]
    {
        let call = suite.api.get(format!("/api/managing-entity/{foreign}/webhook/list")).bearer(&token);
        call.refused(403, "entity-not-covered").await;
    }
}

#[contract_test]
async fn one_scope_does_not_imply_another(suite: Arc<Suite>) {
    for (scope, path, method) in [
        ("integrations.write", "/webhook/list", "GET"),
        ("integrations.remove", "/webhook/list", "GET"),
        ("integrations.read", "/webhook", "POST"),
        ("integrations.remove", "/webhook/event", "POST"),
        ("mcp.read", "/webhook/event/list", "GET"),
    ] {
        let token = suite.api.token(Application::Platform, scope).await;
        let call = suite.api.call(method, format!("/api/managing-entity/covered{path}")).bearer(&token);
        let problem = call.refused(403, "insufficient-scope").await;
        assert_ne!(problem["properties"]["requiredScope"], scope);
        assert!(
            problem["detail"].as_str().is_some_and(|detail| detail.contains("Request one from the token endpoint"))
        );
    }
}
