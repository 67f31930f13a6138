//! Pages for people: errors for clients whose `Accept` prefers a page, the API reference, HEAD, and scripts from other
//! origins. Programs still get JSON.

use std::sync::Arc;

use contract_test::contract_test;
use fakes::provider::PROVIDERS_WORDS;

use crate::harness::{ApiResponse, Call, Choice, Suite, Visit, hash_of};

/// The `Accept` header that Firefox sends when a person follows a link.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// The page that a browser gets, which must not be cached.
async fn page(call: Call, status: u16) -> ApiResponse {
    let answer = call.header("accept", BROWSER).expect(status).await;
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{}", answer.exchange);
    assert_eq!(answer.header("vary"), "Accept", "{}", answer.exchange);
    assert_eq!(answer.header("cache-control"), "no-store", "{}", answer.exchange);
    assert!(!answer.header("content-security-policy").contains("unsafe"), "{}", answer.exchange);
    let html = answer.text();
    assert!(html.starts_with("<!DOCTYPE html>") && !html.contains("<script") && !html.contains('`'), "{html}");
    assert!(html.contains(answer.header("x-request-id")), "the page has the request's id, for support: {html}");
    answer
}

fn says(answer: &ApiResponse, parts: &[&str]) {
    let html = answer.text();
    for part in parts {
        assert!(html.contains(part), "{part}: {html}");
    }
}

async fn expire(suite: &Suite, visit: &Visit) {
    let key = format!("STATE#{}", hash_of(&visit.state));
    assert!(
        suite.table().set(&key, "STATE", "expiresDate", "2026-01-01T00:00:00.000Z").await,
        "the state's expiry was moved"
    );
}

#[contract_test]
async fn an_expired_link_is_explained_to_the_browser_that_it_was_made_for(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let visit = entity.visit("square", Choice::ALLOW).await;
    expire(&suite, &visit).await;
    let answer = page(visit.callback(), 400).await;
    says(&answer, &["This link has expired", &entity.id, "Square", "ten minutes", "ask for a new link"]);
    let problem = visit.callback().refused(400, "invalid-state").await;
    assert!(!problem.to_string().contains(&entity.id), "a program gets no details: {problem}");
    assert_eq!(suite.providers().exchanges(visit.code()), []);
}

#[contract_test]
async fn a_used_link_is_explained_to_the_browser_that_used_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let visit = entity.link("sim-basic", Choice::ALLOW).await;
    let answer = page(visit.callback(), 400).await;
    says(&answer, &["already been used", &entity.id, "sim-basic", "list of connections"]);
    assert_eq!(suite.providers().exchanges(visit.code()).len(), 1, "reloading the page exchanges nothing");
    // A different browser opens the same URL.
    let stranger = suite.entity().await.visit("sim-basic", Choice::ALLOW).await;
    let answer = page(stranger.at(visit.back.path(suite.api.base_url())), 400).await;
    assert!(!answer.text().contains(&entity.id), "{}", answer.exchange);
}

#[contract_test]
async fn a_failed_exchange_is_explained_and_programs_get_an_empty_object(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let fails = async || entity.visit("square", Choice::leading_to("fail-invalid_grant")).await;
    let answer = page(fails().await.callback(), 500).await;
    says(&answer, &["Not connected", "Square did not complete the connection", &entity.id, "To try again"]);
    assert!(!answer.text().contains(PROVIDERS_WORDS), "{}", answer.exchange);
    for accept in ["*/*", "application/json", "application/json, text/html;q=0.9"] {
        let answer = fails().await.callback().header("accept", accept).expect(500).await;
        assert_eq!(answer.body, b"{}", "{accept}: {}", answer.exchange);
        assert_eq!(answer.header("vary"), "Accept", "a cache must distinguish page and JSON");
    }
    assert!(entity.connections().await.is_empty());
}

