//! The operator's command that replaces the keys which sign access tokens. On AWS, and for the service that `make run` runs.
//!
//! Normally the key that was published long ago begins to sign, a new one is published for the time after it, and no token is
//! refused: on AWS Secrets Manager rotates and this command waits; on one machine this command plays Secrets Manager. In an
//! emergency (`--emergency`), when somebody may have got hold of the keys, both are replaced at once, and what the old ones
//! signed is refused within a minute.
//!
//! It may be stopped at any moment, and run again.

use std::{
    fs::File,
    io,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use auth::{
    keys::{PublishedKeys, RevokedKey, last_token_of_a_retired_key},
    revocations::RevocationList,
    signing::{BadSigningKey, SECRET, SigningAlgorithm, SigningSecret},
};
use aws_sdk_secretsmanager::error::DisplayErrorContext;
use base::{
    audit::{Action, Entry, Notes, Outcome},
    clock::{Clock, SystemClock},
    random::{self, SystemRandom},
};
use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, header::AUTHORIZATION};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use issuer::rotation::Step;
use operator::{Deployment, OperatorError, Which, private_file};
use serde_json::{Value, json};
use storage::{
    secrets::{
        SecretError,
        versions::{CURRENT, SecretVersions, Versioned},
    },
    table::TableError,
};
use tokio::time::sleep;

/// How long Secrets Manager may take; it takes some seconds, and more where it tries again.
const LIMIT: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_secs(2);

/// What a version is labelled with before it is the current one; Secrets Manager's own label is the rotation's.
const UNFINISHED: &str = "WAYPOSTPENDING";

/// Replaces the keys that sign access tokens.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    which: Which,
    /// Somebody may have got hold of the keys: replace both at once, and revoke every token that they signed.
    #[arg(long)]
    emergency: bool,
    /// In an emergency, what the new keys are for, ES256 or EdDSA: the stack's output `SigningAlgorithm`. Without it, what the
    /// old ones are for.
    #[arg(long)]
    signing_algorithm: Option<SigningAlgorithm>,
    /// In an emergency, the seconds that a token lives: the stack's output `TokenLifetime`. Without it, the longest.
    #[arg(long, default_value_t = 86_400)]
    token_lifetime: u32,
}

