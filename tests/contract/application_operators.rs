//! The operator's commands for applications, and how applications survive a restart.

use std::sync::Arc;

use contract_test::contract_test;
use serde_json::{Value, json};

use crate::{
    application_credentials::introspected,
    applications::{KEY, Made, accepted, claims, of, shown, text, token},
    harness::{Entity, Settings, Suite},
};

#[contract_test]
async fn a_restart_keeps_the_owners_changes_of_the_demo_application(suite: Arc<Suite>) {
    let (bundle, api, _permit) = suite.other_bundle(Settings::default()).await;
    let entity = Entity::new(&api, api.env["MANAGING_ENTITY"].clone()).await;
    let demo = Made { id: api.env["CLIENT_ID"].clone(), secret: api.env["CLIENT_SECRET"].clone() };
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY } });
    entity.post(&of(&demo, "/key")).json(&key).expect(201).await;
    let secret = text(&shown(&entity, &demo).await["secrets"][0], "id");
    entity.call("DELETE", &of(&demo, &format!("/secret/{secret}"))).expect(200).await;
    let changed = shown(&entity, &demo).await;
    assert_eq!((&changed["version"], &changed["secrets"]), (&json!(3), &json!([])));
    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default()).await;
    assert_eq!(shown(&entity, &demo).await, changed);
    assert!(!accepted(&api, &demo.id, &demo.secret).await);
    assert!(bundle.logs().contains("does not accept the secret in service.env"), "{}", bundle.logs());

    // If the demo application has been removed, it is created again with its initial values.
    entity.call("DELETE", &of(&demo, "")).expect(200).await;
    assert!(bundle.stop().await.success());
    bundle.start_again(Settings::default()).await;
    let again = shown(&entity, &demo).await;
    assert_eq!((&again["version"], &again["publicKeys"]), (&json!(1), &json!([])));
    assert!(accepted(&api, &demo.id, &demo.secret).await);
    assert!(bundle.stop().await.success());
}

/// Runs the operator's command against the bundle; returns its output on success.
async fn operator(suite: &Suite, arguments: &[&str]) -> Result<String, String> {
    let run = suite.admin(&[&["application"], arguments].concat()).await;
    if run.code == Some(0) { Ok(run.out) } else { Err(run.err) }
}

/// The JSON that a subcommand prints on success.
async fn operator_json(suite: &Suite, arguments: &[&str]) -> Value {
    suite.admin(&[&["application", "--json"], arguments].concat()).await.json()
}

/// The values in lines of the form `NAME=value`.
fn values(said: &str) -> Vec<String> {
    said.lines().filter_map(|line| Some(line.split_once('=')?.1.to_owned())).collect()
}

#[contract_test]
async fn an_operator_creates_and_manages_applications(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let both = format!("{} second", entity.id);
    let create = ["create", "--name", "By hand", "--entity", &both, "--scopes", "booking.read account.read"];
    let said = operator(&suite, &create).await.expect("made");
    let [id, secret] = <[String; 2]>::try_from(values(&said)).expect("an identifier and a secret");
    let claimed = claims(&token(api, &id, &secret).await);
    assert_eq!(claimed["managing_entities"], json!([entity.id, "second"]));
    assert_eq!(claimed["scope"], "account.read booking.read");
    // The first entity is the owner.
    let listed = entity.get("/application/list").expect(200).await.json();
    assert_eq!(listed[0]["clientId"], id);
    for said in [operator(&suite, &["list", &entity.id]).await, operator(&suite, &["list", &entity.id, "--json"]).await]
    {
        let said = said.expect("listed");
        assert!(said.contains(&id) && said.contains("By hand") && !said.contains(&secret), "{said}");
    }
    let listed = operator_json(&suite, &["list", &entity.id]).await;
    assert_eq!((listed[0]["clientId"].as_str(), listed.as_array().map(Vec::len)), (Some(id.as_str()), Some(1)));
    assert_eq!(operator_json(&suite, &["show", &id]).await["name"], "By hand");
    let text = operator(&suite, &["show", &id]).await.expect("shown");
    assert!(text.contains(&entity.id) && text.contains("sec_") && !text.contains(&secret), "{text}");

    let said = operator(&suite, &["add-secret", &id, "--overlap-seconds", "0"]).await.expect("added");
    let new = values(&said).pop().expect("a secret");
    assert!(accepted(api, &id, &new).await && !accepted(api, &id, &secret).await);
    operator(&suite, &["remove", &id]).await.expect("removed");
    assert!(!accepted(api, &id, &new).await);
    assert!(operator(&suite, &["show", &id]).await.expect_err("gone").contains(&id));

    // An application for every entity has no owner unless the operator names one.
    let said = operator(&suite, &["create", "--name", "All", "--entity", "*"]).await.expect("made");
    let [id, secret] = <[String; 2]>::try_from(values(&said)).expect("an identifier and a secret");
    assert_eq!(claims(&token(api, &id, &secret).await)["managing_entities"], json!(["*"]));
    assert_eq!(entity.get("/application/list").expect(200).await.json(), json!([]));
    let owned = ["create", "--name", "All", "--entity", "*", "--owner", &entity.id];
    operator(&suite, &owned).await.expect("made");
    assert_eq!(entity.get("/application/list").expect(200).await.json().as_array().map(Vec::len), Some(1));
    for bad in [["--entity", "a b/c"], ["--entity", ""], ["--scopes", "booking"], ["--owner", "*"]] {
        let arguments = ["create", "--name", "n", "--entity", "good", bad[0], bad[1]];
        operator(&suite, &arguments).await.expect_err("refused");
    }
}

