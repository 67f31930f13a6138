//! The gate in front of the endpoint for AI agents: origins, tokens, scopes, and the tools that a call may use.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    agents::{code, newest, problem, result, token, tool},
    harness::{Api, Application, Call, Entity, Suite},
};

#[contract_test]
async fn scripts_of_other_sites_are_refused(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    let from = |origin: &str| newest(&suite.api, "server/discover", json!({})).bearer(&token).header("origin", origin);
    let base = suite.api.base_url();
    from(base).expect(200).await;
    for origin in ["null", "https://evil.example", &format!("{base}.evil.example"), &format!("{base}0")] {
        from(origin).refused(403, "foreign-origin").await;
    }
    // The response does not reveal whether a token is valid.
    let without = newest(&suite.api, "server/discover", json!({})).header("origin", "https://evil.example");
    without.refused(403, "foreign-origin").await;
}

#[contract_test]
async fn dns_rebinding_is_refused(suite: Arc<Suite>) {
    // In a stack, API Gateway refuses host names other than the API's.
    let _ = suite.bundle();
    let token = token(&suite, "mcp.read").await;
    let from = |host: &str| newest(&suite.api, "server/discover", json!({})).bearer(&token).header("host", host);
    from("evil.example").header("origin", "http://evil.example").refused(403, "foreign-origin").await;
    // A program behind a proxy with another host name sends no `Origin`.
    from("proxy.example").expect(200).await;
}

fn parameter<'a>(challenge: &'a str, name: &str) -> &'a str {
    let (_, rest) = challenge.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name}: {challenge}"));
    rest.split('"').next().unwrap_or_default()
}

#[contract_test]
async fn a_client_without_a_token_is_led_to_the_issuer(suite: Arc<Suite>) {
    let refused = newest(&suite.api, "server/discover", json!({})).expect(401).await;
    let challenge = refused.header("www-authenticate");
    assert!(challenge.starts_with("Bearer ") && !challenge.contains("error"), "{challenge}");
    assert_eq!(parameter(challenge, "scope"), "mcp.read");
    let base = suite.api.base_url();
    let metadata =
        parameter(challenge, "resource_metadata").strip_prefix(base).expect("the metadata is part of the API");
    let metadata = suite.api.get(metadata).expect(200).await.json();
    assert_eq!(metadata["resource"], format!("{base}/mcp"));
    assert_eq!(metadata["authorization_servers"], json!([suite.api.env["AUTH_URL"]]));

    let bad = newest(&suite.api, "server/discover", json!({})).bearer("nonsense").expect(401).await;
    let challenge = bad.header("www-authenticate");
    assert_eq!((parameter(challenge, "error"), parameter(challenge, "scope")), ("invalid_token", "mcp.read"));
    // The other endpoints name their own scope, and the metadata for the API as a whole.
    let other = suite.api.get("/api/managing-entity/covered/webhook/list").expect(401).await;
    let challenge = other.header("www-authenticate");
    assert_eq!(parameter(challenge, "scope"), "integrations.read");
    assert_eq!(parameter(challenge, "resource_metadata"), format!("{base}/.well-known/oauth-protected-resource"));
}

#[contract_test]
async fn a_call_that_needs_more_scopes_names_them_all_by_http(suite: Arc<Suite>) {
    let call = |name| tool(&suite.api, name, json!({}));
    let none = call("list_webhooks").bearer(&token(&suite, "integrations.read").await).expect(403).await;
    assert_eq!(parameter(none.header("www-authenticate"), "scope"), "mcp.read");
    let little = call("list_webhooks").bearer(&token(&suite, "mcp.read").await).expect(403).await;
    let challenge = little.header("www-authenticate");
    assert_eq!(parameter(challenge, "error"), "insufficient_scope");
    assert_eq!(parameter(challenge, "scope"), "integrations.read mcp.read");
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", suite.api.base_url());
    assert_eq!(parameter(challenge, "resource_metadata"), metadata);
    let enough = token(&suite, parameter(challenge, "scope")).await;
    result(&call("list_webhooks").bearer(&enough).expect(200).await);
}

async fn application(entity: &Entity, scopes: &[&str]) -> Value {
    let new = json!({ "name": "An agent", "scopes": scopes });
    entity.post("/application").json(&new).expect(201).await.json()
}

