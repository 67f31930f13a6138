//! Applications' secrets and keys: rotating them, and the tokens that become invalid with them.

use std::{collections::HashSet, fs, sync::Arc};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use contract_test::contract_test;
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    applications::{KEY, Made, accepted, made, made_with, of, shown, text, token},
    harness::{
        Api, ApiResponse, AwsCall, Call, Entity, LONG, Moment, Settings, Suite, invalid_values, now, time, until,
    },
};

#[contract_test]
async fn an_application_must_confirm_that_it_removes_its_last_credential(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "key" });
    let body = json!({ "name": "n", "scopes": ["account.remove"], "publicKeys": [key] });
    let application = made_with(&entity, body).await;
    let secret = text(&shown(&entity, &application).await["secrets"][0], "id");
    let token = token(api, &application.id, &application.secret).await;
    let remove = |rest: &str| api.call("DELETE", entity.path(&of(&application, rest))).bearer(&token);
    // While another credential remains, removing one needs no confirmation, since this is how secrets are rotated.
    remove("/key/key").expect(200).await;
    remove(&format!("/secret/{secret}")).refused(409, "confirmation-required").await;
    assert!(accepted(api, &application.id, &application.secret).await);
    let removed = remove(&format!("/secret/{secret}?confirm=true")).expect(200).await.json();
    assert!(text(&removed, "message").contains("last credential"), "{removed:#}");
}

/// Waits until a token is refused. The simulator checks the promise that revocation takes effect within a minute.
async fn until_refused(api: &Api, path: &str, token: &str) {
    until("the token is refused", LONG, async || {
        (api.get(path).bearer(token).answered().await.status == 401).then_some(())
    })
    .await;
}

/// The response to an introspection request for a token.
pub async fn introspected(api: &Api, token: &str) -> Value {
    let platform = crate::harness::Application::Platform;
    api.as_client("/oauth2/introspect", platform, &[("token", token)]).expect(200).await.json()
}

#[contract_test]
async fn only_tokens_of_a_removed_secret_end_and_within_a_minute(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = made(&entity).await;
    let first = text(&shown(&entity, &application).await["secrets"][0], "id");
    let leaked = token(api, &application.id, &application.secret).await;
    let new = rotated(&entity, &application, json!({})).await;
    let good = token(api, &application.id, &text(&new, "clientSecret")).await;
    assert_eq!(introspected(api, &leaked).await["credential_id"], first);
    assert_eq!(introspected(api, &good).await["credential_id"], new["secretId"]);
    let path = entity.path("/webhook/list");
    for token in [&leaked, &good] {
        api.get(&path).bearer(token).expect(200).await;
    }

    let removed = entity.call("DELETE", &of(&application, &format!("/secret/{first}"))).expect(200).await.json();
    assert!(text(&removed, "message").contains("stop working within a minute"), "{removed:#}");
    for (token, active) in [(&leaked, false), (&good, true)] {
        assert_eq!(introspected(api, token).await["active"], active, "{token}");
    }
    until_refused(api, &path, &leaked).await;
    api.get(&path).bearer(&good).expect(200).await;
}

#[contract_test]
async fn the_tokens_of_a_secret_that_was_replaced_at_once_can_be_ended(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = made(&entity).await;
    let first = text(&shown(&entity, &application).await["secrets"][0], "id");
    let leaked = token(api, &application.id, &application.secret).await;
    let new = rotated(&entity, &application, json!({ "overlapSeconds": 0 })).await;
    assert_eq!(introspected(api, &leaked).await["active"], true, "clients may use its tokens until they expire");
    let remove = || entity.call("DELETE", &of(&application, &format!("/secret/{first}")));
    remove().expect(200).await;
    assert_eq!(introspected(api, &leaked).await["active"], false);
    assert!(accepted(api, &application.id, &text(&new, "clientSecret")).await);
    remove().refused(404, "credential-not-found").await;
}

