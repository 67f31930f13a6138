//! Panel links: their rights, who can see them, and how they end.

use std::{fs, sync::Arc};

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    applications::{forged, made_with, text, token},
    harness::{ApiResponse, Application, Entity, LONG, Suite, invalid_values, is_limited, time, until},
    panel_sessions::{cookie_of, open, opened, renew},
};

/// A new link.
pub struct MadeLink {
    pub id: String,
    /// The code in the link's URL.
    pub code: String,
}

impl MadeLink {
    /// The link in a response.
    pub fn of(json: &Value) -> Self {
        let id = text(json, "id");
        let url = text(json, "url");
        let (_, code) = url.split_once("/panel#code=").expect("the code is the address's fragment");
        Self { id, code: code.to_owned() }
    }
}

/// Creates a link with the platform's token.
pub async fn link(entity: &Entity, body: Value) -> MadeLink {
    MadeLink::of(&entity.post("/panel/link").once().json(&body).expect(201).await.json())
}

async fn listed(entity: &Entity) -> Vec<String> {
    entity.panel_links().await.iter().map(|link| text(link, "id")).collect()
}

#[contract_test]
async fn a_link_gives_what_its_makers_token_has_unless_less_is_asked(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let body = json!({ "name": "test", "scopes": ["integrations.read", "integrations.write", "payment.read"] });
    let application = made_with(&entity, body).await;
    let token = token(api, &application.id, &application.secret).await;
    let make = |body: Value| api.post(entity.path("/panel/link")).bearer(&token).json(&body).expect(201);
    let answer = make(json!({})).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    let plain = answer.json();
    let address = format!("{}{}", api.base_url(), entity.path(&format!("/panel/link/{}", text(&plain, "id"))));
    assert_eq!(answer.header("location"), address);
    assert_eq!(plain["scopes"], json!(["integrations.read", "integrations.write", "payment.read"]));
    assert_eq!((&plain["lifetimeSeconds"], &plain["clientId"]), (&json!(3600), &json!(application.id)));
    assert_eq!(plain["ownerIdentifier"], entity.id.as_str());
    assert!(text(&plain, "url").starts_with(&format!("{}/panel#code=", api.base_url())), "{plain:#}");
    let seconds = |member: &str| time(&plain[member]).as_second();
    assert_eq!(seconds("expiresDate") - seconds("createdDate"), 600);

    let place = "/panel/deliveries?status=failed";
    let asked = json!({ "scopes": ["integrations.read"], "lifetimeSeconds": 86_400, "place": place, "name": "Ada" });
    let narrow = make(asked.clone()).await.json();
    for member in ["scopes", "lifetimeSeconds", "place", "name"] {
        assert_eq!(narrow[member], asked[member]);
    }
    let session = open(api, &MadeLink::of(&narrow).code).expect(200).await.json();
    for member in ["place", "name"] {
        assert_eq!(session[member], asked[member]);
    }
    assert_eq!((&session["scope"], &session["managingEntity"]), (&json!("integrations.read"), &json!(entity.id)));
    // A link created without a body has the default rights.
    api.post(entity.path("/panel/link")).bearer(&token).expect(201).await;
}

#[contract_test]
async fn a_link_never_gives_more_than_its_makers_token_has(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let maker = forged(&suite, "integrations.write booking.read", &[&entity.id]);
    let make = |path: String| suite.api.post(path).bearer(&maker);
    let beyond = json!({ "scopes": ["booking.read", "booking.write", "account.read"] });
    let problem = make(entity.path("/panel/link")).json(&beyond).refused(403, "insufficient-scope").await;
    assert_eq!(problem["properties"]["requiredScope"], "account.read booking.write");
    let elsewhere = make("/api/managing-entity/another-hotel/panel/link".to_owned());
    elsewhere.json(&json!({})).refused(403, "entity-not-covered").await;
    let reader = forged(&suite, "integrations.read", &[&entity.id]);
    let refused = suite.api.post(entity.path("/panel/link")).bearer(&reader).json(&json!({}));
    refused.refused(403, "insufficient-scope").await;
    assert_eq!(listed(&entity).await, Vec::<String>::new());
}

#[contract_test]
async fn a_repetition_by_a_token_with_fewer_scopes_is_shown_no_link(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let make = async |scopes: &str| {
        let token = api.token(Application::Platform, scopes).await;
        api.post(entity.path("/panel/link")).bearer(&token).header("idempotency-key", "one")
    };
    let wide = "integrations.write payment.write";
    let first = make(wide).await.expect(201).await.json();
    assert_eq!(make(wide).await.expect(201).await.json(), first);
    make("integrations.write").await.refused(409, "idempotency-conflict").await;
}