async fn token_of(api: &Api, application: &Value, scope: &str) -> String {
    let [id, secret] = ["clientId", "clientSecret"].map(|member| application[member].as_str().expect("a text"));
    let grant = ("grant_type", "client_credentials");
    let form = [grant, ("client_id", id), ("client_secret", secret), ("scope", scope)];
    let issued = api.post("/oauth2/token").form(&form).expect(200).await.json();
    issued["access_token"].as_str().expect("a token").to_owned()
}

#[contract_test]
async fn a_challenge_also_names_the_scopes_of_the_token_that_it_replaces(suite: Arc<Suite>) {
    let scopes = ["integrations.read", "integrations.write", "mcp.read", "mcp.write"];
    let agent = application(&suite.entity().await, &scopes).await;
    let read = |token: &str| tool(&suite.api, "list_webhooks", json!({})).bearer(token);
    let write = |token: &str| tool(&suite.api, "create_webhook", json!({})).bearer(token);

    let reads = token_of(&suite.api, &agent, "mcp.read integrations.read").await;
    result(&read(&reads).expect(200).await);
    let refused = write(&reads).expect(403).await;
    assert!(refused.header("content-type").starts_with("application/problem+json"), "{}", refused.exchange);
    let needed = &refused.json()["properties"]["requiredScope"];
    assert_eq!(*needed, "integrations.write mcp.read mcp.write", "the body names the scopes of the call alone");
    let challenge = refused.header("www-authenticate");
    assert_eq!(parameter(challenge, "scope"), scopes.join(" "));

    // A client that requests exactly the scopes in the challenge can then read and write.
    let both = token_of(&suite.api, &agent, parameter(challenge, "scope")).await;
    assert_eq!(problem(&write(&both).expect(200).await)["kind"], "invalid-request");
    result(&read(&both).expect(200).await);
}

#[contract_test]
async fn a_tool_beyond_the_registration_is_unlisted_and_the_error_says_why(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let token_of = async |application: &Value, scope: &str| token_of(&suite.api, application, scope).await;
    let looks = application(&entity, &["mcp.read", "integrations.read"]).await;
    let whole = token_of(&looks, "mcp.read integrations.read").await;
    let narrow = token_of(&looks, "mcp.read").await;
    for token in [&whole, &narrow] {
        let listed = result(&newest(&suite.api, "tools/list", json!({})).bearer(token).expect(200).await);
        let listed = listed["tools"].as_array().expect("a list").clone();
        let is_listed = |name: &str| listed.iter().any(|tool| tool["name"] == name);
        assert!(is_listed("list_webhooks") && is_listed("explain_problem"), "{listed:#?}");
        assert!(!is_listed("create_webhook") && !is_listed("list_connections"), "{listed:#?}");
    }
    // There is no challenge, since no token would suffice: the library would request one in vain and end its session.
    let refused = problem(&tool(&suite.api, "create_webhook", json!({})).bearer(&whole).expect(200).await);
    assert_eq!(refused["kind"], "insufficient-scope", "{refused:#}");
    let detail = refused["detail"].as_str().expect("a text");
    assert!(detail.contains("not registered for the scopes `integrations.write mcp.write`"), "{detail}");
    // A different token would suffice.
    let little = tool(&suite.api, "list_webhooks", json!({})).bearer(&narrow).expect(403).await;
    assert_eq!(parameter(little.header("www-authenticate"), "scope"), "integrations.read mcp.read");

    let least = token_of(&application(&entity, &["mcp.read"]).await, "mcp.read").await;
    let read = json!({ "uri": "waypost://catalogue/events" });
    let refused = newest(&suite.api, "resources/read", read).bearer(&least).expect(200).await;
    assert_eq!((code(&refused), &refused.json()["error"]["data"]["kind"]), (-32602, &json!("insufficient-scope")));
}