#[contract_test]
async fn an_operator_ends_one_secret_or_key_at_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let created = ["create", "--name", "All", "--entity", "*", "--owner", &entity.id];
    let [id, leaked] = <[String; 2]>::try_from(values(&operator(&suite, &created).await.expect("made"))).expect("both");
    let application = Made { id: id.clone(), secret: leaked.clone() };
    let leaked_id = text(&shown(&entity, &application).await["secrets"][0], "id");
    let good = values(&operator(&suite, &["add-secret", &id]).await.expect("added")).pop().expect("a secret");
    let refusal = operator(&suite, &["add-secret", &id]).await.expect_err("there are two secrets already");
    assert!(refusal.contains("remove-secret"), "{refusal}");
    let [stolen, kept] = [token(api, &id, &leaked).await, token(api, &id, &good).await];
    operator(&suite, &["remove-secret", &id, &leaked_id]).await.expect("removed");
    assert!(accepted(api, &id, &good).await && !accepted(api, &id, &leaked).await);
    assert_eq!(introspected(api, &stolen).await["active"], false);
    assert_eq!(introspected(api, &kept).await["active"], true);
    for missing in [leaked_id.as_str(), "sec_1", &leaked] {
        operator(&suite, &["remove-secret", &id, missing]).await.expect_err("there is no such secret");
    }
    operator(&suite, &["remove-secret", "appNobody", &leaked_id]).await.expect_err("there is no such application");

    // An expired secret is still listed, and its tokens can be revoked in the same way.
    operator(&suite, &["add-secret", &id, "--overlap-seconds", "0"]).await.expect("added");
    operator(&suite, &["add-secret", &id, "--overlap-seconds", "0"]).await.expect("added");
    let said = operator_json(&suite, &["show", &id]).await;
    assert_eq!(said["secrets"].as_array().map(Vec::len), Some(3), "{said:#}");
    let ended = text(&said["secrets"][2], "id");
    operator(&suite, &["remove-secret", &id, &ended]).await.expect("removed");
    assert_eq!(introspected(api, &kept).await["active"], false);
    let said = operator_json(&suite, &["show", &id]).await;
    operator(&suite, &["remove-secret", &id, &text(&said["secrets"][1], "id")]).await.expect("removed");

    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "laptop" } });
    entity.post(&of(&application, "/key")).json(&key).expect(201).await;
    operator(&suite, &["remove-key", &id, "laptop"]).await.expect("removed");
    let after = shown(&entity, &application).await;
    assert_eq!((&after["publicKeys"], after["secrets"].as_array().map(Vec::len)), (&json!([]), Some(1)));
    let refusal = operator(&suite, &["remove-key", &id, "laptop"]).await.expect_err("there is no such key");
    assert!(refusal.contains("laptop"), "{refusal}");
}