/// Why the keys are not replaced, or not all of it is done.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// There is no such deployment.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// The file for the next start cannot be written.
    #[error("{path} cannot be written")]
    File { path: PathBuf, source: io::Error },
    /// Secrets Manager did not do as it was asked.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Secrets Manager does not rotate.
    #[error("Secrets Manager does not rotate the secret {name}: {reason}")]
    Refused { name: String, reason: String },
    /// It does not come to an end.
    #[error("the rotation has not ended within {} s; the log of rotate-signing-key says why", LIMIT.as_secs())]
    Late,
    /// The secret is not what this project writes.
    #[error(transparent)]
    Keys(#[from] BadSigningKey),
    /// The function cannot be reached.
    #[error("the function rotate-signing-key cannot be invoked: {0}")]
    Unreachable(String),
    /// The function did not do a step.
    #[error("{step} failed: {reason}")]
    Step { step: &'static str, reason: String },
    /// The rotation made nothing.
    #[error("the version that the rotation made is gone")]
    Gone,
    /// Another emergency came in between.
    #[error("not everything is done; run this again")]
    Revoked(#[from] RevokedKey),
    /// The table did not answer.
    #[error("not everything is done; run this again")]
    Table(#[from] TableError),
}

#[tokio::main]
async fn main() -> ExitCode {
    operator::begin("signing_keys");
    operator::end(run(&Arguments::parse()).await)
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let keys = Keys::of(Deployment::of(&arguments.which).await?)?;
    if arguments.emergency { keys.replace(arguments).await } else { keys.rotate().await }
}

/// The keys of a deployment.
struct Keys {
    deployment: Deployment,
    name: String,
    versions: SecretVersions,
    /// On one machine, keeps a second rotation out.
    _lock: Option<File>,
}

impl Keys {
    fn of(deployment: Deployment) -> Result<Self, Failure> {
        let name = format!("{}{SECRET}", deployment.secrets_prefix);
        let lock = deployment.here.as_ref().map(|here| here.lock()).transpose()?;
        let versions = SecretVersions::new(deployment.secrets.clone(), name.clone());
        Ok(Self { deployment, name, versions, _lock: lock })
    }

    async fn rotate(&self) -> Result<(), Failure> {
        if self.deployment.here.is_some() {
            self.play_secrets_manager().await?
        } else {
            self.ask_secrets_manager().await?
        }
        let now_signing = SigningSecret::read(&self.versions.current().await?.value)?.keys()?;
        println!("{} signs from now on; {} will be next", now_signing.current.kid(), now_signing.next.kid());
        Ok(())
    }

    async fn ask_secrets_manager(&self) -> Result<(), Failure> {
        let refused = |reason: String| Failure::Refused { name: self.name.clone(), reason };
        let asked = self.deployment.secrets.rotate_secret().secret_id(&self.name).send().await;
        let asked = asked.map_err(|error| refused(DisplayErrorContext(error).to_string()))?;
        let version = asked.version_id().unwrap_or_default();
        tracing::info!("Secrets Manager rotates");
        let begun = Instant::now();
        while begun.elapsed() < LIMIT {
            let described = self.deployment.secrets.describe_secret().secret_id(&self.name).send().await;
            let described = described.map_err(|error| refused(DisplayErrorContext(error).to_string()))?;
            let labels = described.version_ids_to_stages().and_then(|versions| versions.get(version));
            if labels.is_some_and(|labels| labels.iter().any(|label| label == CURRENT)) {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
        Err(Failure::Late)
    }

    /// The steps in their order. The next start loads the new version from the moment at which it could be the current one:
    /// until then its keys are published, and the old ones still good.
    async fn play_secrets_manager(&self) -> Result<(), Failure> {
        let version = random::uuid(&SystemRandom);
        for step in Step::ALL {
            if step == Step::FinishSecret {
                self.keep(&self.versions.version(&version).await?.ok_or(Failure::Gone)?.value)?;
            }
            self.invoke(step, &version).await?;
        }
        Ok(())
    }

    async fn invoke(&self, step: Step, version: &str) -> Result<(), Failure> {
        let here = self.deployment.here.as_ref().ok_or(Failure::Gone)?;
        let unreachable = |error: &(dyn std::error::Error + 'static)| Failure::Unreachable(base::logging::chain(error));
        let address = format!("{}/2015-03-31/functions/rotate-signing-key/invocations", here.value("LAMBDA_ENDPOINT")?);
        let event = json!({ "Step": step.as_str(), "SecretId": self.name, "ClientRequestToken": version });
        let request = Request::post(address)
            .header(AUTHORIZATION, here.authorization()?)
            .body(Full::<Bytes>::from(event.to_string()));
        let request = request.map_err(|error| Failure::Unreachable(error.to_string()))?;
        let answer = Client::builder(TokioExecutor::new()).build_http().request(request).await;
        let answer = answer.map_err(|error| unreachable(&error))?;
        let failed = !answer.status().is_success() || answer.headers().contains_key("x-amz-function-error");
        let body = answer.into_body().collect().await.map_err(|error| unreachable(&error))?.to_bytes();
        if !failed {
            return Ok(());
        }
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let reason = said["errorMessage"].as_str().map_or_else(|| String::from_utf8_lossy(&body).into(), str::to_owned);
        Err(Failure::Step { step: step.as_str(), reason })
    }

    /// Two new keys at once, published before the first token that they sign.
    async fn replace(&self, arguments: &Arguments) -> Result<(), Failure> {
        let replaced = self.versions.current().await?;
        let old = SigningSecret::read(&replaced.value)?.keys()?;
        let secret = SigningSecret::fresh(arguments.signing_algorithm.unwrap_or_else(|| old.next.algorithm()));
        let new = secret.keys()?;
        let (published, now) = (PublishedKeys::new(self.deployment.table.clone()), SystemClock.now());
        let publish = published.change(|published| {
            published.add(new.current.public_key(), now)?;
            published.add(new.next.public_key(), now)
        });
        publish.await??;

        // A rotation that is under way would bring one of the old keys back, and leave a label in the way of the next one.
        let mut abandoned: Vec<_> = self.versions.abandon_pending().await?.into_iter().collect();
        self.keep(&secret.value())?;
        let version = random::uuid(&SystemRandom);
        self.versions.put(&version, &secret.value(), UNFINISHED).await?;
        self.versions.make_current(&version, &replaced.id).await?;
        abandoned.extend(self.versions.abandon_pending().await?);
        tracing::info!("{} signs from now on", new.current.kid());

        let staying = [new.current.kid(), new.next.kid()];
        let mut revoked: Vec<_> = published.read().await?.keys.iter().map(|key| key.key.kid().to_owned()).collect();
        // What a rotation made but did not publish may be known as well as the others.
        let made = abandoned.iter().filter_map(|version| SigningSecret::read(&version.value).ok()?.keys().ok());
        let unwanted = made.chain([old]).flat_map(|keys| [keys.current, keys.next]);
        revoked.extend(unwanted.map(|key| key.kid().to_owned()));
        revoked.retain(|kid| !staying.contains(&kid.as_str()));
        revoked.sort();
        revoked.dedup();
        let until = last_token_of_a_retired_key(arguments.token_lifetime, now);
        let revocations = RevocationList::new(self.deployment.table.clone());
        for kid in &revoked {
            revocations.key(kid, until, SystemClock.now()).await?;
        }
        published.change(|published| published.revoke_others(&new, &revoked, now)).await??;
        self.tell(new.current.kid());
        println!("{} signs from now on; every token that {} signed is refused", new.current.kid(), revoked.join(", "));
        Ok(())
    }

    /// On one machine, lets the next start load this secret.
    fn keep(&self, secret: &Value) -> Result<(), Failure> {
        let Some(here) = &self.deployment.here else { return Ok(()) };
        let path = here.secret_file(SECRET);
        private_file::write(&path, format!("{secret}\n").as_bytes()).map_err(|source| Failure::File { path, source })
    }

    /// The line of the audit trail, which the functions know nothing of.
    fn tell(&self, kid: &str) {
        let (notes, environment) = (Notes::default(), self.deployment.secrets_prefix.trim_matches('/'));
        notes.subject(kid);
        let environment = environment.rsplit('/').next().unwrap_or_default();
        let (action, outcome) = (Action::ReplaceSigningKeys, Outcome::Done);
        Entry { action, outcome, notes: &notes, environment, at: SystemClock.now() }.tell();
    }
}