#[contract_test]
async fn a_client_selects_tools_by_headers(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let token = suite.api.token(Application::Platform, "").await;
    let with = |call: Call, headers: &[(&str, &str)]| {
        headers.iter().fold(call.bearer(&token), |call, (name, value)| call.header(name, value))
    };
    let listed = async |headers: &[(&str, &str)]| -> Vec<Value> {
        let answer = with(newest(&suite.api, "tools/list", json!({})), headers).expect(200).await;
        result(&answer)["tools"].as_array().expect("a list").clone()
    };
    let names = |tools: &[Value]| -> Vec<String> {
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    let all = listed(&[]).await;
    let reading = listed(&[("x-mcp-readonly", "true")]).await;
    assert!(reading.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{reading:#?}");
    assert!(!reading.is_empty() && reading.len() < all.len());
    let chosen = ("x-mcp-tools", "create_webhook, list_webhooks");
    assert_eq!(names(&listed(&[chosen]).await), ["list_webhooks", "create_webhook"]);
    assert_eq!(names(&listed(&[chosen, ("x-mcp-readonly", "true")]).await), ["list_webhooks"]);

    // A tool that is not selected cannot be called.
    let new = json!({ "managingEntity": entity.id, "name": "n", "eventUrl": "http://127.0.0.1:9/", "eventList": [] });
    for headers in [("x-mcp-readonly", "true"), ("x-mcp-tools", "list_webhooks")] {
        let refused = with(tool(&suite.api, "create_webhook", new.clone()), &[headers]).expect(200).await;
        assert_eq!(code(&refused), -32602, "{headers:?}");
        let list = tool(&suite.api, "list_webhooks", json!({ "managingEntity": entity.id }));
        let webhooks = result(&with(list, &[headers]).expect(200).await);
        assert_eq!(webhooks["structuredContent"]["webhooks"], json!([]), "no webhook was created");
    }
    assert_eq!(listed(&[("x-mcp-tools", "list_webhook")]).await, [] as [Value; 0], "a misspelt name selects no tool");
    for bad in [("x-mcp-readonly", "yes"), ("x-mcp-tools", "list webhooks"), ("x-mcp-tools", "")] {
        with(newest(&suite.api, "tools/list", json!({})), &[bad]).refused(400, "invalid-request").await;
    }
}

#[contract_test]
async fn a_token_for_agents_is_accepted_by_mcp_only(suite: Arc<Suite>) {
    let base = suite.api.base_url();
    let entity = &suite.api.env["MANAGING_ENTITY"];
    let resource = format!("{base}/mcp");
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "mcp.read integrations.read"),
        ("resource", resource.as_str()),
    ];
    let issued = suite.api.as_client("/oauth2/token", Application::Demo, &form).expect(200).await.json();
    let token = issued["access_token"].as_str().expect("a token");
    result(&tool(&suite.api, "list_webhooks", json!({})).bearer(token).expect(200).await);
    let elsewhere = suite.api.get(format!("/api/managing-entity/{entity}/webhook/list")).bearer(token);
    elsewhere.refused(401, "unauthorized").await;
}

#[contract_test]
async fn a_call_names_its_managing_entity_where_there_are_several(suite: Arc<Suite>) {
    let scopes = "mcp.read integrations.read";
    let own = suite.api.env["MANAGING_ENTITY"].clone();
    let entity = suite.entity().await;
    let hook = entity.hook("http://127.0.0.1:9/").await;
    let one = token(&suite, scopes).await;
    let every = suite.api.token(Application::Platform, scopes).await;
    let list = async |token: &str, arguments: Value| {
        tool(&suite.api, "list_webhooks", arguments).bearer(token).expect(200).await
    };
    let schema = async |token: &str| {
        let tools = result(&newest(&suite.api, "tools/list", json!({})).bearer(token).expect(200).await);
        let tools = tools["tools"].as_array().expect("a list").clone();
        tools.into_iter().find(|tool| tool["name"] == "list_webhooks").expect("it is listed")["inputSchema"].clone()
    };

    result(&list(&one, json!({})).await);
    result(&list(&one, json!({ "managingEntity": own })).await);
    assert_eq!(problem(&list(&one, json!({ "managingEntity": entity.id })).await)["kind"], "entity-not-covered");
    let schema_of_one = schema(&one).await;
    assert_eq!(schema_of_one["properties"]["managingEntity"]["enum"], json!([own]));
    assert!(!schema_of_one["required"].to_string().contains("managingEntity"), "{schema_of_one:#}");

    let listed = result(&list(&every, json!({ "managingEntity": entity.id })).await);
    assert_eq!(listed["structuredContent"]["webhooks"][0]["id"], hook.id.as_str());
    for bad in [json!({}), json!({ "managingEntity": 7 }), json!({ "managingEntity": "a b" })] {
        let problem = problem(&list(&every, bad.clone()).await);
        assert_eq!(problem["properties"]["violations"][0]["pointer"], "/managingEntity", "{bad}");
    }
    assert_eq!(schema(&every).await["required"], json!(["managingEntity"]));
}
