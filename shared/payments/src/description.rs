//! A provider's description as data, and how it becomes a [`Provider`]: the built-in members, with those that the secret
//! `provider-<name>` adds or overrides. Every member is known, so that a misspelt one is never silently lost.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use http::Method as HttpMethod;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::{
    authorization_url,
    builtin::BuiltIn,
    client_authentication::{Assertion, Client, Method, PrivateKey, Proof},
    grant,
    placeholder::{Placeholder, Template},
    provider::{Expiry, Provider, ProviderName, Reading, Revocation},
};
use outbound::{addresses::AddressRules, endpoint_url::EndpointUrl};
use storage::secrets::SecretText;

/// The members of a secret that are no description: this service's own identity at the provider, and the choice between the
/// provider and its sandbox.
const OF_THE_SECRET: [&str; 4] = ["clientId", "clientSecret", "privateKey", "sandbox"];
/// The members that a description must have.
const REQUIRED: [&str; 5] = ["authorizeUrl", "tokenUrl", "scope", "clientAuthentication", "pkce"];
/// The members that may name the account, where the description does not say which.
const ACCOUNT_FIELDS: [&str; 3] = ["account_id", "merchant_id", "account"];

/// A fault of a description. It names a member, and never shows its value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault(pub String);

/// The members of a description, each with its default. Those without one are in [`REQUIRED`], too.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Description {
    authorize_url: String,
    token_url: String,
    revoke_url: Option<String>,
    issuer: Option<String>,
    /// As the provider's metadata say it (RFC 9207 §3).
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    client_authentication: Method,
    scope: String,
    #[serde(default = "space")]
    scope_separator: String,
    pkce: bool,
    #[serde(default)]
    authorize_parameters: BTreeMap<String, String>,
    #[serde(default)]
    token_parameters: BTreeMap<String, String>,
    #[serde(default = "yes")]
    token_redirect_uri: bool,
    #[serde(default = "account_fields")]
    account_fields: Vec<String>,
    expiry: Option<Expiry>,
    #[serde(default)]
    error_fields: Vec<String>,
    #[serde(default)]
    denial_codes: Vec<String>,
    #[serde(default)]
    dead_grant_codes: Vec<String>,
    /// In seconds.
    refresh_at_most_after: Option<NonZeroU32>,
    #[serde(default)]
    revocation: RevocationDescription,
    #[serde(default)]
    assertion: AssertionDescription,
}

fn space() -> String {
    " ".to_owned()
}

fn yes() -> bool {
    true
}

