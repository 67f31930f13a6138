//! The token issuer: requests, tokens and refusals.

use std::{collections::HashSet, sync::Arc};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use contract_test::contract_test;
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, Application, Call, Suite, now};

const GRANT: (&str, &str) = ("grant_type", "client_credentials");

/// The demo application's credentials, as form parameters.
fn credentials(api: &Api) -> [(&'static str, String); 2] {
    [("client_id", api.env["CLIENT_ID"].clone()), ("client_secret", api.env["CLIENT_SECRET"].clone())]
}

/// A request by the demo application, with additional parameters.
fn request(api: &Api, more: &[(&str, &str)]) -> Call {
    let credentials = credentials(api);
    let mut form = vec![GRANT];
    form.extend(credentials.iter().map(|(name, value)| (*name, value.as_str())));
    form.extend(more);
    api.post("/oauth2/token").form(&form)
}

fn basic(id: &str, secret: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{id}:{secret}")))
}

fn scopes(token: &Value) -> Vec<&str> {
    token["scope"].as_str().expect("openapi.yaml says so").split(' ').collect()
}

fn parts(token: &str) -> (Value, Value) {
    let mut parts = token.split('.').map(|part| BASE64_URL_SAFE_NO_PAD.decode(part).expect("base64"));
    let mut part = || serde_json::from_slice(&parts.next().expect("three parts")).expect("JSON");
    (part(), part())
}

/// Asserts that the response is this error, with the headers that forbid caching.
async fn refused(call: Call, status: u16, code: &str) -> ApiResponse {
    let answer = call.expect(status).await;
    assert_eq!(answer.json()["error"], code, "{}", answer.exchange);
    assert_eq!(answer.header("cache-control"), "no-store", "{}", answer.exchange);
    assert_eq!(answer.header("pragma"), "no-cache", "{}", answer.exchange);
    answer
}

#[contract_test]
async fn a_client_may_authenticate_in_the_form_or_with_basic(suite: Arc<Suite>) {
    let api = &suite.api;
    let in_form = request(api, &[]).expect(200).await;
    let id = &api.env["CLIENT_ID"];
    let secret = &api.env["CLIENT_SECRET"];
    let with_basic =
        api.post("/oauth2/token").header("authorization", basic(id, secret)).form(&[GRANT]).expect(200).await;
    for answer in [in_form, with_basic] {
        let token = answer.json();
        assert_eq!(token["token_type"], "Bearer");
        assert_eq!(token["expires_in"], 3600);
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("pragma"), "no-cache");
        assert_eq!(answer.header("content-type").split(';').next(), Some("application/json"));
        let token = token["access_token"].as_str().expect("openapi.yaml says so");
        let list = format!("/api/managing-entity/{}/webhook/event/list", api.env["MANAGING_ENTITY"]);
        api.get(list).bearer(token).expect(200).await;
    }
}

#[contract_test]
async fn an_issued_token_is_what_rfc_9068_and_the_contract_say(suite: Arc<Suite>) {
    let api = &suite.api;
    let before = now();
    let answer = request(api, &[("scope", "integrations.read mcp.read")]).expect(200).await.json();
    let token = answer["access_token"].as_str().expect("openapi.yaml says so");
    let (header, claims) = parts(token);
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(header["alg"], "ES256");
    assert_eq!(claims["iss"], api.env["AUTH_URL"].as_str());
    assert_eq!(claims["aud"], api.env["BASE_URL"].as_str());
    assert_eq!(claims["sub"], api.env["CLIENT_ID"].as_str());
    assert_eq!(claims["client_id"], api.env["CLIENT_ID"].as_str());
    assert_eq!(claims["scope"], answer["scope"]);
    assert_eq!(claims["managing_entities"], json!([api.env["MANAGING_ENTITY"]]));
    let issued = claims["iat"].as_i64().expect("a time");
    let expires = claims["exp"].as_i64().expect("a time");
    assert_eq!(expires - issued, 3600);
    assert!((before..=now()).contains(&issued), "issued at {issued}, which is not now");

    let keys = api.get("/oauth2/jwks").expect(200).await.json();
    let keys = keys["keys"].as_array().expect("openapi.yaml says so");
    let key = keys.iter().find(|key| key["kid"] == header["kid"]).expect("the token's key is published");
    let coordinate = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(key[name].as_str().expect("text")).expect("base64");
    let point = [&[4][..], &coordinate("x"), &coordinate("y")].concat();
    let (message, signature) = token.rsplit_once('.').expect("three parts");
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).expect("base64");
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(message.as_bytes(), &signature)
        .expect("the published key verifies the token");
}