#[contract_test]
async fn an_invalid_request_for_a_link_lists_its_violations(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let bad = json!({ "scopes": ["booking.*"], "lifetimeSeconds": 86_401, "place": "//evil.example", "name": " " });
    let problem = entity.post("/panel/link").json(&bad).refused(400, "invalid-request").await;
    assert_eq!(invalid_values(&problem), ["body/scopes/0", "body/lifetimeSeconds", "body/place", "body/name"]);
    for bad in [json!({ "scopes": [] }), json!({ "lifetimeSeconds": 59 }), json!({ "lifetime": 60 }), json!([])] {
        entity.post("/panel/link").json(&bad).refused(400, "invalid-request").await;
    }
    for place in
        ["/panels", "/panel/nothing", "/panel/../oauth2/token", "/panel/links#code=x", "https://evil.example/panel"]
    {
        let body = json!({ "place": place });
        let problem = entity.post("/panel/link").json(&body).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), ["body/place"], "{place}");
    }
    for name in ["", "\u{200b}", "\u{2800}\u{3164}", "a\nb"] {
        let body = json!({ "name": name });
        let problem = entity.post("/panel/link").json(&body).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), ["body/name"], "{name:?}");
    }
}

#[contract_test]
async fn a_list_has_the_links_that_are_good_the_newest_first_and_no_address(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let first = link(&entity, json!({})).await;
    let second = link(&entity, json!({ "name": "second" })).await;
    let over = link(&entity, json!({})).await;
    let pk = format!("PANEL#{}", entity.id);
    let past = "2026-01-01T00:00:00.000Z";
    assert!(suite.table().set(&pk, &over.id, "expiresDate", past).await);
    let list = entity.get("/panel/link/list").expect(200).await;
    assert!(!list.text().contains("code=") && !list.text().contains(&first.code), "{}", list.exchange);
    assert_eq!(listed(&entity).await, [second.id.clone(), first.id.clone()]);
    assert_eq!(list.json().get("nextCursor"), None);
    assert_eq!(list.json()["items"][1].get("openedDate"), None);
    opened(&suite.api, &first.code).await;
    let list = entity.panel_links().await;
    let seconds = |member: &str| time(&list[1][member]).as_second();
    let session = seconds("sessionEndsDate") - seconds("openedDate");
    assert_eq!((&list[0]["name"], session), (&json!("second"), 3600));
}

#[contract_test]
async fn links_are_listed_page_by_page_and_none_on_two_pages(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.insert(0, link(&entity, json!({})).await.id);
    }
    // The second page skips a link that has ended.
    let over = made.remove(2);
    let past = "2026-01-01T00:00:00.000Z";
    assert!(suite.table().set(&format!("PANEL#{}", entity.id), &over, "expiresDate", past).await);
    let page = async |query: &str| entity.get(&format!("/panel/link/list?{query}")).expect(200).await.json();
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().expect("openapi.yaml says so").iter().map(|link| text(link, "id")).collect()
    };
    let first = page("limit=2").await;
    assert_eq!(ids(&first), made[..2]);
    link(&entity, json!({})).await; // a newer link does not shift the next page
    let second = page(&format!("limit=1&cursor={}", text(&first, "nextCursor"))).await;
    assert_eq!(ids(&second), made[2..3]);
    let third = page(&format!("cursor={}", text(&second, "nextCursor"))).await;
    assert_eq!((ids(&third).as_slice(), third.get("nextCursor")), (&made[3..], None));
    entity.get("/panel/link/list?cursor=x").refused(400, "invalid-cursor").await;
    for (query, field) in [("limit=0", "limit"), ("limit=101", "limit"), ("page=2", "page")] {
        let problem = entity.get(&format!("/panel/link/list?{query}")).refused(400, "invalid-request").await;
        assert_eq!(invalid_values(&problem), [format!("query/{field}")], "{query}");
    }
}

#[contract_test]
async fn a_link_is_shown_as_it_is_listed_and_without_its_address(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let made = link(&entity, json!({ "name": "Ada" })).await;
    opened(&suite.api, &made.code).await;
    let shown = entity.get(&format!("/panel/link/{}", made.id)).expect(200).await.json();
    assert_eq!(entity.panel_links().await, std::slice::from_ref(&shown));
    assert!(shown.get("url").is_none() && shown["openedDate"].is_string(), "{shown:#}");
    let weak = forged(&suite, "integrations.write", &[&entity.id]);
    let call = suite.api.get(entity.path(&format!("/panel/link/{}", made.id))).bearer(&weak);
    call.refused(403, "insufficient-scope").await;
}