#[contract_test]
async fn a_person_learns_the_cause_and_where_access_may_remain(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for (fate, words) in [
        (
            "fail-invalid_client",
            ["rejected this service&#39;s credentials", "This service&#39;s operator must correct", &entity.id],
        ),
        ("fail-lost", ["did not complete the connection", "remove it there", &entity.id]),
        ("fail-no-access-token", ["did not complete the connection", "remove it there", &entity.id]),
    ] {
        let visit = entity.visit("square", Choice::leading_to(fate)).await;
        says(&page(visit.callback(), 500).await, &words);
    }
    let refused = entity.visit("square", Choice::leading_to("fail-invalid_grant")).await;
    let answer = page(refused.callback(), 500).await;
    assert!(!answer.text().contains("remove it there"), "{}", answer.exchange);
    assert!(entity.connections().await.is_empty());
}

#[contract_test]
async fn a_stranger_learns_neither_entity_nor_provider(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let visit = entity.visit("sim-basic", Choice::ALLOW).await;
    let path = visit.back.path(suite.api.base_url());
    let unknown = format!("/api/public/sim-basic/oauth2/callback?code=c&state={}", "A".repeat(43));
    let invented = format!("/api/public/call-0900-for-help/oauth2/callback?code=c&state={}", visit.state);
    for call in [suite.api.get(path), visit.at(unknown), visit.at(invented)] {
        let answer = page(call, 400).await;
        says(&answer, &["This link is not valid", "ask for a new link"]);
        assert!(!answer.text().contains(&entity.id) && !answer.text().contains("0900"), "{}", answer.exchange);
    }
    visit.arrive("connected").await;
}

#[contract_test]
async fn a_start_page_that_is_over_says_whose_it_was(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let visit = entity.visit("square", Choice::ALLOW).await;
    let start = format!("/api/public/square/oauth2/start?state={}", visit.state);
    expire(&suite, &visit).await;
    says(&page(suite.api.get(&start), 400).await, &["This link has expired", &entity.id, "Square"]);
    suite.api.get(&start).refused(400, "invalid-state").await;
    let unknown = format!("/api/public/square/oauth2/start?state={}", "A".repeat(43));
    says(&page(suite.api.get(unknown), 400).await, &["This link is not valid"]);
}

#[contract_test]
async fn a_page_is_for_those_alone_who_prefer_one(suite: Arc<Suite>) {
    says(
        &page(suite.api.get("/api/public/square/oauth2/callback"), 400).await,
        &[
            "2 values are invalid:",
            "<li><code>code</code> is missing",
            "<li><code>state</code> is missing",
            "/problems/invalid-request",
        ],
    );
    let nowhere = page(suite.api.get("/nowhere/%3Cb%3E"), 404).await;
    says(&nowhere, &["Address not found", "/problems/not-found", "&lt;b&gt;"]);
    assert_eq!(page(suite.api.post("/oauth2/jwks"), 405).await.header("allow"), "GET, HEAD, OPTIONS");
    for accept in ["", "*/*", "application/json", "text/html, application/json", "text/html;q=0, */*", "text/html;q=x"]
    {
        suite.api.get("/nowhere").header("accept", accept).refused(404, "not-found").await;
    }
    // An endpoint for programs always responds in the same format, even to browsers.
    let answer = suite.api.get("/api/managing-entity/demo-hotel/webhook/list").header("accept", BROWSER);
    assert_eq!(answer.expect(401).await.header("content-type"), "application/problem+json");
}

#[contract_test]
async fn the_outcome_page_shows_what_happened_and_ignores_the_address(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let (visit, declined) =
        (entity.visit("sim-basic", Choice::ALLOW).await, entity.visit("square", Choice::DENY).await);
    let path = |location: &str| location.strip_prefix(suite.api.base_url()).expect("our own panel").to_owned();
    let connected = path(visit.arrive("connected").await.header("location"));
    let denied = path(declined.arrive("denied").await.header("location"));
    says(&visit.at(&connected).expect(200).await, &["<h1>Connected</h1>", &entity.id, &visit.account]);
    says(&declined.at(&denied).expect(200).await, &["<h1>Not connected</h1>", "You did not allow access at"]);
    // A URL that was typed, forwarded or changed shows no outcome.
    let swapped = denied.replace("outcome=denied", "outcome=connected");
    let typed = "/panel/provider/square?outcome=connected".to_owned();
    for call in [suite.api.get(&connected), declined.at(&connected), declined.at(swapped), declined.at(typed)] {
        let answer = call.expect(200).await;
        let html = answer.text();
        assert!(!html.contains("onnected</h1>") && !html.contains("is connected to"), "{}", answer.exchange);
        says(&answer, &["list of connections"]);
    }
}