fn account_fields() -> Vec<String> {
    ACCOUNT_FIELDS.map(str::to_owned).to_vec()
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct RevocationDescription {
    method: RevocationMethod,
    encoding: Option<Encoding>,
    authorization: Option<Template>,
    parameters: Option<BTreeMap<String, Template>>,
    gone_codes: Vec<String>,
    gone_words: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum RevocationMethod {
    #[default]
    Post,
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Encoding {
    Form,
    Json,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct AssertionDescription {
    issuer: Option<Template>,
    audience: Option<String>,
    key_id: Option<String>,
}

/// The provider of this name, from its built-in description, if it has one, and its secret.
pub(super) fn read(
    name: &ProviderName,
    built_in: Option<&BuiltIn>,
    secret: &Value,
    rules: &AddressRules,
) -> Result<Provider, Fault> {
    let Value::Object(secret) = secret else { return Err(Fault("it must be a JSON object".into())) };
    let description = described(built_in, secret)?;
    let mut addresses = Addresses { rules, faults: Vec::new() };
    let authorize_url = addresses.read("authorizeUrl", &description.authorize_url);
    let token_url = addresses.read("tokenUrl", &description.token_url);
    let revoke_url = description.revoke_url.and_then(|address| addresses.read("revokeUrl", &address));
    let client = client(secret, description.client_authentication, description.assertion)?;
    let revocation = revocation(description.revocation, &client)?;
    unreserved("authorizeParameters", description.authorize_parameters.keys(), &authorization_url::OWN_PARAMETERS)?;
    unreserved("tokenParameters", description.token_parameters.keys(), &grant::OWN_PARAMETERS)?;
    let (Some(authorize_url), Some(token_url), true) = (authorize_url, token_url, addresses.faults.is_empty()) else {
        return Err(Fault(addresses.faults.join("; ")));
    };
    let in_query = authorize_url.query_pairs().map(|(name, _)| name.into_owned()).collect::<Vec<_>>();
    unreserved("authorizeUrl", in_query.iter(), &authorization_url::OWN_PARAMETERS)?;
    let names_issuer = description.authorization_response_iss_parameter_supported;
    if names_issuer && description.issuer.is_none() {
        return Err(Fault(
            "`authorizationResponseIssParameterSupported` needs `issuer`, the provider's own `iss`".into(),
        ));
    }
    let seconds = description.refresh_at_most_after.map(|seconds| u64::from(seconds.get()));
    Ok(Provider {
        name: name.clone(),
        authorize_url,
        token_url,
        revoke_url,
        issuer: description.issuer,
        names_issuer,
        client,
        scopes: description.scope.split_ascii_whitespace().map(str::to_owned).collect(),
        scope_separator: description.scope_separator.clone(),
        pkce: description.pkce,
        authorize_parameters: description.authorize_parameters,
        token_parameters: description.token_parameters,
        token_redirect_uri: description.token_redirect_uri,
        reading: Reading {
            account_fields: description.account_fields,
            expiry: description.expiry,
            error_fields: description.error_fields,
            dead_grant_codes: description.dead_grant_codes,
            scope_separator: description.scope_separator,
        },
        denial_codes: description.denial_codes,
        refresh_at_most_after: seconds.map(Duration::from_secs),
        revocation,
    })
}

/// The description of the provider: the built-in members, over them those of its sandbox where the secret asks for it, over
/// all the secret's own. A member that is `null` counts as absent.
fn described(built_in: Option<&BuiltIn>, secret: &Map<String, Value>) -> Result<Description, Fault> {
    let own = secret.iter().filter(|(name, _)| !OF_THE_SECRET.contains(&name.as_str()));
    let layers = [built_in.map(|built_in| &built_in.description), sandbox(built_in, secret)?];
    let members = layers.into_iter().flatten().flatten().chain(own);
    let mut members: Map<_, _> = members.map(|(name, value)| (name.clone(), value.clone())).collect();
    members.retain(|_, value| !value.is_null());
    for name in REQUIRED {
        required(name, members.get(name))?;
    }
    // serde's own sentence could repeat a value; the path only names members.
    serde_path_to_error::deserialize(Value::Object(members))
        .map_err(|error| Fault(format!("`{}` is no member of it, or its value is not of the right form", error.path())))
}

/// The members that a provider's sandbox has of its own, where the secret asks for it.
fn sandbox<'a>(
    built_in: Option<&'a BuiltIn>,
    secret: &Map<String, Value>,
) -> Result<Option<&'a Map<String, Value>>, Fault> {
    let members = built_in.and_then(|built_in| built_in.sandbox.as_ref());
    match secret.get("sandbox") {
        None | Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) if members.is_some() => Ok(members),
        Some(Value::Bool(true)) => {
            Err(Fault("`sandbox` has no meaning for this provider; give it the sandbox's addresses".into()))
        }
        Some(_) => Err(Fault("`sandbox` must be true or false".into())),
    }
}

fn required<T>(name: &str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or_else(|| Fault(format!("`{name}` is missing")))
}

/// Reads addresses, and notes their faults.
struct Addresses<'a> {
    rules: &'a AddressRules,
    faults: Vec<String>,
}

impl Addresses<'_> {
    fn read(&mut self, name: &str, address: &str) -> Option<Url> {
        match EndpointUrl::parse(address, self.rules) {
            Ok(url) => Some(url.url().clone()),
            Err(error) => {
                self.faults.push(format!("`{name}` {error}"));
                None
            }
        }
    }
}

/// No parameter of a description may stand in for one that this program sets: the state above all.
fn unreserved<'a>(member: &str, names: impl Iterator<Item = &'a String>, own: &[&str]) -> Result<(), Fault> {
    match names.into_iter().find(|name| own.contains(&name.as_str())) {
        Some(name) => Err(Fault(format!("`{member}` must not set `{name}`, which the service sets itself"))),
        None => Ok(()),
    }
}

