//! Descriptions of providers: the members, their faults, and the order of overrides.

use super::*;
use crate::client_proof::tests::p256_pem;
use serde_json::json;

fn complete() -> Value {
    json!({
        "clientId": "app", "clientSecret": "hunter2", "authorizeUrl": "https://pay.example.com/authorize",
        "tokenUrl": "https://api.example.com/token", "clientAuthentication": "basic", "scope": "read write",
        "pkce": true,
    })
}

fn with(members: Value) -> Value {
    let mut all = complete();
    let (Some(all_members), Value::Object(members)) = (all.as_object_mut(), members) else { unreachable!() };
    all_members.extend(members);
    all
}

fn name() -> ProviderName {
    ProviderName::parse("example").expect("a name")
}

/// A complete provider with these members added or replaced.
pub fn provider(members: Value) -> Provider {
    read(&name(), None, &with(members), &AddressRules::default()).expect("a provider")
}

fn fault(secret: &Value) -> String {
    read(&name(), None, secret, &AddressRules::default()).expect_err("a fault").0
}

#[test]
fn a_configured_provider_needs_no_more_than_the_contract_says() {
    let provider = provider(json!({}));
    assert_eq!(provider.scopes.len(), 2);
    assert!(provider.pkce && provider.token_redirect_uri && provider.revoke_url.is_none());
    assert_eq!(provider.reading.account_fields, ACCOUNT_FIELDS);
    for missing in ["clientId", "clientSecret", "authorizeUrl", "tokenUrl", "clientAuthentication", "scope", "pkce"] {
        let mut secret = complete();
        secret.as_object_mut().expect("an object").remove(missing);
        assert_eq!(fault(&secret), format!("`{missing}` is missing"));
    }
}

#[test]
fn an_unknown_or_wrong_member_is_named_without_its_value() {
    for (members, member) in [
        (json!({ "revokeURL": "https://hunter2.example" }), "revokeURL"),
        (json!({ "pkce": "hunter2" }), "pkce"),
        (json!({ "clientAuthentication": "hunter2" }), "clientAuthentication"),
        (json!({ "clientSecret": ["hunter2"] }), "clientSecret"),
        (json!({ "clientSecret": "" }), "clientSecret"),
        (json!({ "clientSecret": "hunter2\n" }), "clientSecret"),
        (json!({ "clientId": 7 }), "clientId"),
        (json!({ "sandbox": "hunter2" }), "sandbox"),
        (json!({ "sandbox": true }), "sandbox"),
        (json!({ "expiry": { "field": "hunter2" } }), "expiry"),
        (json!({ "revocation": { "methd": "hunter2" } }), "revocation.methd"),
        (json!({ "revocation": { "method": "hunter2" } }), "revocation.method"),
        (json!({ "revocation": { "authorization": "Client {hunter2}" } }), "revocation.authorization"),
        (json!({ "revocation": { "parameters": { "a": "{ownHost}" } } }), "revocation"),
        (json!({ "scopeSeparator": "" }), "scopeSeparator"),
        (json!({ "refreshAtMostAfter": 0 }), "refreshAtMostAfter"),
        (json!({ "authorizationResponseIssParameterSupported": true }), "authorizationResponseIssParameterSupported"),
        (json!({ "authorizeParameters": { "state": "hunter2" } }), "authorizeParameters"),
        (json!({ "authorizeUrl": "https://pay.example.com/?client_id=hunter2" }), "authorizeUrl"),
        (json!({ "tokenParameters": { "client_secret": "hunter2" } }), "tokenParameters"),
        (json!({ "clientAuthentication": "private_key_jwt" }), "clientSecret"),
        (json!({ "clientAuthentication": "private_key_jwt", "privateKey": "hunter2" }), "privateKey"),
    ] {
        let fault = fault(&with(members.clone()));
        assert!(fault.contains(&format!("`{member}`")), "{members}: {fault}");
        assert!(!fault.contains("hunter2"), "{fault}");
    }
    assert_eq!(fault(&json!([])), "it must be a JSON object");
}