#[contract_test]
async fn another_entitys_link_looks_like_a_missing_one(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let other = suite.entity().await;
    let made = link(&entity, json!({})).await;
    assert_eq!(listed(&other).await, Vec::<String>::new());
    for id in [made.id.as_str(), "plk_01m7w5gmev7xwvpyt3bc2k45jh", "x", "dlv_01m7w5gmev7xwvpyt3bc2k45jh"] {
        other.get(&format!("/panel/link/{id}")).refused(404, "panel-link-not-found").await;
        other.call("DELETE", &format!("/panel/link/{id}")).refused(404, "panel-link-not-found").await;
    }
    // The code opens its own entity's panel, even if its text was changed.
    let swapped = made.code.replacen(&entity.id, &other.id, 1);
    open(&suite.api, &swapped).refused(400, "invalid-panel-code").await;
    opened(&suite.api, &made.code).await;
}

#[contract_test]
async fn a_removed_link_opens_nothing(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let made = link(&entity, json!({})).await;
    let path = format!("/panel/link/{}", made.id);
    let weak = forged(&suite, "integrations.read integrations.write", &[&entity.id]);
    suite.api.call("DELETE", entity.path(&path)).bearer(&weak).refused(403, "insufficient-scope").await;
    let removed = entity.call("DELETE", &path).expect(200).await.json();
    assert_eq!((&removed["id"], removed.get("success")), (&json!(made.id), None));
    entity.get(&path).refused(404, "panel-link-not-found").await;
    entity.call("DELETE", &path).refused(404, "panel-link-not-found").await;
    let problem = open(&suite.api, &made.code).refused(400, "invalid-panel-code").await;
    assert!(text(&problem, "detail").contains("Ask for a new one"), "{problem:#}");
}

#[contract_test]
async fn an_entity_may_make_sixty_links_in_an_hour(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    link(&entity, json!({})).await;
    suite.table().count_as_used(&format!("panel-links#{}", entity.id), 3600, 60).await;
    let refused = entity.post("/panel/link").json(&json!({})).expect(429).await;
    assert_eq!(refused.json()["kind"], "too-many-panel-links");
    assert!((1..=3600).contains(&is_limited(&refused, "panel-links", 60, 3600)), "{}", refused.exchange);
    assert_eq!(listed(&entity).await.len(), 1);
}

#[contract_test]
async fn a_session_makes_no_links(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let session = opened(&suite.api, &link(&entity, json!({})).await.code).await;
    let list = suite.api.get(entity.path("/panel/link/list")).bearer(&session.token).expect(200).await.json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    let call = suite.api.post(entity.path("/panel/link")).bearer(&session.token).json(&json!({}));
    call.refused(403, "panel-link-refused").await;
}

/// A request's audit line in a function's log.
async fn line(suite: &Suite, function: &str, answer: &ApiResponse) -> Value {
    let log = suite.bundle().data().join(format!("logs/{function}.log"));
    let request = answer.header("x-request-id");
    until(&format!("{request} in the trail of {function}"), LONG, async || {
        let text = fs::read_to_string(&log).ok()?;
        let mut lines = text.lines().filter(|line| line.contains("\"audit\"") && line.contains(request));
        let line: Value = serde_json::from_str(lines.next()?).ok()?;
        Some(line["audit"].clone())
    })
    .await
}

#[contract_test]
async fn every_step_is_in_the_audit_trail(suite: Arc<Suite>) {
    let api = &suite.api;
    let own = suite.api.env["MANAGING_ENTITY"].clone();
    let token = api.token(Application::Demo, "").await;
    let made = api.post(format!("/api/managing-entity/{own}/panel/link")).bearer(&token).json(&json!({}));
    let made = made.expect(201).await;
    let link = MadeLink::of(&made.json());
    let expected = |line: &Value, action: &str, outcome: &str| {
        assert_eq!((&line["action"], &line["outcome"]), (&json!(action), &json!(outcome)), "{line:#}");
        let whose = (&line["client"], &line["entity"], &line["subject"]);
        assert_eq!(whose, (&json!(api.env["CLIENT_ID"]), &json!(own), &json!(link.id)), "{line:#}");
    };
    expected(&line(&suite, "create-panel-link", &made).await, "panel.link.create", "done");
    let session = open(api, &link.code).expect(200).await;
    expected(&line(&suite, "panel-session", &session).await, "panel.session.open", "done");
    let path = format!("/api/managing-entity/{own}/panel/link/{}", link.id);
    let prolonged = api.post(format!("{path}/renew")).bearer(&token).expect(200).await;
    expected(&line(&suite, "renew-panel-link", &prolonged).await, "panel.link.renew", "done");
    let again = open(api, &link.code).expect(400).await;
    let trail = line(&suite, "panel-session", &again).await;
    expected(&trail, "panel.session.open", "refused");
    assert_eq!(trail["reason"], "invalid-panel-code");
    let renewed = renew(api, &cookie_of(&session)).expect(200).await;
    expected(&line(&suite, "panel-session", &renewed).await, "panel.session.renew", "done");
    let ended = api.call("DELETE", "/panel/session").header("cookie", cookie_of(&renewed)).expect(204).await;
    expected(&line(&suite, "panel-session", &ended).await, "panel.session.end", "done");
    let missing = api.call("DELETE", path).bearer(&token).expect(404).await;
    expected(&line(&suite, "remove-panel-link", &missing).await, "panel.link.remove", "refused");
}

