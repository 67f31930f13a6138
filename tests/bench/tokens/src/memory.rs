//! An issuer and its client in memory.

use std::{collections::BTreeMap, error::Error, hint::black_box, sync::Arc, time::Duration};

use auth::{
    Resource,
    entity::Entities,
    keys::KeySet,
    revocations::{Consistency, Revocation, RevocationSource, Revocations},
    scope::Scopes,
    signing::{SigningAlgorithm, SigningKey, SigningSecret},
    token::{self, Audience, Claims, Presented, TokenFault},
};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey};
use base::{SharedClock, SystemClock, SystemRandom, Time};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use gate::Reply;
use issuer::{
    applications::{Application, ClientSecret, client_secret},
    oauth::{
        credentials::{Credentials, Proof, unauthenticated},
        form::Form,
    },
};
use problem::Problem;
use serde_json::{Value, json};
use storage::{SecretBytes, TableError};

const CLIENT: &str = "app0123456789abcdefghijkl";
const SCOPES: &str = "booking.read booking.write inventory.read";
const LIFETIME: Duration = Duration::from_secs(3600);
const ISSUER: &str = "https://auth.example.com";
const FORM: &str = "application/x-www-form-urlencoded";

/// A piece of work.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// The bare signature of a token.
    Sign,
    /// The bare verification of it.
    Verify,
    /// A token, from its request to the answer.
    Issue,
    /// A token, from its text to what it says, and that it was not revoked.
    Validate,
}

/// What they need, as it is in a warm function.
pub struct Memory {
    clock: SharedClock,
    audience: Audience,
    pepper: SecretBytes,
    application: Application,
    key: SigningKey,
    keys: KeySet,
    revocations: Revocations<NothingRevoked>,
    /// The form of a request for a token.
    request: String,
    /// A token, and a signature of its kind.
    token: String,
    signature: Vec<u8>,
    public: ParsedPublicKey,
}

struct NothingRevoked;

impl RevocationSource for NothingRevoked {
    async fn made_since(
        &self,
        _: Time,
        _: Consistency,
        _: impl FnMut(Vec<Revocation>) + Send,
    ) -> Result<(), TableError> {
        Ok(())
    }
}

impl Memory {
    /// An application with one secret, and fresh keys of this algorithm.
    pub fn new(algorithm: SigningAlgorithm) -> Result<Self, Box<dyn Error>> {
        let clock: SharedClock = Arc::new(SystemClock);
        let now = clock.now();
        let pepper = SecretBytes::new(vec![7; 32]);
        let secret = client_secret::fresh(&SystemRandom);
        let application = Application {
            client_id: CLIENT.to_owned(),
            name: "Bench".to_owned(),
            owner: None,
            scopes: Scopes::ALL,
            may_publish: true,
            entities: Entities::new(["demo-hotel".to_owned()]),
            secrets: vec![ClientSecret::of(&secret, &pepper, now, &SystemRandom)],
            keys: Vec::new(),
            last_used: BTreeMap::new(),
            version: 1,
            created_date: now,
            last_update: now,
        };
        let key = SigningSecret::fresh(algorithm).keys()?.current;
        let mut memory = Self {
            audience: Audience { issuer: ISSUER.to_owned(), base_url: "https://api.example.com".to_owned() },
            pepper,
            application,
            keys: KeySet::of([key.public_key()]),
            revocations: Revocations::new(NothingRevoked, clock.clone()),
            request: format!(
                "grant_type=client_credentials&client_id={CLIENT}&client_secret={}&scope={SCOPES}",
                secret.expose()
            ),
            token: String::new(),
            signature: Vec::new(),
            public: public_half(&key)?,
            key,
            clock,
        };
        memory.token = memory.issue()?;
        memory.signature = memory.key.sign(memory.signed().as_bytes())?.as_ref().to_vec();
        Ok(memory)
    }

    /// Does a piece of work so many times.
    pub async fn repeat(&self, work: Work, count: u32) -> Result<(), Box<dyn Error>> {
        for _ in 0..count {
            match work {
                Work::Sign => drop(black_box(self.key.sign(self.signed().as_bytes())?)),
                Work::Verify => self.public.verify_sig(self.signed().as_bytes(), &self.signature)?,
                Work::Issue => drop(black_box(self.answer().map_err(|problem| problem.detail)?)),
                Work::Validate => drop(black_box(self.validate().await?)),
            }
        }
        Ok(())
    }

    /// What the token's signature is of.
    fn signed(&self) -> &str {
        self.token.rsplit_once('.').map_or("", |(signed, _)| signed)
    }

    fn issue(&self) -> Result<String, Box<dyn Error>> {
        let answer: Value = serde_json::from_slice(&self.answer().map_err(|problem| problem.detail)?.body)?;
        Ok(answer["access_token"].as_str().ok_or("no token was issued")?.to_owned())
    }

    /// What the grant does, the application as if it had just been read.
    fn answer(&self) -> Result<Reply, Problem> {
        let mut form = Form::read(FORM, self.request.as_bytes())?;
        let (grant_type, scope) = (form.required("grant_type", "missing")?, form.take("scope").unwrap_or_default());
        let credentials = Credentials::read(&[], &mut form)?;
        let (application, now) = (self.application.clone(), self.clock.now());
        let proven = match &credentials.proof {
            Proof::Secret(secret) => application.secret(secret.expose(), &self.pepper, now),
            Proof::Assertion(_) | Proof::Unreadable(_) => None,
        };
        if proven.is_none() || grant_type != "client_credentials" {
            return Err(unauthenticated());
        }
        let scopes = Scopes::parse(&scope).map_err(Problem::internal)?;
        if !scopes.without(application.scopes).is_empty() {
            return Err(unauthenticated());
        }
        let claims = Claims {
            client_id: application.client_id,
            credential_id: Some(application.secrets[0].id.to_string()),
            session_id: None,
            token_id: token::new_token_id(&SystemRandom),
            key_id: self.key.kid().to_owned(),
            resource: Resource::Api,
            scopes,
            entities: application.entities,
            may_publish: application.may_publish,
            issued: now,
            expires: now + LIFETIME,
        };
        let access_token = token::issue(&claims, &self.audience, &self.key).map_err(Problem::internal)?;
        let expires_in = LIFETIME.as_secs();
        Reply::ok(
            &json!({ "access_token": access_token, "token_type": "Bearer", "expires_in": expires_in, "scope": scope }),
        )
    }

    /// What the gate does with a token.
    async fn validate(&self) -> Result<Claims, Box<dyn Error>> {
        let claims = Presented::parse(&self.token)?.validate(&self.keys, &self.audience, self.clock.now())?;
        if self.revocations.revoked(&claims).await? {
            return Err(TokenFault::Revoked.into());
        }
        Ok(claims)
    }
}

/// The public half of a key, ready for bare verifications.
fn public_half(key: &SigningKey) -> Result<ParsedPublicKey, Box<dyn Error>> {
    let jwk = serde_json::to_value(key.public_key())?;
    let coordinate = |name: &str| BASE64_URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap_or_default());
    let (x, y) = (coordinate("x")?, coordinate("y")?);
    Ok(match key.algorithm() {
        SigningAlgorithm::Es256 => ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, [&[4], &x[..], &y].concat())?,
        SigningAlgorithm::EdDsa => ParsedPublicKey::new(&ED25519, x)?,
    })
}