#[contract_test]
async fn every_token_has_its_own_identifier(suite: Arc<Suite>) {
    let mut identifiers = HashSet::new();
    for _ in 0..5 {
        let answer = request(&suite.api, &[]).expect(200).await.json();
        let (_, claims) = parts(answer["access_token"].as_str().expect("openapi.yaml says so"));
        let identifier = claims["jti"].as_str().expect("a token has an identifier").to_owned();
        assert!(!identifier.is_empty() && identifiers.insert(identifier), "the identifier came twice: {claims}");
    }
}

#[contract_test]
async fn the_platforms_token_covers_every_entity(suite: Arc<Suite>) {
    let token = suite.api.token(Application::Platform, "").await;
    assert_eq!(parts(&token).1["managing_entities"], json!(["*"]));
    suite.api.get("/api/managing-entity/anything-at-all/webhook/list").bearer(&token).expect(200).await;
}

#[contract_test]
async fn a_client_without_wishes_gets_all_its_scopes(suite: Arc<Suite>) {
    let answer = request(&suite.api, &[]).expect(200).await.json();
    let areas = "account inventory booking marketing content analytics integrations payment accounting mcp".split(' ');
    let all: HashSet<String> =
        areas.flat_map(|area| ["read", "write", "remove"].map(|right| format!("{area}.{right}"))).collect();
    let granted = scopes(&answer);
    assert_eq!(granted.len(), 30, "a scope came twice: {granted:?}");
    assert_eq!(granted.into_iter().map(str::to_owned).collect::<HashSet<_>>(), all);
}

#[contract_test]
async fn only_the_scopes_that_were_asked_for_are_granted(suite: Arc<Suite>) {
    let answer = request(&suite.api, &[("scope", "payment.remove booking.read")]).expect(200).await.json();
    assert_eq!(scopes(&answer).into_iter().collect::<HashSet<_>>(), HashSet::from(["payment.remove", "booking.read"]));
}

#[contract_test]
async fn a_scope_that_is_asked_for_twice_counts_once(suite: Arc<Suite>) {
    let answer = request(&suite.api, &[("scope", "booking.read booking.read")]).expect(200).await.json();
    assert_eq!(answer["scope"], "booking.read");
}

#[contract_test]
async fn an_empty_scope_is_none(suite: Arc<Suite>) {
    // RFC 6749 §3.1: a parameter without a value is treated as missing.
    let answer = request(&suite.api, &[("scope", "")]).expect(200).await.json();
    assert_eq!(scopes(&answer).len(), 30);
}

#[contract_test]
async fn one_impossible_scope_fails_the_whole_issuance(suite: Arc<Suite>) {
    for scope in [
        "booking.read nonsense",
        "nonsense",
        "booking",
        "booking.*",
        "BOOKING.READ",
        "booking.read,booking.write",
        "openid",
    ] {
        refused(request(&suite.api, &[("scope", scope)]), 400, "invalid_scope").await;
    }
}

#[contract_test]
async fn a_malformed_request_is_an_invalid_request(suite: Arc<Suite>) {
    let credentials = credentials(&suite.api);
    let credentials: Vec<_> = credentials.iter().map(|(name, value)| (*name, value.as_str())).collect();
    refused(suite.api.post("/oauth2/token").form(&credentials), 400, "invalid_request").await;
    let empty = [&[("grant_type", "")], &credentials[..]].concat();
    refused(suite.api.post("/oauth2/token").form(&empty), 400, "invalid_request").await;
    refused(suite.api.post("/oauth2/token").form(&[]), 400, "invalid_request").await;
}

#[contract_test]
async fn another_grant_is_unsupported(suite: Arc<Suite>) {
    let credentials = credentials(&suite.api);
    for grant in ["password", "authorization_code", "refresh_token", "CLIENT_CREDENTIALS"] {
        let mut form = vec![("grant_type", grant)];
        form.extend(credentials.iter().map(|(name, value)| (*name, value.as_str())));
        refused(suite.api.post("/oauth2/token").form(&form), 400, "unsupported_grant_type").await;
    }
}