#[contract_test]
async fn the_reference_has_every_operation_and_leads_to_the_problems(suite: Arc<Suite>) {
    let answer = suite.api.get("/").expect(200).await;
    let html = answer.text();
    for operation in suite.contract.operations() {
        assert!(html.contains(&format!("<article id=\"{}\">", operation.id)), "{}", operation.id);
    }
    says(&answer, &["<a href=\"/openapi.json\">", "<a href=\"/problems\">", "<a href=\"/receiving\">"]);
    let document = suite.api.get("/openapi.json").expect(200).await.json();
    let release = document["info"]["version"].as_str().expect("openapi.yaml says so");
    says(&answer, &[&format!("Release {release}."), &format!("curl -sS {}/oauth2/token", suite.api.env["AUTH_URL"])]);
    assert!(!html.contains("waypost.example"), "the page shows the deployment's addresses");
    assert!(html.len() < 350_000, "{}", html.len());
    let policy = answer.header("content-security-policy");
    assert!(!policy.contains("unsafe") && !policy.contains("script-src"), "{policy}");
}

#[contract_test]
async fn the_guide_for_receivers_is_a_page_of_the_deployment(suite: Arc<Suite>) {
    let answer = suite.api.get("/receiving").expect(200).await;
    says(
        &answer,
        &["<h1>Receiving webhooks</h1>", "<h2 id=\"verifying-the-signature\">", "<a href=\"/\">API reference</a>"],
    );
    let policy = answer.header("content-security-policy");
    assert!(!policy.contains("unsafe") && !policy.contains("script-src"), "{policy}");
    assert!(!answer.text().contains(".md\""), "no link leads to a file that is not served");
}

#[contract_test]
async fn every_get_but_the_callback_answers_head_without_a_body(suite: Arc<Suite>) {
    for path in [
        "/",
        "/receiving",
        "/openapi.json",
        "/asyncapi.json",
        "/problems",
        "/problems/not-found",
        "/oauth2/jwks",
        "/panel/provider/square",
    ] {
        let get = suite.api.get(path).expect(200).await;
        let head = suite.api.call("HEAD", path).expect(200).await;
        assert!(head.body.is_empty() && !get.body.is_empty(), "{}", head.exchange);
        for name in ["content-type", "cache-control", "content-security-policy", "content-length"] {
            assert_eq!(head.header(name), get.header(name), "{path}: {name}");
        }
    }
    let entity = suite.entity().await;
    let list = entity.get("/webhook/list").expect(200).await;
    let head = entity.call("HEAD", "/webhook/list").expect(200).await;
    assert_eq!(head.header("content-length"), list.header("content-length"));
    suite.api.call("HEAD", entity.path("/webhook/list")).expect(401).await;
    // GET has an effect on the callback. HEAD is refused, so it has none.
    let visit = entity.visit("sim-basic", Choice::ALLOW).await;
    let head = suite.api.call("HEAD", visit.back.path(suite.api.base_url())).header("cookie", &visit.cookie);
    assert_eq!(head.expect(405).await.header("allow"), "GET");
    visit.arrive("connected").await;
}

#[contract_test]
async fn scripts_of_other_origins_read_only_contract_keys_and_metadata(suite: Arc<Suite>) {
    let mut open = Vec::new();
    for operation in suite.contract.operations().into_iter().filter(|operation| operation.method == "GET") {
        let path = operation.path.replace("{kind}", "not-found").replace(['{', '}'], "x");
        let answer = suite.api.get(path).header("origin", "https://elsewhere.example").answered().await;
        match answer.header("access-control-allow-origin") {
            "" => {}
            origin => {
                assert_eq!(origin, "*", "{}", answer.exchange);
                assert_eq!(answer.header("access-control-allow-credentials"), "", "{}", answer.exchange);
                open.push(operation.path);
            }
        }
    }
    open.sort();
    let expected = [
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/asyncapi.json",
        "/oauth2/jwks",
        "/openapi.json",
    ];
    assert_eq!(open, expected);
}
