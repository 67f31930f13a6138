//! A bundle's simulated payment providers, and the secrets that describe them.

use std::collections::BTreeMap;

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa::{KeyPair, KeySize},
    signature::KeyPair as _,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use fakes::provider::{Authentication, Providers, Revocation, Rotation, Setup, Shape};
use serde_json::{Value, json};

/// The providers' scopes, as configured.
pub const SCOPES: &str = "payments.read payments.write";

/// Every bundle's providers; the first two are built in, but have other URLs here.
pub const PROVIDERS: [&str; 7] = ["square", "stripe", "sim-basic", "sim-body", "sim-json", "sim-jwt", "sim-pkce"];

/// A bundle's secrets, by name.
pub type Secrets = BTreeMap<String, Value>;

/// The simulated providers, and the secrets for a bundle that is their client.
pub struct Simulation {
    pub providers: Providers,
    /// The secrets with names that begin with `provider-`.
    pub secrets: Secrets,
}

impl Simulation {
    /// Starts the providers on a free port.
    pub async fn start() -> Result<Self, String> {
        let key = KeyPair::generate(KeySize::Rsa2048).map_err(|_| "no RSA key can be made")?;
        let setups = setups(&key);
        let providers = Providers::start(0, setups.clone(), None).await;
        let providers = providers.map_err(|error| format!("the simulated providers do not start: {error}"))?;
        let secrets =
            setups.iter().map(|setup| (format!("provider-{}", setup.name), secret(setup, &providers, &pem(&key))));
        let mut secrets: Secrets = secrets.collect();
        // No test connects this built-in provider, except for the test that removes it.
        let unused = json!({ "clientId": "unused", "clientSecret": "unused", "scope": SCOPES });
        secrets.insert("provider-adyen".to_owned(), unused);
        Ok(Self { secrets, providers })
    }
}

/// The providers' settings; their secrets contain characters that every encoding must escape.
fn setups(key: &KeyPair) -> Vec<Setup> {
    use Authentication::{Assertion, Basic, Body, Json};
    let secret = |name: &str| format!("{name}:s3cr%t+&=/?\"\\ of the client");
    let public = key.public_key().as_ref().to_vec();
    let square = Setup::new("square", "sq0idp-tests", Json("sq0csp-secret-of-the-client".to_owned()));
    let stripe = Setup::new("stripe", "ca_tests", Body("sk_test_secret_of_the_client".to_owned()));
    vec![
        Setup {
            lifetime: Some(30 * 24 * 3_600),
            rotation: Rotation::Same,
            shape: Shape::Square,
            revocation: Revocation::Square,
            ..square
        },
        Setup {
            lifetime: None,
            rotation: Rotation::Same,
            shape: Shape::Stripe,
            revocation: Revocation::Stripe,
            ..stripe
        },
        Setup::new("sim-basic", "client of: sim-basic", Basic(secret("basic"))),
        Setup { rotation: Rotation::Strict, ..Setup::new("sim-body", "client&body", Body(secret("body"))) },
        Setup { rotation: Rotation::Unnamed, ..Setup::new("sim-json", "client\"json", Json(secret("json"))) },
        Setup::new("sim-jwt", "client-jwt", Assertion(public)),
        Setup { pkce: true, issuer: true, ..Setup::new("sim-pkce", "client-pkce", Basic(secret("pkce"))) },
    ]
}

/// A provider's description, in the form of its secret.
fn secret(setup: &Setup, providers: &Providers, key: &str) -> Value {
    let mut secret = json!({
        "clientId": setup.client_id,
        "authorizeUrl": providers.url(&setup.name, "authorize"),
        "tokenUrl": providers.url(&setup.name, "token"),
        "revokeUrl": providers.url(&setup.name, "revoke"),
    });
    let (method, proof) = match &setup.authentication {
        Authentication::AnySecret => ("basic", ("clientSecret", "anything")),
        Authentication::Basic(secret) => ("basic", ("clientSecret", secret.as_str())),
        Authentication::Body(secret) => ("body", ("clientSecret", secret.as_str())),
        Authentication::Json(secret) => ("json", ("clientSecret", secret.as_str())),
        Authentication::Assertion(_) => ("private_key_jwt", ("privateKey", key)),
    };
    secret[proof.0] = proof.1.into();
    if setup.shape == Shape::Standard {
        secret["clientAuthentication"] = method.into();
        secret["scope"] = SCOPES.into();
        secret["pkce"] = setup.pkce.into();
    }
    if setup.issuer {
        secret["issuer"] = providers.issuer(&setup.name).into();
        secret["authorizationResponseIssParameterSupported"] = true.into();
    }
    secret
}

/// A private key in PEM, the format that operators use.
fn pem(key: &KeyPair) -> String {
    let der = AsDer::<Pkcs8V1Der<'_>>::as_der(key).expect("a key can be written");
    let text = BASE64_STANDARD.encode(der.as_ref());
    let lines: Vec<&str> = (0..text.len()).step_by(64).map(|at| &text[at..text.len().min(at + 64)]).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}