fn client(secret: &Map<String, Value>, method: Method, assertion: AssertionDescription) -> Result<Client, Fault> {
    let id = text(secret, "clientId")?;
    let id = required("clientId", id)?.to_owned();
    let shared = text(secret, "clientSecret")?;
    let pem = text(secret, "privateKey")?;
    let shared_secret = || required("clientSecret", shared).map(SecretText::new);
    let proof = match method {
        Method::Basic => Proof::Basic(shared_secret()?),
        Method::Body => Proof::Body(shared_secret()?),
        Method::Json => Proof::Json(shared_secret()?),
        Method::PrivateKeyJwt => {
            let (member, pem) = match (pem, shared) {
                (Some(pem), _) => ("privateKey", pem),
                (None, Some(pem)) => ("clientSecret", pem),
                (None, None) => return Err(Fault("`privateKey` is missing".into())),
            };
            let key = PrivateKey::from_pem(pem).map_err(|error| Fault(format!("`{member}` {error}")))?;
            let issuer = assertion.issuer.unwrap_or_else(|| Template::only(Placeholder::ClientId));
            if !issuer.has_only(&[Placeholder::ClientId, Placeholder::OwnHost]) {
                return Err(Fault("`assertion.issuer` may have the places {clientId} and {ownHost} only".into()));
            }
            Proof::Key(Assertion { key, issuer, audience: assertion.audience, key_id: assertion.key_id })
        }
    };
    Ok(Client { id, proof })
}

/// A member of the secret that is a text; a key in PEM has line ends, everything else is one line.
fn text<'a>(secret: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Fault> {
    match secret.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Err(Fault(format!("`{name}` is empty"))),
        Some(Value::String(text)) if text.chars().any(char::is_control) && !text.contains("-----BEGIN ") => {
            Err(Fault(format!("`{name}` must be one line without control characters")))
        }
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Fault(format!("`{name}` must be a text"))),
    }
}

fn revocation(description: RevocationDescription, client: &Client) -> Result<Revocation, Fault> {
    let parameters = description.parameters.iter().flatten().map(|(_, template)| template);
    for template in description.authorization.iter().chain(parameters) {
        if template.has(Placeholder::OwnHost) {
            return Err(Fault("`revocation` may not have the place {ownHost}".into()));
        }
        if template.has(Placeholder::ClientSecret) && client.secret().is_none() {
            return Err(Fault("`revocation` has the place {clientSecret}, but this client has a key".into()));
        }
    }
    Ok(Revocation {
        method: match description.method {
            RevocationMethod::Post => HttpMethod::POST,
            RevocationMethod::Delete => HttpMethod::DELETE,
        },
        json: description.encoding.map_or_else(|| client.speaks_json(), |encoding| encoding == Encoding::Json),
        authorization: description.authorization,
        parameters: description.parameters,
        gone_codes: description.gone_codes,
        gone_words: description.gone_words,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::client_authentication::tests::p256_pem;
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

    /// A complete provider with these members beside or instead of its own.
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
        for missing in ["clientId", "clientSecret", "authorizeUrl", "tokenUrl", "clientAuthentication", "scope", "pkce"]
        {
            let mut secret = complete();
            secret.as_object_mut().expect("an object").remove(missing);
            assert_eq!(fault(&secret), format!("`{missing}` is missing"));
        }
    }

    #[test]
    fn what_is_unknown_or_wrong_is_named_and_its_value_is_not() {
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
            (json!({ "refreshAtMostAfter": 0 }), "refreshAtMostAfter"),
            (
                json!({ "authorizationResponseIssParameterSupported": true }),
                "authorizationResponseIssParameterSupported",
            ),
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
        let rules =
            AddressRules { allow_http: true, allowed_networks: vec!["127.0.0.1/32".parse().expect("a network")] };
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
        let key = json!({
            "clientAuthentication": "private_key_jwt", "privateKey": pem,
            "revocation": { "authorization": "Client {clientSecret}" },
        });
        assert!(fault(&with(key)).starts_with("`revocation`"));
    }

    #[test]
    fn the_secret_overrides_the_sandbox_and_the_sandbox_what_is_built_in() {
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
        assert_eq!(
            made(sandbox),
            ("https://a.example.com/".into(), "https://t.example.com/".into(), Some(live.clone()))
        );
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
}
