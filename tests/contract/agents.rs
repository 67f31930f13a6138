//! The endpoint for AI agents: Model Context Protocol messages in each supported revision.

use std::{collections::BTreeSet, sync::Arc};

use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, Application, Call, Suite, message};

const NEWEST: &str = "2026-07-28";
const OLDER: [&str; 2] = ["2025-11-25", "2025-06-18"];

/// A request without a token or the protocol's headers.
fn bare(api: &Api, message: &Value) -> Call {
    api.post("/mcp").header("accept", "application/json, text/event-stream").json(message)
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// A request in the newest revision, with that revision's headers but without a token.
pub fn newest(api: &Api, method: &str, params: Value) -> Call {
    let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
    name.into_iter().fold(message(api, method, params), |call, name| call.header("mcp-name", name))
}

/// A tool call.
pub fn tool(api: &Api, name: &str, arguments: Value) -> Call {
    newest(api, "tools/call", json!({ "name": name, "arguments": arguments }))
}

/// The demo application's token, for one managing entity.
pub async fn token(suite: &Suite, scope: &str) -> String {
    suite.api.token(Application::Demo, scope).await
}

/// The result of a request; panics if there is none.
pub fn result(answer: &ApiResponse) -> Value {
    let message = answer.json();
    assert!(message["jsonrpc"] == "2.0" && message["id"] == 1, "{}", answer.exchange);
    assert!(message.get("error").is_none() && message["result"].is_object(), "{}", answer.exchange);
    assert_eq!(answer.header("cache-control"), "no-store", "{}", answer.exchange);
    message["result"].clone()
}

/// The error code of a request.
pub fn code(answer: &ApiResponse) -> i64 {
    let message = answer.json();
    assert!(message["jsonrpc"] == "2.0" && message.get("result").is_none(), "{}", answer.exchange);
    message["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {}", answer.exchange))
}

/// The Problem that a tool call returned.
pub fn problem(answer: &ApiResponse) -> Value {
    let result = result(answer);
    assert!(result["isError"] == true && result.get("structuredContent").is_none(), "{}", answer.exchange);
    let text = result["content"][0]["text"].as_str().expect("a text");
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no Problem: {}", answer.exchange))
}

#[contract_test]
async fn a_request_of_the_newest_revision_needs_no_handshake(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    let ask = async |method| result(&newest(&suite.api, method, json!({})).bearer(&token).expect(200).await);
    let discovered = ask("server/discover").await;
    assert_eq!(discovered["supportedVersions"], json!([NEWEST, OLDER[0], OLDER[1]]));
    let capabilities = &discovered["capabilities"];
    for capability in ["tools", "resources", "prompts"] {
        assert!(capabilities[capability].is_object(), "{discovered:#}");
    }
    assert!(capabilities["extensions"]["io.modelcontextprotocol/oauth-client-credentials"].is_object());
    for (method, member, scope) in [
        ("server/discover", "supportedVersions", "public"),
        ("tools/list", "tools", "private"),
        ("resources/list", "resources", "private"),
        ("resources/templates/list", "resourceTemplates", "private"),
        ("prompts/list", "prompts", "public"),
    ] {
        let result = ask(method).await;
        assert!(result[member].is_array(), "{method}: {result:#}");
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "waypost", "{method}");
        assert!(result["ttlMs"].is_u64() && result["cacheScope"] == scope, "{method}: {result:#}");
    }
}

#[contract_test]
async fn a_client_of_an_older_revision_begins_with_a_handshake(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    for revision in OLDER {
        let hello =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = bare(&suite.api, &request("initialize", hello)).bearer(&token).expect(200).await;
        let begun = result(&answer);
        assert_eq!((&begun["protocolVersion"], &begun["serverInfo"]["name"]), (&json!(revision), &json!("waypost")));
        assert!(answer.headers.get("mcp-session-id").is_none(), "{}", answer.exchange);

        let send = |message: &Value| bare(&suite.api, message).bearer(&token).header("mcp-protocol-version", revision);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert!(send(&initialized).expect(202).await.body.is_empty());
        assert_eq!(result(&send(&request("ping", json!({}))).expect(200).await), json!({}));
        let tools = result(&send(&request("tools/list", json!({}))).expect(200).await);
        assert!(tools["tools"].is_array() && tools.get("resultType").is_none() && tools.get("ttlMs").is_none());
    }
    // Some clients send the revision only in their first request.
    let unnamed = bare(&suite.api, &request("tools/list", json!({}))).bearer(&token).expect(200).await;
    assert!(result(&unnamed)["tools"].is_array());
}

