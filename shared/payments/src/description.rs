//! A provider's description as data, and how it becomes a [`Provider`]. The members of the `provider-<name>` secret add
//! to the built-in ones or override them. Unknown members are faults, so that a misspelt one is never silently ignored.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use http::Method as HttpMethod;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::{
    authorization_url,
    builtin::BuiltIn,
    client_proof::{Assertion, Client, Method, PrivateKey, Proof},
    grant,
    placeholder::{Placeholder, Template},
    provider::{Expiry, Provider, ProviderName, Reading, Revocation},
};
use outbound::{AddressRules, endpoint_url::EndpointUrl};
use storage::SecretText;

/// The members of a secret that do not belong to the description: this service's credentials at the provider, and
/// whether to use the sandbox.
const OF_THE_SECRET: [&str; 4] = ["clientId", "clientSecret", "privateKey", "sandbox"];
/// The default of `accountFields`.
const ACCOUNT_FIELDS: [&str; 3] = ["account_id", "merchant_id", "account"];

/// A fault in a description. It names a member and never shows its value.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault(pub String);

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Description {
    authorize_url: Option<String>,
    token_url: Option<String>,
    revoke_url: Option<String>,
    issuer: Option<String>,
    /// As in the provider's metadata (RFC 9207 §3).
    authorization_response_iss_parameter_supported: bool,
    client_authentication: Option<Method>,
    scope: Option<String>,
    scope_separator: Option<String>,
    pkce: Option<bool>,
    authorize_parameters: BTreeMap<String, String>,
    token_parameters: BTreeMap<String, String>,
    token_redirect_uri: Option<bool>,
    account_fields: Option<Vec<String>>,
    expiry: Option<Expiry>,
    error_fields: Vec<String>,
    denial_codes: Vec<String>,
    dead_grant_codes: Vec<String>,
    /// In seconds.
    refresh_at_most_after: Option<NonZeroU32>,
    revocation: RevocationDescription,
    assertion: AssertionDescription,
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

/// Reads the provider with this name from its built-in description, if it has one, and its secret.
pub fn read(
    name: &ProviderName,
    built_in: Option<&BuiltIn>,
    secret: &Value,
    rules: &AddressRules,
) -> Result<Provider, Fault> {
    let Value::Object(secret) = secret else { return Err(Fault("it must be a JSON object".into())) };
    let description = described(built_in, secret)?;
    let mut addresses = Addresses { rules, faults: Vec::new() };
    let authorize_url = addresses.read("authorizeUrl", &required("authorizeUrl", description.authorize_url)?);
    let token_url = addresses.read("tokenUrl", &required("tokenUrl", description.token_url)?);
    let scope = required("scope", description.scope)?;
    let scope_separator = description.scope_separator.unwrap_or_else(|| " ".to_owned());
    if scope_separator.is_empty() {
        return Err(Fault("`scopeSeparator` must not be empty".into()));
    }
    let account_fields = description.account_fields.unwrap_or_else(|| ACCOUNT_FIELDS.map(str::to_owned).to_vec());
    let revoke_url = description.revoke_url.and_then(|address| addresses.read("revokeUrl", &address));
    let client =
        client(secret, required("clientAuthentication", description.client_authentication)?, description.assertion)?;
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
        scopes: scope.split_ascii_whitespace().map(str::to_owned).collect(),
        scope_separator: scope_separator.clone(),
        pkce: required("pkce", description.pkce)?,
        authorize_parameters: description.authorize_parameters,
        token_parameters: description.token_parameters,
        token_redirect_uri: description.token_redirect_uri.unwrap_or(true),
        reading: Reading {
            account_fields,
            expiry: description.expiry,
            error_fields: description.error_fields,
            dead_grant_codes: description.dead_grant_codes,
            scope_separator,
        },
        denial_codes: description.denial_codes,
        refresh_at_most_after: seconds.map(Duration::from_secs),
        revocation,
    })
}

/// The merged description. The sandbox's members, if the secret selects the sandbox, override the built-in ones, and
/// the secret's members override both. A `null` removes a member.
fn described(built_in: Option<&BuiltIn>, secret: &Map<String, Value>) -> Result<Description, Fault> {
    let own = secret.iter().filter(|(name, _)| !OF_THE_SECRET.contains(&name.as_str()));
    let layers = [built_in.map(|built_in| &built_in.description), sandbox(built_in, secret)?];
    let members = layers.into_iter().flatten().flatten().chain(own);
    let mut members: Map<_, _> = members.map(|(name, value)| (name.clone(), value.clone())).collect();
    members.retain(|_, value| !value.is_null());
    // Only the path is shown, since serde's message could repeat a value.
    serde_path_to_error::deserialize(Value::Object(members))
        .map_err(|error| Fault(format!("`{}` is unknown or has the wrong form", error.path())))
}

/// The members of a provider's sandbox, if the secret selects it.
fn sandbox<'a>(
    built_in: Option<&'a BuiltIn>,
    secret: &Map<String, Value>,
) -> Result<Option<&'a Map<String, Value>>, Fault> {
    let members = built_in.and_then(|built_in| built_in.sandbox.as_ref());
    match secret.get("sandbox") {
        None | Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) if members.is_some() => Ok(members),
        Some(Value::Bool(true)) => {
            Err(Fault("`sandbox` is not supported for this provider; set the sandbox's addresses instead".into()))
        }
        Some(_) => Err(Fault("`sandbox` must be true or false".into())),
    }
}

fn required<T>(name: &str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or_else(|| Fault(format!("`{name}` is missing")))
}

/// Parses addresses and collects their faults.
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

/// Fails if a description sets a parameter that this program sets, such as the state.
fn unreserved<'a>(member: &str, names: impl Iterator<Item = &'a String>, own: &[&str]) -> Result<(), Fault> {
    match names.into_iter().find(|name| own.contains(&name.as_str())) {
        Some(name) => Err(Fault(format!("`{member}` must not set `{name}`, which the service sets itself"))),
        None => Ok(()),
    }
}

fn client(secret: &Map<String, Value>, method: Method, assertion: AssertionDescription) -> Result<Client, Fault> {
    let id = required("clientId", text(secret, "clientId")?)?.to_owned();
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
                return Err(Fault("`assertion.issuer` may have only the placeholders {clientId} and {ownHost}".into()));
            }
            Proof::Key(Assertion { key, issuer, audience: assertion.audience, key_id: assertion.key_id })
        }
    };
    Ok(Client { id, proof })
}

/// A string member of the secret. Only a key in PEM may have line ends.
fn text<'a>(secret: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Fault> {
    match secret.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Err(Fault(format!("`{name}` is empty"))),
        Some(Value::String(text)) if text.chars().any(char::is_control) && !text.contains("-----BEGIN ") => {
            Err(Fault(format!("`{name}` must be one line without control characters")))
        }
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Fault(format!("`{name}` must be a string"))),
    }
}

fn revocation(description: RevocationDescription, client: &Client) -> Result<Revocation, Fault> {
    let parameters = description.parameters.iter().flatten().map(|(_, template)| template);
    for template in description.authorization.iter().chain(parameters) {
        if template.has(Placeholder::OwnHost) {
            return Err(Fault("`revocation` may not have the placeholder {ownHost}".into()));
        }
        if template.has(Placeholder::ClientSecret) && client.secret().is_none() {
            return Err(Fault("`revocation` has the placeholder {clientSecret}, but this client has a key".into()));
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
#[path = "description_tests.rs"]
pub(crate) mod tests;
