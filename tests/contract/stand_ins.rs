//! The local AWS stand-ins hold every secret: webhooks, browsers, and users who cannot read `service.env` must have no
//! access to them.

use std::{collections::BTreeMap, sync::Arc};

use contract_test::contract_test;
use futures::{StreamExt, stream};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};

use crate::harness::{Api, AwsCaller, Bundle, Entity, Settings, Suite, aws_caller};

/// The number of concurrent attacks.
const AT_ONCE: usize = 8;

/// An `Authorization` header from a caller with the wrong secret key.
fn forged(access_key_id: &str) -> String {
    let credential = format!("{access_key_id}/20260101/us-east-1/any/aws4_request");
    format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host;x-amz-date, Signature=00")
}

/// Requests that return secrets or data to authorized callers: the address, the path and the target.
fn questions(env: &BTreeMap<String, String>) -> [(&str, &str, &str); 4] {
    [
        (&env["SERVICES_ENDPOINT"], "/", "secretsmanager.ListSecrets"),
        (&env["SERVICES_ENDPOINT"], "/", "AmazonSQS.ListQueues"),
        (&env["DYNAMODB_ENDPOINT"], "/", "DynamoDB_20120810.ListTables"),
        (&env["LAMBDA_ENDPOINT"], "/2015-03-31/functions/openapi/invocations", "none"),
    ]
}

/// The address where a function's process gets its invocations.
async fn runtime_api(bundle: &Bundle) -> String {
    let address = bundle.process("token").await.variable("AWS_LAMBDA_RUNTIME_API").expect("a function has one");
    if address.contains("://") { address } else { format!("http://{address}") }
}

/// The address with other host names that may resolve to this machine.
fn spellings(address: &str) -> Vec<String> {
    let (host, rest) = address.strip_prefix("http://").and_then(|rest| rest.split_once(':')).expect("host and port");
    let hosts = [host, "127.0.0.1", "localhost", "127.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"];
    hosts.map(|host| format!("http://{host}:{rest}")).into()
}

/// Occupies a stand-in's port on the host that webhooks may send to, and closes every connection. Otherwise, another
/// program might listen there. Returns `false` if another program is using the port.
async fn hold(holding: &mut JoinSet<()>, stand_in: &str) -> bool {
    let (host, rest) = stand_in.strip_prefix("http://").and_then(|rest| rest.split_once(':')).expect("host and port");
    if host == "127.0.0.1" {
        return true;
    }
    let port: u16 = rest.split('/').next().and_then(|port| port.parse().ok()).expect("a port");
    let Ok(listener) = TcpListener::bind(("127.0.0.1", port)).await else { return false };
    holding.spawn(async move { while listener.accept().await.is_ok() {} });
    true
}

/// Sends webhooks to every stand-in, by each of its names, using everything that a tenant can set. Returns how many
/// requests the stand-ins refused; fails if one is granted.
async fn attack(bundle: &Bundle, api: &Api) -> usize {
    let mut attacked: Vec<(String, &str)> = Vec::new();
    let mut stand_ins: Vec<(String, &str)> =
        questions(&api.env).map(|(address, path, target)| (format!("{address}{path}"), target)).into();
    // The part of the address that a stranger knows without the key.
    let runtime = runtime_api(bundle).await;
    let host = runtime.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    stand_ins.push((format!("{host}/token/1/2018-06-01/runtime/init/error"), "none"));
    let mut holding = JoinSet::new();
    let mut held = BTreeMap::new();
    for (address, target) in stand_ins {
        let host = address.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        if !held.contains_key(&host) {
            held.insert(host.clone(), hold(&mut holding, &host).await);
        }
        let others = if held[&host] { usize::MAX } else { 1 };
        attacked.extend(spellings(&address).into_iter().take(others).map(|url| (url, target)));
    }

    let attacks = stream::iter(attacked.into_iter().enumerate());
    let attacks = attacks.map(|(number, (url, target))| is_refused(api, format!("attacker-{number}"), url, target));
    let refused: Vec<bool> = attacks.buffer_unordered(AT_ONCE).collect().await;
    refused.into_iter().filter(|is_refused| *is_refused).count()
}