#[contract_test]
async fn a_parameter_may_not_be_repeated(suite: Arc<Suite>) {
    let api = &suite.api;
    let id = api.env["CLIENT_ID"].as_str();
    let secret = api.env["CLIENT_SECRET"].as_str();
    for repeated in [GRANT, ("client_id", id), ("client_secret", secret), ("grant_type", "password")] {
        refused(request(api, &[repeated]), 400, "invalid_request").await;
    }
    refused(request(api, &[("scope", "booking.read"), ("scope", "booking.write")]), 400, "invalid_request").await;
    refused(request(api, &[("unknown", "1"), ("unknown", "2")]), 400, "invalid_request").await;
}

#[contract_test]
async fn a_body_that_is_no_form_is_an_invalid_request(suite: Arc<Suite>) {
    let api = &suite.api;
    let id = &api.env["CLIENT_ID"];
    let secret = &api.env["CLIENT_SECRET"];
    let form = format!("grant_type=client_credentials&client_id={id}&client_secret={secret}");
    let json = json!({ "grant_type": "client_credentials", "client_id": id, "client_secret": secret }).to_string();
    for (content_type, body) in [("application/json", &json), ("text/plain", &form), ("multipart/form-data", &form)] {
        refused(api.post("/oauth2/token").body(content_type, body.as_str()), 400, "invalid_request").await;
    }
    refused(api.post("/oauth2/token").untyped_body(form.as_str()), 400, "invalid_request").await;
    let not_text = [form.as_bytes(), b"&scope=\xff"].concat();
    refused(api.post("/oauth2/token").body("application/x-www-form-urlencoded", not_text), 400, "invalid_request")
        .await;
    let with_charset = "Application/X-WWW-Form-Urlencoded; charset=UTF-8";
    api.post("/oauth2/token").body(with_charset, form.as_str()).expect(200).await;
}

#[contract_test]
async fn both_ways_of_authenticating_at_once_are_refused(suite: Arc<Suite>) {
    let api = &suite.api;
    let basic = basic(&api.env["CLIENT_ID"], &api.env["CLIENT_SECRET"]);
    refused(request(api, &[]).header("authorization", &basic), 400, "invalid_request").await;
}