#[test]
fn addresses_are_https_without_credentials_or_fragment_and_public() {
    for bad in [
        "http://pay.example.com/",
        "https://u:p@pay.example.com/",
        "https://pay.example.com/#x",
        "https://127.0.0.1/",
        "x",
    ] {
        for member in ["authorizeUrl", "tokenUrl", "revokeUrl"] {
            assert!(fault(&with(json!({ member: bad }))).starts_with(&format!("`{member}` must")), "{bad}");
        }
    }
    let both = fault(&with(json!({ "authorizeUrl": "x", "tokenUrl": "x" })));
    assert!(both.contains("`authorizeUrl`") && both.contains("`tokenUrl`"), "{both}");
    let rules = AddressRules { allow_http: true, allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")] };
    let local = with(json!({ "tokenUrl": "http://127.0.0.1:9/token" }));
    assert!(read(&name(), None, &local, &rules).is_ok());
}

#[test]
fn a_key_comes_as_private_key_or_as_the_secret() {
    let pem = p256_pem();
    for member in ["privateKey", "clientSecret"] {
        let provider = provider(json!({ "clientAuthentication": "private_key_jwt", member: pem }));
        assert!(matches!(provider.client.proof, Proof::Key(_)), "{member}");
    }
    for pasted in [pem.replace('\n', "\\n"), pem.replace('\n', "\r\n  "), json!({ "key": pem }).to_string()] {
        let provider = provider(json!({ "clientAuthentication": "private_key_jwt", "privateKey": pasted }));
        assert!(matches!(provider.client.proof, Proof::Key(_)), "{pasted}");
    }
    let encrypted = pem.replace("PRIVATE", "ENCRYPTED PRIVATE");
    let encrypted = fault(&with(json!({ "clientAuthentication": "private_key_jwt", "privateKey": encrypted })));
    assert!(encrypted.starts_with("`privateKey` is an encrypted private key; decrypt it with"), "{encrypted}");
    let key = json!({
        "clientAuthentication": "private_key_jwt", "privateKey": pem,
        "revocation": { "authorization": "Client {clientSecret}" },
    });
    assert!(fault(&with(key)).starts_with("`revocation`"));
}

#[test]
fn the_secret_overrides_the_sandbox_which_overrides_the_built_in() {
    let Value::Object(description) = json!({
        "authorizeUrl": "https://a.example.com/", "tokenUrl": "https://t.example.com/",
        "revokeUrl": "https://r.example.com/", "clientAuthentication": "body", "scope": "x", "pkce": false,
    }) else {
        unreachable!()
    };
    let Value::Object(sandbox) =
        json!({ "authorizeUrl": "https://a.sandbox.example.com/", "tokenUrl": "https://t.sandbox.example.com/" })
    else {
        unreachable!()
    };
    let built_in = BuiltIn {
        name: name(),
        label: "Built in".into(),
        description,
        sandbox: Some(sandbox),
        sources: vec![],
        unconfirmed: vec![],
    };
    let made = |secret: Value| {
        let provider = read(&name(), Some(&built_in), &secret, &AddressRules::default()).expect("a provider");
        let revoke_url = provider.revoke_url.map(|url| url.to_string());
        (provider.authorize_url.to_string(), provider.token_url.to_string(), revoke_url)
    };
    let (live, sandbox) = ("https://r.example.com/".to_owned(), json!({ "clientId": "a", "clientSecret": "b" }));
    assert_eq!(made(sandbox), ("https://a.example.com/".into(), "https://t.example.com/".into(), Some(live.clone())));
    let overridden = json!({
        "clientId": "a", "clientSecret": "b", "sandbox": true, "tokenUrl": "https://mine.example.com/",
    });
    assert_eq!(
        made(overridden),
        ("https://a.sandbox.example.com/".into(), "https://mine.example.com/".into(), Some(live))
    );
    let none = json!({ "clientId": "a", "clientSecret": "b", "revokeUrl": null });
    assert_eq!(made(none).2, None);
}

#[test]
fn nothing_secret_of_a_provider_is_printed() {
    assert!(!format!("{:?}", provider(json!({}))).contains("hunter2"));
}