/// The identifiers of an application's secrets, each with whether it has expired.
async fn listed(entity: &Entity, application: &Made) -> Vec<(String, bool)> {
    let shown = shown(entity, application).await;
    let has_ended = |secret: &Value| secret.get("expiresDate").is_some_and(|end| time(end).as_second() <= now());
    let secrets = shown["secrets"].as_array().expect("a list");
    secrets.iter().map(|secret| (text(secret, "id"), has_ended(secret))).collect()
}

#[contract_test]
async fn tokens_of_an_expired_secret_can_be_ended_after_further_rotations(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = made(&entity).await;
    let leaked = token(api, &application.id, &application.secret).await;
    let second = rotated(&entity, &application, json!({})).await;
    let first = listed(&entity, &application).await.pop().expect("two").0;
    let [of_second, path] =
        [token(api, &application.id, &text(&second, "clientSecret")).await, entity.path("/webhook/list")];
    // Move the end of the secret's overlap half an hour into the past.
    let table = suite.table();
    let partition = format!("APP#{}", application.id);
    let mut item = table.item(&partition, "APP").await.expect("it is there");
    let half_an_hour_ago = jiff::Timestamp::from_second(now() - 1_800).expect("a time");
    item["secrets"]["L"][1]["M"]["expiresDate"]["S"] = format!("{half_an_hour_ago:.3}").into();
    table.put(item).await;
    assert!(!accepted(api, &application.id, &application.secret).await);

    let mut newest = second;
    for _ in 0..2 {
        newest = rotated(&entity, &application, json!({ "overlapSeconds": 0 })).await;
    }
    let good = token(api, &application.id, &text(&newest, "clientSecret")).await;
    let secrets = listed(&entity, &application).await;
    let ended: Vec<bool> = secrets.iter().map(|(_, has_ended)| *has_ended).collect();
    assert_eq!((ended, &secrets[3].0), (vec![false, true, true, true], &first), "newest first");
    assert!(!accepted(api, &application.id, &application.secret).await);
    for token in [&leaked, &of_second, &good] {
        api.get(&path).bearer(token).expect(200).await;
    }

    let remove = || entity.call("DELETE", &of(&application, &format!("/secret/{first}")));
    remove().expect(200).await;
    for (token, active) in [(&leaked, false), (&of_second, true), (&good, true)] {
        assert_eq!(introspected(api, token).await["active"], active, "{token}");
    }
    remove().refused(404, "credential-not-found").await;
    assert_eq!(listed(&entity, &application).await, secrets[..3]);
    until_refused(api, &path, &leaked).await;
    for token in [&of_second, &good] {
        api.get(&path).bearer(token).expect(200).await;
    }
}

#[contract_test]
async fn the_tokens_of_a_secret_that_is_no_longer_stored_end_with_it(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = made(&entity).await;
    let mut tokens = vec![token(api, &application.id, &application.secret).await];
    for _ in 0..7 {
        let new = rotated(&entity, &application, json!({ "overlapSeconds": 0 })).await;
        tokens.push(token(api, &application.id, &text(&new, "clientSecret")).await);
    }
    let all = listed(&entity, &application).await;
    assert_eq!((all.len(), introspected(api, &tokens[0]).await["active"].clone()), (8, json!(true)));

    rotated(&entity, &application, json!({ "overlapSeconds": 0 })).await;
    let after = shown(&entity, &application).await;
    assert_eq!((after["version"].clone(), listed(&entity, &application).await.len()), (json!(9), 8));
    let gone = &all[7].0;
    entity.call("DELETE", &of(&application, &format!("/secret/{gone}"))).refused(404, "credential-not-found").await;
    for (number, token) in tokens.iter().enumerate() {
        assert_eq!(introspected(api, token).await["active"], number > 0, "the token of secret {number}");
    }
}

/// Rotates the application's secret.
pub async fn rotated(entity: &Entity, application: &Made, body: Value) -> Value {
    let answer = entity.post(&of(application, "/secret")).json(&body).expect(200).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    answer.json()
}