#[contract_test]
async fn a_browser_without_a_session_leaves_no_line_in_the_trail(suite: Arc<Suite>) {
    let api = &suite.api;
    let loaded = api.post("/panel/session").expect(204).await;
    let left = api.call("DELETE", "/panel/session").expect(204).await;
    // The cookie's name depends on the URL's scheme.
    let cookie = cookie_of(&open(api, &link(&suite.entity().await, json!({})).await.code).expect(200).await);
    let (name, _) = cookie.split_once('=').expect("a cookie has a name");
    let guessed = renew(api, &format!("{name}=x")).expect(403).await;
    let trail = line(&suite, "panel-session", &guessed).await; // earlier lines have been written by now
    assert_eq!((&trail["action"], &trail["outcome"]), (&json!("panel.session.renew"), &json!("refused")));
    let log = fs::read_to_string(suite.bundle().data().join("logs/panel-session.log")).expect("the function has a log");
    for answer in [&loaded, &left] {
        let request = answer.header("x-request-id");
        let mut lines = log.lines().filter(|line| line.contains(request)).peekable();
        assert!(lines.peek().is_some(), "{request} is answered");
        assert!(lines.all(|line| !line.contains("\"audit\"")), "{}", answer.exchange);
    }
}

#[contract_test]
async fn no_code_no_cookie_and_no_token_is_kept_or_logged(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let made = link(&entity, json!({})).await;
    let first = open(&suite.api, &made.code).expect(200).await;
    let renewed = renew(&suite.api, &cookie_of(&first)).expect(200).await;
    line(&suite, "panel-session", &renewed).await; // earlier lines have been written by now
    let secret = |key: &str| key.rsplit('/').next().expect("a key has three parts").to_owned();
    let mut hidden = vec![secret(&made.code)];
    for answer in [&first, &renewed] {
        hidden.push(secret(&cookie_of(answer)));
        hidden.push(text(&answer.json(), "accessToken").rsplit('.').next().expect("three parts").to_owned());
    }
    let mut kept = vec![suite.bundle().whole_logs()];
    kept.extend(suite.table().scan().await.iter().map(Value::to_string));
    for hidden in hidden {
        assert!(kept.iter().all(|text| !text.contains(&hidden)), "a code, a cookie or a token is kept or logged");
    }
}

#[contract_test]
async fn the_operator_makes_links_for_an_application(suite: Arc<Suite>) {
    let api = &suite.api;
    let own = suite.api.env["MANAGING_ENTITY"].clone();
    let client = api.env["CLIENT_ID"].clone();
    let arguments = ["panel", "link", &own, "--application", &client, "--scopes", "integrations.read", "--json"];
    let made = suite.admin(&arguments).await;
    let trail: Value = serde_json::from_str(made.err.lines().last().expect("a line")).expect("JSON");
    let made = made.json();
    assert_eq!((&trail["audit"]["action"], &trail["audit"]["subject"]), (&json!("panel.link.create"), &made["id"]));
    let session = opened(api, &MadeLink::of(&made).code).await;
    let path = |entity: &str| format!("/api/managing-entity/{entity}/webhook/list");
    api.get(path(&own)).bearer(&session.token).expect(200).await;
    api.get(path("another-hotel")).bearer(&session.token).refused(403, "entity-not-covered").await;
    for (arguments, code) in [
        (["panel", "link", &own, "--application", "appNone"], 3),
        (["panel", "link", "another-hotel", "--application", &client], 3),
        (["panel", "link", &own, "--place", "https://evil.example"], 2),
        (["panel", "link", &own, "--lifetime-seconds", "86401"], 2),
    ] {
        suite.admin(&arguments).await.failed(code);
    }
    // On a single machine, the demo application creates the link.
    if suite.admin(&["panel", "link"]).await.code == Some(0) {
        let output = suite.bundle().output();
        let line = output.lines().find_map(|line| line.strip_prefix("Panel: ")).expect("a start prints a link");
        assert!(line.starts_with(&format!("{}/panel#code={own}/plk_", api.base_url())), "{line}");
    }
}