#[contract_test]
async fn missing_credentials_are_an_invalid_client(suite: Arc<Suite>) {
    let api = &suite.api;
    let id = api.env["CLIENT_ID"].as_str();
    let secret = api.env["CLIENT_SECRET"].as_str();
    for form in [
        vec![GRANT],
        vec![GRANT, ("client_id", id)],
        vec![GRANT, ("client_secret", secret)],
        vec![GRANT, ("client_id", id), ("client_secret", "")],
    ] {
        let answer = refused(api.post("/oauth2/token").form(&form), 401, "invalid_client").await;
        assert_eq!(answer.header("www-authenticate"), r#"Basic realm="token""#, "{}", answer.exchange);
    }
}

#[contract_test]
async fn credentials_that_fail_are_answered_with_a_challenge_at_every_endpoint(suite: Arc<Suite>) {
    let api = &suite.api;
    let id = &api.env["CLIENT_ID"];
    for authorization in
        [basic(id, "wrong"), basic("appUnknown", "wrong"), basic(id, ""), "Basic ###".to_owned(), "Basic".to_owned()]
    {
        let call = api.post("/oauth2/token").header("authorization", &authorization).form(&[GRANT]);
        let answer = refused(call, 401, "invalid_client").await;
        assert!(answer.header("www-authenticate").starts_with("Basic"), "{authorization}: {}", answer.exchange);
    }
    // RFC 9110, section 15.5.2, applies to all forms of credentials, and to requests without any.
    let wrong = [GRANT, ("token", "x"), ("client_id", id.as_str()), ("client_secret", "wrong")];
    for path in ["/oauth2/token", "/oauth2/introspect", "/oauth2/revoke"] {
        for form in [&wrong[..], &wrong[..2]] {
            let answer = refused(api.post(path).form(form), 401, "invalid_client").await;
            assert!(answer.header("www-authenticate").starts_with("Basic"), "{path}: {}", answer.exchange);
        }
    }
}

#[contract_test]
async fn an_unknown_client_looks_like_a_wrong_secret(suite: Arc<Suite>) {
    let api = &suite.api;
    let id = &api.env["CLIENT_ID"];
    let mut answers = Vec::new();
    for (id, secret) in [
        (id.as_str(), "A".repeat(43)),
        ("appAAAAAAAAAAAAAAAAAAAAAA", "A".repeat(43)),
        (id.as_str(), "short".to_owned()),
    ] {
        let call = api.post("/oauth2/token").form(&[GRANT, ("client_id", id), ("client_secret", &secret)]);
        let answer = refused(call, 401, "invalid_client").await;
        let mut body = answer.json();
        body["instance"].take();
        let mut headers = answer.headers.clone();
        // API Gateway adds the last of these headers.
        for each_has_its_own in ["x-request-id", "date", "apigw-requestid"] {
            headers.remove(each_has_its_own);
        }
        answers.push((body, headers));
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "the answers differ: {answers:#?}");
}

#[contract_test]
async fn a_client_is_authenticated_before_its_wishes_are_heard(suite: Arc<Suite>) {
    let form = [GRANT, ("client_id", "appUnknown"), ("client_secret", "wrong"), ("scope", "nonsense")];
    refused(suite.api.post("/oauth2/token").form(&form), 401, "invalid_client").await;
}

#[contract_test]
async fn credentials_in_the_query_are_not_credentials(suite: Arc<Suite>) {
    let api = &suite.api;
    let id = &api.env["CLIENT_ID"];
    let secret = &api.env["CLIENT_SECRET"];
    let path = format!("/oauth2/token?client_id={id}&client_secret={secret}");
    refused(api.post(path).form(&[GRANT]), 401, "invalid_client").await;
}

#[contract_test]
async fn other_parameters_are_ignored(suite: Arc<Suite>) {
    request(&suite.api, &[("audience", "something"), ("prompt", "none")]).expect(200).await;
}

#[contract_test]
async fn a_parameter_that_looks_like_scope_is_refused(suite: Arc<Suite>) {
    for name in ["scopes", "Scope", "scope[]", "scope[0]"] {
        let answer = refused(request(&suite.api, &[(name, "integrations.read")]), 400, "invalid_request").await;
        let said = answer.json()["error_description"].as_str().expect("a text").to_owned();
        assert!(said.contains(&format!("parameter {name} ")) && said.contains("parameter named scope,"), "{said}");
    }
}

#[contract_test]
async fn a_token_is_for_the_resource_that_was_named(suite: Arc<Suite>) {
    let api = &suite.api;
    let base = api.env["BASE_URL"].as_str();
    let agents = format!("{base}/mcp");
    let with_slash = format!("{base}/");
    for (resources, audience, status) in [
        (vec![], base, 200),
        (vec![base], base, 200),
        (vec![&*with_slash], base, 200),
        (vec![&*agents, base], base, 200),
        (vec![&*agents], &*agents, 401),
        (vec![&*agents, &*agents], &*agents, 401),
    ] {
        let form: Vec<_> = resources.iter().map(|resource| ("resource", *resource)).collect();
        let answer = request(api, &form).expect(200).await.json();
        let token = answer["access_token"].as_str().expect("openapi.yaml says so");
        assert_eq!(parts(token).1["aud"], audience, "{resources:?}");
        let me = &api.env["MANAGING_ENTITY"];
        let path = format!("/api/managing-entity/{me}/webhook/list");
        api.get(path).bearer(token).expect(status).await;
        let credentials = credentials(api);
        let [id, secret] = credentials.each_ref().map(|(name, value)| (*name, value.as_str()));
        let form = [id, secret, ("token", token)];
        let introspected = api.post("/oauth2/introspect").form(&form).expect(200).await.json();
        assert_eq!((&introspected["active"], &introspected["aud"]), (&json!(true), &json!(audience)), "{resources:?}");
        api.post("/oauth2/revoke").form(&form).expect(200).await;
        let introspected = api.post("/oauth2/introspect").form(&form).expect(200).await.json();
        assert_eq!(introspected, json!({ "active": false }), "{resources:?}");
    }
}

#[contract_test]
async fn a_token_for_another_service_is_not_issued(suite: Arc<Suite>) {
    let base = suite.api.env["BASE_URL"].as_str();
    for bad in ["https://example.com/", "mcp", &format!("{base}/api"), &format!("{base}/mcp#x")] {
        refused(request(&suite.api, &[("resource", bad)]), 400, "invalid_target").await;
        refused(request(&suite.api, &[("resource", base), ("resource", bad)]), 400, "invalid_target").await;
    }
}

#[contract_test]
async fn the_metadata_describe_the_issuer(suite: Arc<Suite>) {
    let api = &suite.api;
    let answer = api.get("/.well-known/oauth-authorization-server").expect(200).await;
    let metadata = answer.json();
    let issuer = &api.env["AUTH_URL"];
    assert_eq!(metadata["issuer"], issuer.as_str());
    assert_eq!(metadata["token_endpoint"], format!("{issuer}/oauth2/token"));
    assert_eq!(metadata["jwks_uri"], format!("{issuer}/oauth2/jwks"));
    assert_eq!(metadata["authorization_endpoint"], format!("{issuer}/oauth2/authorize"));
    assert_eq!(metadata["response_types_supported"], json!(["code"]));
    assert_eq!(metadata["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(metadata["scopes_supported"].as_array().map(Vec::len), Some(30));
    assert_eq!(metadata["grant_types_supported"], json!(["client_credentials"]));
    for endpoint in ["token", "introspection", "revocation"] {
        let methods = &metadata[format!("{endpoint}_endpoint_auth_methods_supported")];
        assert_eq!(*methods, json!(["client_secret_basic", "client_secret_post", "private_key_jwt"]), "{endpoint}");
        let algorithms = &metadata[format!("{endpoint}_endpoint_auth_signing_alg_values_supported")];
        assert_eq!(*algorithms, json!(["ES256", "ES384", "EdDSA", "Ed25519", "RS256", "PS256"]), "{endpoint}");
    }
    assert_eq!(metadata["introspection_endpoint"], format!("{issuer}/oauth2/introspect"));
    assert_eq!(metadata["revocation_endpoint"], format!("{issuer}/oauth2/revoke"));
}

#[contract_test]
async fn the_metadata_of_each_resource_lead_to_the_issuer(suite: Arc<Suite>) {
    let api = &suite.api;
    for path in ["", "/mcp"] {
        let metadata = api.get(format!("/.well-known/oauth-protected-resource{path}")).expect(200).await.json();
        assert_eq!(metadata["resource"], format!("{}{path}", api.env["BASE_URL"]));
        assert_eq!(metadata["authorization_servers"], json!([api.env["AUTH_URL"]]));
        assert_eq!(metadata["scopes_supported"], json!(["mcp.read"]));
        let resource = metadata["resource"].as_str().expect("an address");
        request(api, &[("resource", resource), ("scope", "mcp.read")]).expect(200).await;
    }
}

#[contract_test]
async fn sign_in_is_refused_and_the_answer_says_what_to_do_instead(suite: Arc<Suite>) {
    let path =
        "/oauth2/authorize?response_type=code&client_id=x&redirect_uri=https%3A%2F%2Felsewhere.example%2F&state=s";
    let answer = suite.api.get(path).expect(400).await;
    assert_eq!(answer.json()["error"], "unsupported_response_type", "{}", answer.exchange);
    assert!(
        answer.text().contains("client_credentials") && !answer.text().contains("elsewhere"),
        "{}",
        answer.exchange
    );
    let page = suite.api.get(path).header("accept", "text/html").expect(400).await;
    assert!(page.header("content-type").starts_with("text/html") && page.header("location").is_empty());
    assert!(page.text().contains("/oauth2/token") && !page.text().contains("elsewhere"), "{}", page.exchange);
}

#[contract_test]
async fn the_published_keys_can_be_cached(suite: Arc<Suite>) {
    let answer = suite.api.get("/oauth2/jwks").expect(200).await;
    assert!(answer.header("cache-control").contains("max-age="), "{}", answer.exchange);
    assert!(!answer.text().contains("\"d\""), "a private key was published");
}

#[contract_test]
async fn a_request_that_is_too_large_is_a_problem(suite: Arc<Suite>) {
    let padding = "x".repeat(7 * 1024 * 1024);
    request(&suite.api, &[("padding", &padding)]).expect(413).await;
}