/// Sends requests to this address from a new entity's webhook. Returns whether a stand-in refused the request; fails if
/// a stand-in granted it.
async fn is_refused(api: &Api, entity: String, url: String, target: &str) -> bool {
    let entity = Entity::new(api, entity).await;
    let mut headers = json!({ "Authorization": forged("local"), "X-Amz-Target": target });
    let mut hook = json!({ "name": "x", "eventUrl": url, "eventList": [], "headers": headers });
    if entity.post("/webhook").once().json(&hook).answered().await.status == 400 {
        // Either the header or the address is refused; without the header, only the address can be.
        headers.as_object_mut().expect("an object").remove("X-Amz-Target");
        hook["headers"] = headers;
        if entity.post("/webhook").once().json(&hook).answered().await.status == 400 {
            return false;
        }
    }
    let delivery = entity.publish(json!({})).await;
    let shown = entity.until_delivery(&delivery, "was attempted", |shown| shown["attemptCount"] != 0).await;
    let attempt = &shown["attempts"][0];
    let status = attempt["httpStatus"].as_u64();
    assert!(status.is_none_or(|status| status == 403), "{url} answered a webhook: {attempt:#}");
    let body = attempt["responseBody"].as_str().unwrap_or_default();
    assert!(!body.contains("waypost"), "{url} leaked data to a webhook: {attempt:#}");
    status.is_some()
}

#[contract_test]
async fn no_webhook_reaches_the_stand_ins(suite: Arc<Suite>) {
    let refused = attack(suite.bundle(), &suite.api).await;
    if cfg!(target_os = "linux") {
        assert_eq!(refused, 0, "stand-ins listen at addresses that webhooks cannot have");
    }
}

#[contract_test]
async fn where_webhooks_may_send_anywhere_the_credentials_keep_them_out(suite: Arc<Suite>) {
    let settings = Settings::default().with("DELIVERY_ALLOWED_NETWORKS", "127.0.0.0/8, ::1/128");
    let (bundle, api, _permit) = suite.other_bundle(settings).await;
    assert!(attack(&bundle, &api).await > 0, "nothing was attacked");
    assert!(bundle.stop().await.success());
}

#[contract_test]
async fn headers_that_speak_to_a_cloud_are_reserved(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for name in ["X-Amz-Target", "x-amz-date", "X-AMZ-Security-Token", "x-goog-api-key", "X-Goog-User-Project"] {
        let hook = json!({ "name": "x", "eventUrl": "http://127.0.0.1:9/", "eventList": [], "headers": { name: "x" } });
        let problem = entity.post("/webhook").json(&hook).refused(400, "invalid-request").await;
        let violation = &problem["properties"]["violations"][0];
        assert_eq!(violation["pointer"], format!("/headers/{name}"), "{problem:#}");
        assert!(violation["detail"].as_str().is_some_and(|detail| detail.contains("reserved")), "{problem:#}");
    }
}

fn question(method: Method, asked: (&str, &str, &str), headers: &[(&str, &str)]) -> RequestBuilder {
    let (address, path, target) = asked;
    let client = reqwest::Client::builder().no_proxy().build().expect("a client needs nothing");
    let mut request = client
        .request(method, format!("{address}{path}"))
        .header("x-amz-target", target)
        .header("content-type", "application/x-amz-json-1.0")
        .body("{}");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
}

async fn answer(request: RequestBuilder) -> reqwest::Response {
    request.send().await.expect("a stand-in answers")
}