#[contract_test]
async fn a_handshake_ends_in_a_supported_revision(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    for wanted in ["2025-03-26", "2024-11-05", NEWEST, "1999-01-01"] {
        let hello =
            json!({ "protocolVersion": wanted, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let begin = || bare(&suite.api, &request("initialize", hello.clone())).bearer(&token);
        let begun = result(&begin().expect(200).await);
        assert_eq!(begun["protocolVersion"], OLDER[0], "{wanted}");
        // Some clients repeat the revision in the header, which is defined only for later requests.
        let begun = result(&begin().header("mcp-protocol-version", wanted).expect(200).await);
        assert_eq!(begun["protocolVersion"], OLDER[0], "{wanted}");
    }
    let without = bare(&suite.api, &request("initialize", json!({}))).bearer(&token).expect(200).await;
    assert_eq!(code(&without), -32602);
}

#[contract_test]
async fn an_unsupported_revision_is_refused_with_the_supported_ones(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    for revision in ["2025-03-26", "2030-01-01", "x"] {
        let message = request("tools/list", json!({}));
        let call = bare(&suite.api, &message).bearer(&token).header("mcp-protocol-version", revision);
        let answer = call.expect(400).await;
        assert_eq!(code(&answer), -32022);
        let data = json!({ "requested": revision, "supported": [NEWEST, OLDER[0], OLDER[1]] });
        assert_eq!(answer.json()["error"]["data"], data);
    }
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let call = bare(&suite.api, &notification).bearer(&token).header("mcp-protocol-version", "x");
    assert_eq!(code(&call.expect(400).await), -32022);
}

#[contract_test]
async fn headers_that_contradict_the_message_are_refused(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read integrations.read").await;
    let meta = |version| {
        json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        })
    };
    let list = |meta: &Value| request("tools/list", json!({ "_meta": meta }));
    let call = request("tools/call", json!({ "name": "list_event_types", "_meta": meta(NEWEST) }));
    let own = ("mcp-protocol-version", NEWEST);
    for (message, headers, code_wanted) in [
        (list(&meta(NEWEST)), vec![], -32020),
        (list(&meta(NEWEST)), vec![("mcp-protocol-version", OLDER[0])], -32020),
        (list(&meta("2030-01-01")), vec![own], -32020),
        (list(&meta(NEWEST)), vec![own], -32020),
        (list(&meta(NEWEST)), vec![own, ("mcp-method", "tools/call")], -32020),
        (list(&meta(NEWEST)), vec![own, ("mcp-method", "Tools/List")], -32020),
        (call.clone(), vec![own, ("mcp-method", "tools/call")], -32020),
        (call.clone(), vec![own, ("mcp-method", "tools/call"), ("mcp-name", "list_webhooks")], -32020),
        (call.clone(), vec![own, ("mcp-method", "tools/call"), ("mcp-name", "=?base64?!?=")], -32020),
        (list(&json!({})), vec![own, ("mcp-method", "tools/list")], -32602),
        (list(&json!({ "io.modelcontextprotocol/protocolVersion": NEWEST })), vec![own], -32602),
    ] {
        let call = headers.iter().fold(bare(&suite.api, &message), |call, (name, value)| call.header(name, value));
        let answer = call.bearer(&token).expect(400).await;
        assert_eq!((code(&answer), &answer.json()["id"]), (code_wanted, &json!(1)), "{headers:?} {}", answer.exchange);
    }
    let encoded = bare(&suite.api, &call).header(own.0, own.1).header("mcp-method", "tools/call");
    let encoded = encoded.header("mcp-name", "=?base64?bGlzdF9ldmVudF90eXBlcw==?=");
    result(&encoded.bearer(&token).expect(200).await);
}

#[contract_test]
async fn an_invalid_message_gets_an_error_of_json_rpc(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    let deep = "[".repeat(10_000);
    for (body, wanted) in [
        (deep.as_str(), -32700),
        ("", -32700),
        ("{", -32700),
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"", -32700),
        ("null", -32600),
        ("\"ping\"", -32600),
        ("{}", -32600),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600),
    ] {
        let call = suite.api.post("/mcp").bearer(&token).body("application/json", body);
        let answer = call.expect(400).await;
        assert_eq!(code(&answer), wanted, "{}", answer.exchange);
        assert!(answer.header("content-type").starts_with("application/json"), "{}", answer.exchange);
    }
    let no_text = suite.api.post("/mcp").bearer(&token).body("application/json", b"{\"id\":\"\xff\"}".to_vec());
    assert_eq!(code(&no_text.expect(400).await), -32700);
}

