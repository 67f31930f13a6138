//! Checks 1 and 2: which paths exist, and which methods they accept.

use std::{collections::BTreeSet, sync::Arc};

use crate::harness::{Application, Suite, send_raw};
use contract_test::contract_test;

#[contract_test]
async fn a_path_that_does_not_exist_is_not_found(suite: Arc<Suite>) {
    let token = suite.api.token(Application::Platform, "").await;
    for path in [
        "/api",
        "/api/",
        "/api/managing-entity",
        "/api/managing-entity/demo-hotel",
        "/api/managing-entity/demo-hotel/webhook/",
        "/api/managing-entity/demo-hotel/webhook/list/",
        "/api/managing-entity/demo-hotel//webhook/list",
        "//api/managing-entity/demo-hotel/webhook/list",
        "/api/managing-entity//webhook/list",
        "/API/managing-entity/demo-hotel/webhook/list",
        "/api/managing-entity/demo-hotel/Webhook/list",
        "/api/managing-entity/demo-hotel/webhook%2Flist",
        "/api/managing-entity/demo-hotel/webhook/delivery/",
        "/api/managing-entity/demo-hotel/webhook/event/list/more",
        "/oauth2",
        "/oauth2/Token",
        "/oauth2/token/",
        "/openapi.yaml",
        "/openapi.json/",
        "/problems/",
        "/problems/not-found/more",
        "/.well-known/openid-configuration",
        "/favicon.ico",
    ] {
        for call in [
            suite.api.get(path),
            suite.api.get(path).bearer(&token),
            suite.api.post(path),
            suite.api.call("OPTIONS", path),
        ] {
            call.refused(404, "not-found").await;
        }
    }
}

#[contract_test]
async fn a_verb_that_a_path_does_not_take_is_answered_with_those_it_takes(suite: Arc<Suite>) {
    let paths: BTreeSet<String> = suite.contract.operations().into_iter().map(|operation| operation.path).collect();
    for template in paths {
        let takes = suite.contract.verbs(&template);
        let path = template
            .replace("{managingEntityIdentifier}", "demo-hotel")
            .replace("{deliveryIdentifier}", "dlv_00000000000000000000000000")
            .replace("{webhookIdentifier}", "whk_00000000000000000000000000")
            .replace("{kind}", "not-found");
        for verb in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "SOMETHING"] {
            if takes.contains(verb) {
                continue;
            }
            let answer = suite.api.call(verb, path.as_str()).expect(405).await;
            let allowed: BTreeSet<String> =
                answer.header("allow").split(',').map(|verb| verb.trim().to_owned()).collect();
            assert_eq!(allowed, takes, "{}", answer.exchange);
            assert_eq!(verb == "HEAD", answer.body.is_empty(), "{}", answer.exchange);
        }
    }
}

#[contract_test]
async fn a_request_without_a_valid_host_is_a_problem(suite: Arc<Suite>) {
    for host in ["a b", "user@host", "host:99999"] {
        let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = send_raw(suite.bundle(), request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{host}: {answer}");
    }
}

#[contract_test]
async fn a_browser_may_ask_whether_a_script_may_read_a_public_document(suite: Arc<Suite>) {
    for path in ["/oauth2/jwks", "/openapi.json", "/asyncapi.json", "/.well-known/oauth-protected-resource/mcp"] {
        let asked = suite.api.call("OPTIONS", path).header("origin", "https://elsewhere.example");
        let asked = asked.header("access-control-request-method", "GET");
        let answer = asked.header("access-control-request-headers", "mcp-protocol-version").expect(204).await;
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{}", answer.exchange);
        assert!(answer.body.is_empty(), "{}", answer.exchange);
    }
}

#[contract_test]
async fn an_address_that_an_agents_library_derives_redirects(suite: Arc<Suite>) {
    let host = suite.api.address().trim_start_matches("http://");
    for (verb, path, answered) in [
        ("POST", "/mcp/", "HTTP/1.1 308 "),
        ("GET", "/.well-known/oauth-authorization-server/mcp", "HTTP/1.1 308 "),
        ("GET", "/.well-known/oauth-protected-resource/mcp/", "HTTP/1.1 308 "),
        ("OPTIONS", "/.well-known/oauth-authorization-server/mcp", "HTTP/1.1 204 "),
    ] {
        let request = format!("{verb} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = send_raw(suite.bundle(), request.as_bytes()).await;
        assert!(answer.starts_with(answered), "{verb} {path}: {answer}");
        let open = answer.to_ascii_lowercase().contains("access-control-allow-origin: *");
        assert_eq!(open, path.starts_with("/.well-known/"), "{verb} {path}: {answer}");
    }
}