#[contract_test]
async fn stand_ins_refuse_unknown_callers(suite: Arc<Suite>) {
    let env = &suite.bundle().service_env();
    let wrong = forged("local");
    for asked in questions(env) {
        for headers in [&[][..], &[("authorization", wrong.as_str())], &[("authorization", "Bearer x")]] {
            let answer = answer(question(Method::POST, asked, headers)).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{asked:?} {headers:?}");
            let said = answer.text().await.expect("text");
            assert!(said.contains("AWS_ACCESS_KEY_ID"), "the refusal does not name the required credentials: {said}");
        }
        let answer = answer(aws_caller(env).sign(question(Method::POST, asked, &[]))).await;
        assert_eq!(answer.status(), StatusCode::OK, "{asked:?}: {:?}", answer.text().await);
    }
}

#[contract_test]
async fn stand_ins_refuse_a_request_that_its_caller_did_not_sign(suite: Arc<Suite>) {
    let env = &suite.bundle().service_env();
    let id = &env["AWS_ACCESS_KEY_ID"];
    let signed_with = |secret: &str, asked| AwsCaller::new(id, secret).sign(question(Method::POST, asked, &[]));
    for asked in questions(env) {
        for (request, code) in [
            (signed_with("another key", asked), "InvalidSignatureException"),
            (signed_with(&env["AWS_SECRET_ACCESS_KEY"], asked).body(r#"{"a":1}"#), "InvalidSignatureException"),
            (question(Method::POST, asked, &[("authorization", &forged(id))]), "IncompleteSignatureException"),
        ] {
            let answer = answer(request).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{asked:?}");
            let said = answer.text().await.expect("text");
            assert!(said.contains(code), "{asked:?}: {said}");
        }
    }
}

#[contract_test]
async fn stand_ins_refuse_every_request_of_a_browser(suite: Arc<Suite>) {
    let env = &suite.api.env;
    let caller = aws_caller(env);
    let runtime = runtime_api(suite.bundle()).await;
    let mut all = questions(env).to_vec();
    all.push((&runtime, "/2018-06-01/runtime/init/error", "none"));
    for asked in all {
        for (method, headers) in [
            (Method::POST, [("origin", "https://evil.example"), ("sec-fetch-mode", "cors")]),
            (Method::POST, [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]),
            (Method::POST, [("host", "evil.example"), ("accept", "*/*")]),
            (Method::OPTIONS, [("origin", "https://evil.example"), ("access-control-request-method", "POST")]),
            (Method::GET, [("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "document")]),
        ] {
            let answer = answer(caller.sign(question(method, asked, &headers))).await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{asked:?} {headers:?}");
            let named = answer.headers().keys().find(|name| name.as_str().starts_with("access-control-"));
            assert_eq!(named, None, "{asked:?} {headers:?}");
        }
        let answer = answer(caller.sign(question(Method::POST, asked, &[]))).await;
        let named = answer.headers().keys().find(|name| name.as_str().starts_with("access-control-"));
        assert_eq!(named, None, "{asked:?}");
    }
}

#[contract_test]
async fn the_lambda_runtime_is_only_for_the_functions(suite: Arc<Suite>) {
    let address = runtime_api(suite.bundle()).await;
    let (host, path) = address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a path");
    let client = reqwest::Client::builder().no_proxy().build().expect("a client needs nothing");
    let (key, place) = path.split_once('/').expect("the key, and then the path");
    assert!(key.len() >= 43, "the address can be guessed: {address}");
    for prefix in [place.to_owned(), format!("{}/{place}", "x".repeat(key.len())), format!("/{place}")] {
        let url = format!("http://{host}/{prefix}/2018-06-01/runtime/init/error");
        let answer = client.post(&url).send().await.expect("it answers");
        assert!([StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&answer.status()), "{url}: {answer:?}");
    }
}

#[contract_test]
async fn each_start_makes_new_credentials(suite: Arc<Suite>) {
    let (bundle, _, _permit) = suite.other_bundle(Settings::default()).await;
    let credentials = || {
        let env = bundle.service_env();
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| env[name].clone())
    };
    let before = credentials();
    assert!(before.iter().all(|value| value.len() >= 20 && value.bytes().all(|byte| byte.is_ascii_alphanumeric())));
    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default()).await;
    let after = credentials();
    assert!(before.iter().all(|value| !after.contains(value)), "the same credentials as before");
}