#[contract_test]
async fn a_member_that_comes_twice_is_refused_by_its_name(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    for (members, name, id) in [
        (r#""id":1,"id":2,"method":"ping""#, "id", Value::Null),
        (r#""id":1,"method":"ping","method":"tools/list""#, "method", json!(1)),
        (r#""id":1,"method":"ping","params":{"a":1,"a":2}"#, "a", json!(1)),
        (
            r#""id":1,"method":"tools/call","params":{"arguments":{"enabled":true,"enabled":false}}"#,
            "enabled",
            json!(1),
        ),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0",{members}}}"#);
        let answer = suite.api.post("/mcp").bearer(&token).body("application/json", body).expect(400).await;
        assert_eq!((code(&answer), &answer.json()["id"]), (-32600, &id), "{}", answer.exchange);
        let message = answer.json()["error"]["message"].as_str().expect("a text").to_owned();
        assert!(message.contains(&format!("`{name}` must be given only once")), "{message}");
    }
}

#[contract_test]
async fn a_message_too_large_or_of_another_media_type_is_refused(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    let large = request("ping", json!({ "x": "x".repeat(1_100_000) }));
    bare(&suite.api, &large).bearer(&token).refused(413, "payload-too-large").await;
    let text = suite.api.post("/mcp").bearer(&token).body("text/plain", "{}");
    text.refused(415, "unsupported-media-type").await;
    let version = bare(&suite.api, &request("ping", json!({}))).bearer(&token).header("service-version", "1.0");
    version.refused(400, "unsupported-version").await;
}

#[contract_test]
async fn unknown_methods_tools_prompts_and_resources_are_not_found(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tools/remove", ""] {
        let answer = newest(&suite.api, method, json!({})).bearer(&token).expect(404).await;
        assert_eq!(code(&answer), -32601, "{method}");
    }
    for method in ["server/discover", "logging/setLevel", "completion/complete"] {
        let answer = bare(&suite.api, &request(method, json!({}))).bearer(&token).expect(200).await;
        assert_eq!(code(&answer), -32601, "{method}");
    }
    for (method, params) in [
        ("tools/call", json!({ "name": "no_such_tool" })),
        ("tools/call", json!({})),
        ("tools/call", json!({ "name": "list_event_types", "arguments": [] })),
        ("prompts/get", json!({ "name": "no_such_prompt" })),
        ("resources/read", json!({ "uri": "waypost://nothing" })),
        ("tools/list", json!({ "cursor": "x" })),
    ] {
        let answer = newest(&suite.api, method, params).bearer(&token).expect(200).await;
        assert_eq!(code(&answer), -32602, "{method}");
    }
    let missing = bare(&suite.api, &request("resources/read", json!({ "uri": "waypost://nothing" })));
    assert_eq!(code(&missing.bearer(&token).expect(200).await), -32002, "older revisions have a code for it");
    let long = json!({ "uri": format!("waypost://{}", "x".repeat(500_000)) });
    let missing = bare(&suite.api, &request("resources/read", long)).bearer(&token).expect(200).await;
    assert_eq!(missing.json()["error"]["data"]["uri"].as_str().map(str::len), Some(100));
    assert!(missing.body.len() < 2_000, "an error does not repeat a long URI");
}

#[contract_test]
async fn a_notification_is_taken_without_an_answer(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    for method in ["notifications/initialized", "notifications/cancelled", "notifications/of_the_future"] {
        let answer = bare(&suite.api, &json!({ "jsonrpc": "2.0", "method": method })).bearer(&token).expect(202).await;
        assert!(answer.body.is_empty(), "{}", answer.exchange);
    }
}

#[contract_test]
async fn get_and_delete_are_not_allowed(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read").await;
    for method in ["GET", "DELETE"] {
        let call = suite.api.call(method, "/mcp").bearer(&token).header("accept", "text/event-stream");
        let answer = call.expect(405).await;
        assert_eq!(answer.header("allow"), "POST", "{}", answer.exchange);
    }
}

#[contract_test]
async fn a_result_is_structured_and_a_text(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read integrations.read").await;
    let result = result(&tool(&suite.api, "list_event_types", json!({})).bearer(&token).expect(200).await);
    assert_eq!(result["isError"], false);
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), result["structuredContent"]);
    let own = &suite.api.env["MANAGING_ENTITY"];
    let path = format!("/api/managing-entity/{own}/webhook/event/list");
    let all = suite.api.token(Application::Demo, "").await;
    let by_rest = suite.api.get(path).bearer(&all).expect(200).await.json();
    assert_eq!(result["structuredContent"]["eventTypes"], by_rest);
}

#[contract_test]
async fn a_hundred_calls_at_once_are_all_answered(suite: Arc<Suite>) {
    let token = token(&suite, "mcp.read integrations.read").await;
    let calls = (0..100).map(|number| {
        let name = if number % 2 == 0 { "list_webhooks" } else { "list_event_types" };
        tool(&suite.api, name, json!({})).bearer(&token).expect(200)
    });
    let answers = join_all(calls).await;
    let ids: BTreeSet<_> = answers.iter().map(|answer| answer.header("x-request-id").to_owned()).collect();
    assert_eq!(ids.len(), 100);
    for answer in &answers {
        assert_eq!(result(answer)["isError"], false, "{}", answer.exchange);
    }
}