#[contract_test]
async fn a_new_secret_is_accepted_beside_the_old_one_which_ends_by_itself(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let [application, other] = [made(&entity).await, made(&entity).await];
    let new = text(&rotated(&entity, &other, json!({ "overlapSeconds": 600 })).await, "clientSecret");
    for secret in [&other.secret, &new] {
        assert!(accepted(api, &other.id, secret).await);
    }

    // The overlap is short enough for the test to wait for its end.
    let answer = rotated(&entity, &application, json!({ "overlapSeconds": 3 })).await;
    let new = text(&answer, "clientSecret");
    let ends = time(&answer["previousSecretExpiresDate"]);
    assert!(accepted(api, &application.id, &new).await);
    // Record the day of last use now, so that it does not appear later.
    let _unless_ended = accepted(api, &application.id, &application.secret).await;
    let both = shown(&entity, &application).await;
    assert_eq!(both["version"], 2);
    assert_eq!(both["secrets"][0]["id"], answer["secretId"]);
    assert!(both["secrets"][0].get("expiresDate").is_none());
    assert_eq!(both["secrets"][1]["expiresDate"], answer["previousSecretExpiresDate"]);

    until("the old secret ends", LONG, async || {
        (!accepted(api, &application.id, &application.secret).await).then_some(())
    })
    .await;
    assert!(now() >= ends.as_second(), "it ended too early");
    assert!(accepted(api, &application.id, &new).await);
    let after = shown(&entity, &application).await;
    assert_eq!(after["secrets"], both["secrets"], "it can still be removed, together with its tokens");
    // Another secret can now be created. The default overlap is one day.
    let before = now();
    let answer = entity.post(&of(&application, "/secret")).body("application/json", "").expect(200).await.json();
    let begins = time(&answer["previousSecretExpiresDate"]).as_second() - 24 * 60 * 60;
    assert!((before..=now()).contains(&begins), "{answer:#}");
}

#[contract_test]
async fn without_an_overlap_the_old_secret_ends_at_once(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let new = text(&rotated(&entity, &application, json!({ "overlapSeconds": 0 })).await, "clientSecret");
    assert!(!accepted(&suite.api, &application.id, &application.secret).await);
    assert!(accepted(&suite.api, &application.id, &new).await);
    rotated(&entity, &application, json!({ "overlapSeconds": 0 })).await;
}

#[contract_test]
async fn a_third_secret_is_refused_while_two_are_live(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let ends = rotated(&entity, &application, json!({})).await["previousSecretExpiresDate"].clone();
    for body in [json!({}), json!({ "overlapSeconds": 0 })] {
        let third = entity.post(&of(&application, "/secret")).json(&body);
        let problem = third.refused(409, "client-secret-limit").await;
        assert_eq!(problem["properties"], json!({ "limitName": "client-secrets", "limit": 2, "oldestEndsDate": ends }));
    }
    assert_eq!(shown(&entity, &application).await["version"], 2);
}

#[contract_test]
async fn an_overlap_is_seven_days_at_most(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    for bad in [json!(604_801), json!(-1), json!(1.5), json!("1"), json!(null)] {
        let call = entity.post(&of(&application, "/secret")).json(&json!({ "overlapSeconds": bad }));
        assert_eq!(invalid_values(&call.refused(400, "invalid-request").await), ["body/overlapSeconds"]);
    }
    let before = now();
    let answer = rotated(&entity, &application, json!({ "overlapSeconds": 604_800 })).await;
    let begins = time(&answer["previousSecretExpiresDate"]).as_second() - 604_800;
    assert!((before..=now()).contains(&begins), "{answer:#}");
}

