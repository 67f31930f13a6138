//! An application can grant or remove only the rights that its own token has.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    applications::{KEY, Made, forged, made_with, of, shown, text},
    harness::Suite,
};

#[contract_test]
async fn a_caller_grants_no_scope_that_its_token_lacks(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let token = forged(&suite, "account.write booking.read", &[&entity.id]);
    let ask = |body: &Value| suite.api.post(entity.path("/application")).bearer(&token).json(body);
    let body = json!({ "name": "n", "scopes": ["booking.write", "booking.read", "mcp.read"] });
    let answer = ask(&body).expect(403).await;
    let challenge = answer.header("www-authenticate");
    assert!(challenge.contains(r#"error="insufficient_scope", scope="booking.write mcp.read""#), "{challenge}");
    assert_eq!(answer.json()["properties"]["requiredScope"], "booking.write mcp.read");
    // Invalid values are reported first.
    let wrong = json!({ "name": "", "scopes": ["booking.write"] });
    ask(&wrong).refused(400, "invalid-request").await;
    ask(&json!({ "name": "n", "scopes": ["account.write", "booking.read"] })).expect(201).await;
    assert_eq!(entity.get("/application/list").expect(200).await.json().as_array().map(Vec::len), Some(1));
}

#[contract_test]
async fn a_caller_grants_no_entity_that_its_token_does_not_cover(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let ask = |token: &str, entities: &[&str]| {
        let body = json!({ "name": "n", "scopes": ["account.write"], "managingEntities": entities });
        suite.api.post(entity.path("/application")).bearer(token).json(&body)
    };
    let token = forged(&suite, "account.write", &[&entity.id, "second"]);
    ask(&token, &[&entity.id, "second"]).expect(201).await;
    for foreign in ["third", "*"] {
        let problem = ask(&token, &["second", foreign]).refused(403, "entity-not-covered").await;
        assert_eq!(problem["properties"]["notCovered"], json!([foreign]));
    }
    let platform = forged(&suite, "account.write", &["*"]);
    ask(&platform, &["third", "*"]).expect(201).await;
}

#[contract_test]
async fn a_caller_cannot_change_an_application_with_more_rights_than_its_token(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body =
        json!({ "name": "n", "scopes": ["account.write", "payment.write"], "managingEntities": [entity.id, "b"] });
    let application = made_with(&entity, body).await;
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY } });
    for (path, body) in [("/secret", json!({})), ("/key", key)] {
        let ask = |scope: &str, entities: &[&str], application: &Made| {
            let token = forged(&suite, scope, entities);
            suite.api.post(entity.path(&of(application, path))).bearer(&token).json(&body)
        };
        let both = ["b", &entity.id];
        let own = [entity.id.as_str()];
        ask("account.write", &both, &application).refused(403, "insufficient-scope").await;
        ask("account.write payment.write", &own, &application).refused(403, "entity-not-covered").await;
        let missing = Made { id: "app0000000000000000000000".to_owned(), secret: String::new() };
        ask("account.write", &own, &missing).refused(404, "application-not-found").await;
        ask("account.write payment.write", &both, &application).answered().await;
    }
    let after = shown(&entity, &application).await;
    assert_eq!((&after["version"], after["secrets"].as_array().map(Vec::len)), (&json!(3), Some(2)), "{after:#}");
}

/// Regression test: a token with few rights could remove the application with the broadest rights. That application's
/// secrets and keys are also protected.
#[contract_test]
async fn a_caller_cannot_remove_an_application_with_more_rights_than_its_token(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "key" });
    let wide = json!({
        "name": "n", "scopes": ["account.remove", "payment.write"], "managingEntities": [entity.id, "b"], "publicKeys": [key],
    });
    let application = made_with(&entity, wide).await;
    let before = shown(&entity, &application).await;
    let secret = text(&before["secrets"][0], "id");
    let own = [entity.id.as_str()];
    let both = [entity.id.as_str(), "b"];
    for path in [format!("/secret/{secret}"), "/key/key".to_owned(), String::new()] {
        let remove = |scope: &str, entities: &[&str]| {
            let token = forged(&suite, scope, entities);
            suite.api.call("DELETE", entity.path(&of(&application, &path))).bearer(&token)
        };
        let problem = remove("account.remove account.write", &both).refused(403, "insufficient-scope").await;
        assert_eq!(problem["properties"]["requiredScope"], "payment.write");
        let problem = remove("account.remove payment.write", &own).refused(403, "entity-not-covered").await;
        assert_eq!(problem["properties"]["notCovered"], json!(["b"]));
        let problem = remove("account.remove", &own).refused(403, "insufficient-scope").await;
        assert!(text(&problem, "detail").contains("remove"), "{problem:#}");
    }
    assert_eq!(shown(&entity, &application).await, before);
    for path in [format!("/secret/{secret}"), "/key/key".to_owned(), String::new()] {
        let token = forged(&suite, "account.remove payment.write", &both);
        suite.api.call("DELETE", entity.path(&of(&application, &path))).bearer(&token).expect(200).await;
    }
}