#[contract_test]
async fn a_removed_secret_ends_at_once_even_the_last(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let api = &suite.api;
    let application = made(&entity).await;
    let first = text(&shown(&entity, &application).await["secrets"][0], "id");
    let answer = rotated(&entity, &application, json!({})).await;
    let second = text(&answer, "secretId");
    let new = text(&answer, "clientSecret");
    let remove = |id: &str| entity.call("DELETE", &of(&application, &format!("/secret/{id}")));

    let removed = remove(&first).expect(200).await.json();
    assert_eq!((&removed["id"], removed.get("success")), (&json!(first), None));
    assert!(!accepted(api, &application.id, &application.secret).await);
    assert!(accepted(api, &application.id, &new).await);
    for gone in [first.as_str(), "sec_00000000000000000000000000", "sec_", "x"] {
        remove(gone).refused(404, "credential-not-found").await;
    }
    let last = remove(&second).expect(200).await.json();
    assert!(text(&last, "message").contains("last credential"), "{last:#}");
    assert!(!accepted(api, &application.id, &new).await);
    assert_eq!(shown(&entity, &application).await["secrets"], json!([]));

    let answer = rotated(&entity, &application, json!({})).await;
    assert!(answer.get("previousSecretExpiresDate").is_none(), "{answer:#}");
    assert!(accepted(api, &application.id, &text(&answer, "clientSecret")).await);
}

#[contract_test]
async fn keys_differ_in_their_names_and_are_limited(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let add = |jwk: Value| entity.post(&of(&application, "/key")).json(&json!({ "publicKey": jwk }));
    let key = |kid: &str| json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": kid });
    let unnamed = add(json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY })).expect(201).await.json();
    // RFC 8037, appendix A.3, gives the thumbprint of exactly this key.
    assert_eq!(unnamed["kid"], "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    let after = shown(&entity, &application).await;
    assert_eq!((&after["publicKeys"], &after["version"]), (&json!([unnamed]), &json!(2)), "the key that was shown");
    for kid in ["one", "two", "three", "four"] {
        add(key(kid)).expect(201).await;
    }
    let known = add(key("two")).refused(409, "key-exists").await;
    assert_eq!(known["properties"]["kid"], "two");
    assert_eq!(add(key("five")).refused(409, "key-limit").await["properties"]["limit"], 5);
    let for_anybody = json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64_URL_SAFE_NO_PAD.encode([0; 32]) });
    let private = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "d": KEY });
    for bad in [json!({}), json!("key"), private, json!(null), for_anybody] {
        assert_eq!(invalid_values(&add(bad).refused(400, "invalid-request").await), ["body/publicKey"]);
    }

    let remove = |kid: &str| entity.call("DELETE", &of(&application, &format!("/key/{kid}")));
    assert_eq!(remove("two").expect(200).await.json()["id"], "two");
    remove("two").refused(404, "credential-not-found").await;
    let left = shown(&entity, &application).await;
    let kids: Vec<&Value> = left["publicKeys"].as_array().expect("a list").iter().map(|key| &key["kid"]).collect();
    assert_eq!(kids, ["kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "one", "three", "four"]);
    assert_eq!(left["version"], 7);
}

/// Some clients send their entire key set, including the private halves.
#[contract_test]
async fn a_private_key_is_named_in_the_answer_and_stored_nowhere(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let half = BASE64_URL_SAFE_NO_PAD.encode(format!("a private half of {}", entity.id));
    let public = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY });
    let private = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "d": half });
    let set = json!({ "keys": [public, private] });
    let register = |keys: Value| {
        let body = json!({ "name": "n", "scopes": ["account.read"], "publicKeys": keys });
        entity.post("/application").json(&body)
    };
    let add = |key: &Value| entity.post(&of(&application, "/key")).json(&json!({ "publicKey": key }));
    for (call, pointer) in [
        (register(json!([public, private])), "/publicKeys/1"),
        (register(json!([set])), "/publicKeys/0"),
        (register(set.clone()), "/publicKeys"),
        (add(&private), "/publicKey"),
        (add(&set), "/publicKey"),
    ] {
        let problem = call.refused(400, "invalid-request").await;
        let violation = &problem["properties"]["violations"][0];
        assert_eq!(violation["pointer"], pointer, "{problem:#}");
        assert!(text(violation, "detail").contains("the private member `d`"), "{problem:#}");
        assert!(!problem.to_string().contains(&half), "{problem:#}");
    }
    for wrong in [json!(null), json!("key"), public.clone()] {
        let problem = register(wrong).refused(400, "invalid-request").await;
        let message = text(&problem["properties"]["violations"][0], "detail");
        assert_eq!(message, "must be a list of public keys, each a JSON Web Key");
    }
    let mut texts: Vec<_> = suite.table().scan().await.iter().map(Value::to_string).collect();
    for log in fs::read_dir(suite.bundle().data().join("logs")).expect("the bundle writes logs") {
        let log = fs::read(log.expect("the folder can be read").path()).expect("a log can be read");
        texts.push(String::from_utf8_lossy(&log).into_owned());
    }
    assert!(texts.iter().all(|text| !text.contains(&half)), "the private half was stored or logged");
}

#[contract_test]
async fn unknown_members_of_a_key_are_ignored(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    // Key generators write these members (RFC 7517, section 4).
    let unknown = ["exp", "iat", "name", "x5c"];
    let mut jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "generated" });
    for member in unknown {
        jwk[member] = json!(1);
    }
    let body = json!({ "publicKey": jwk });
    let key = entity.post(&of(&application, "/key")).json(&body).expect(201).await.json();
    assert_eq!(key["kid"], "generated");
    assert!(unknown.iter().all(|member| key.get(member).is_none()), "{key:#}");
}

#[contract_test]
async fn an_application_may_have_keys_alone(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let body = json!({
        "name": "n", "scopes": ["account.read"], "withSecret": false,
        "publicKeys": [{ "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "only", "use": "sig", "alg": "EdDSA" }],
    });
    let made = entity.post("/application").json(&body).expect(201).await.json();
    assert!(made.get("clientSecret").is_none() && made["secrets"] == json!([]), "{made:#}");
    assert_eq!(made["publicKeys"][0]["kid"], "only");
    let id = text(&made, "clientId");
    assert!(!accepted(&suite.api, &id, "").await);
    let removed = entity.call("DELETE", &format!("/application/{id}/key/only")).expect(200).await.json();
    assert!(text(&removed, "message").contains("last credential"));
}

#[contract_test]
async fn the_day_of_the_last_use_is_shown_and_is_no_change(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let before = shown(&entity, &application).await;
    assert!(before["secrets"][0].get("lastUsedDate").is_none());
    let day_of = |second: i64| jiff::Timestamp::from_second(second).expect("a time").to_string()[..10].to_owned();
    let first = day_of(now());
    // A use that the table does not record in time is not noted, but the next one is.
    let mut after = until("a use is noted", LONG, async || {
        accepted(&suite.api, &application.id, &application.secret).await;
        let after = shown(&entity, &application).await;
        after["secrets"][0].get("lastUsedDate").is_some().then_some(after)
    })
    .await;
    let day = text(&after["secrets"][0], "lastUsedDate");
    assert!([first, day_of(now())].contains(&day), "{day}");
    after["secrets"][0].as_object_mut().expect("an object").remove("lastUsedDate");
    assert_eq!(after, before);

    // The record of the last use is removed together with the credential.
    let id = text(&before["secrets"][0], "id");
    entity.call("DELETE", &of(&application, &format!("/secret/{id}"))).expect(200).await;
    let item = suite.table().item(&format!("APP#{}", application.id), "APP").await.expect("it is there");
    assert_eq!(item["lastUsed"]["M"], json!({}), "{item:#}");
}

#[contract_test]
async fn of_fifty_concurrent_rotations_one_succeeds(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    let application = made(&entity).await;
    let rotate = || entity.post(&of(&application, "/secret")).json(&json!({}));
    let answers = join_all((0..50).map(|_| rotate().answered())).await;
    let (made, refused): (Vec<&ApiResponse>, Vec<&ApiResponse>) =
        answers.iter().partition(|answer| answer.status == 200);
    // A rotation that got a 503 may have been carried out, so its repetition is refused.
    let is_lost = made.is_empty() && refused.iter().any(|answer| answer.is_repetition);
    assert!(made.len() == 1 || is_lost, "{} rotations succeeded", made.len());
    for answer in refused {
        assert_eq!(answer.status, 409, "{}", answer.exchange);
    }
    let after = shown(&entity, &application).await;
    assert_eq!(after["version"], 2);
    assert!(accepted(&suite.api, &application.id, &application.secret).await);
    for made in made {
        assert_eq!(after["secrets"][0]["id"], made.json()["secretId"]);
        assert!(accepted(&suite.api, &application.id, &text(&made.json(), "clientSecret")).await);
    }
}

#[contract_test]
async fn fifty_rotations_and_removals_at_once_leave_nothing_half_done(suite: Arc<Suite>) {
    let entity = suite.entity().await;
    for _ in 0..4 {
        let application = made(&entity).await;
        let calls = (0..50).map(|number| match number % 2 {
            0 => entity.post(&of(&application, "/secret")).json(&json!({ "overlapSeconds": 0 })),
            _ => entity.call("DELETE", &of(&application, "")),
        });
        let answers = join_all(calls.map(Call::answered)).await;
        let statuses: HashSet<u16> = answers.iter().map(|answer| answer.status).collect();
        assert!(statuses.is_subset(&HashSet::from([200, 404, 409])), "{statuses:?}");
        let removals = answers.iter().skip(1).step_by(2).filter(|answer| answer.status == 200).count();
        let secrets = answers.iter().step_by(2).filter(|answer| answer.status == 200);
        let secrets: Vec<String> = secrets.map(|answer| text(&answer.json(), "clientSecret")).collect();
        assert!(removals <= 1, "it was removed {removals} times");

        let table = suite.table();
        let partition = format!("APP#{}", application.id);
        let item = table.item(&partition, "APP").await;
        let pointer = table.item(&format!("APPS#{}", entity.id), &application.id).await;
        let mut alive = 0;
        for secret in secrets.iter().chain([&application.secret]) {
            alive += usize::from(accepted(&suite.api, &application.id, secret).await);
        }
        assert_eq!(item.is_some(), pointer.is_some());
        // A request that got a 503 may have been carried out: a removal, or a rotation whose secret was lost.
        let is_known = answers.iter().all(|answer| !answer.is_repetition);
        assert!(item.is_some() == (removals == 0) || item.is_none() && !is_known, "{removals} removals");
        assert!(alive == usize::from(item.is_some()) || alive == 0 && !is_known, "{alive} alive: {secrets:?}");
    }
}

#[contract_test]
async fn a_change_whose_answer_was_lost_is_made_once_and_acknowledged(suite: Arc<Suite>) {
    let (setup, _permit) = suite.other_bundle_interposed(Settings::default()).await;
    let entity = Entity::new(&setup.api, "lossy".to_owned()).await;
    let application = made(&entity).await;
    let changing = || {
        let partition = format!("APP#{}", application.id);
        setup.table.hold("the change", Moment::After, move |call: &AwsCall| {
            ["UpdateItem", "TransactWriteItems"].contains(&call.operation.as_str()) && call.mentions(&partition)
        })
    };
    let key = json!({ "publicKey": { "kty": "OKP", "crv": "Ed25519", "x": KEY, "kid": "lossy" } });
    let first = text(&shown(&entity, &application).await["secrets"][0], "id");
    for (call, status) in [
        (entity.post(&of(&application, "/secret")).json(&json!({})), 200),
        (entity.post(&of(&application, "/key")).json(&key), 201),
        (entity.call("DELETE", &of(&application, "/key/lossy")), 200),
        (entity.call("DELETE", &of(&application, &format!("/secret/{first}"))), 200),
    ] {
        let mut held = changing();
        let losing = async {
            held.reached().await;
            held.lose();
        };
        let (answer, ()) = tokio::join!(call.expect(status), losing);
        if let Some(secret) = answer.json()["clientSecret"].as_str() {
            assert!(accepted(&setup.api, &application.id, secret).await);
        }
    }
    let after = shown(&entity, &application).await;
    assert_eq!((&after["version"], &after["publicKeys"]), (&json!(5), &json!([])), "each once: {after:#}");
    assert!(setup.bundle.stop().await.success());
}
