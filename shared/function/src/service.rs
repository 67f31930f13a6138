//! A started function: its settings, clock, randomness, AWS clients, table and verifier of tokens.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;

use auth::{
    keys::{KeyCache, PublishedKeys},
    revocations::{RevocationList, Revocations},
    token::Audience,
    verifier::Verifier,
};
use base::{
    clock::{SharedClock, SystemClock},
    environment::{self, Environment, FromEnvironment, SettingsError},
    logging::{self, LogSettings},
    random::{SharedRandom, SystemRandom},
};
use storage::aws::{Aws, AwsSettings};
use storage::{SecretSettings, Secrets, Table};

/// A delivery makes several thousand small allocations. With the system's allocator, they took a quarter of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Settings of every function.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `BASE_URL`: the API's address without a trailing slash; the audience of tokens and the base of Problem types.
    pub base_url: String,
    /// `AUTH_URL`: the token issuer's address without a trailing slash; the `iss` of tokens.
    pub auth_url: String,
    /// `TABLE_NAME`: the DynamoDB table.
    pub table_name: String,
    /// `ENVIRONMENT`: this deployment's name, such as `production`.
    pub environment: String,
}

impl FromEnvironment for Settings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let base_url = environment.address("BASE_URL");
        let auth_url = environment.address("AUTH_URL");
        let table_name = environment.required("TABLE_NAME");
        let name = environment.required("ENVIRONMENT");
        Some(Self { base_url: base_url?, auth_url: auth_url?, table_name: table_name?, environment: name? })
    }
}

/// A started function. Its parts are created once per cold start; each accessor hands out a cheap clone.
pub struct Service {
    settings: Settings,
    clock: SharedClock,
    random: SharedRandom,
    aws: Aws,
    table: Table,
    tokens: Arc<Verifier>,
}

/// An error that ends a function.
#[derive(thiserror::Error)]
pub enum StartError {
    /// The environment is incomplete or invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The runtime ended.
    #[error("the Lambda runtime ended: {0}")]
    Runtime(lambda_runtime::Error),
    /// The system provides no threads for the function, or no event queue for its connections.
    #[error("the function could not start: {0}")]
    Threads(#[source] std::io::Error),
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f) // `main` prints its error with `Debug`, and an operator needs a sentence
    }
}

impl Service {
    /// Reads the environment and creates the clients. `S` is the function's own settings, which are returned with the
    /// service.
    pub async fn start<S: FromEnvironment>() -> Result<(Self, S), StartError> {
        let (log, aws, settings, own) = environment::read::<(LogSettings, AwsSettings, Settings, S)>()?;
        logging::start(log.level);
        let aws = Aws::new(aws);
        let client = aws.dynamodb();
        let table = Table::new(client.clone(), &settings.table_name);
        // A separate handle, so that reads of keys and revocations never share a call with other reads: IAM allows a
        // call only if one statement allows all its keys.
        let token_table = Table::new(client, &settings.table_name);
        let clock: SharedClock = Arc::new(SystemClock);
        let keys = KeyCache::new(PublishedKeys::new(token_table.clone()), clock.clone());
        let random: SharedRandom = Arc::new(SystemRandom);
        let revocations = Revocations::new(RevocationList::new(token_table), clock.clone());
        let audience = Audience { issuer: settings.auth_url.clone(), base_url: settings.base_url.clone() };
        let tokens = Arc::new(Verifier::new(keys, revocations, audience, clock.clone()));
        Ok((Self { settings, clock, random, aws, table, tokens }, own))
    }

    /// The settings of every function.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The clock.
    pub fn clock(&self) -> SharedClock {
        self.clock.clone()
    }

    /// The source of randomness.
    pub fn random(&self) -> SharedRandom {
        self.random.clone()
    }

    /// The clients of AWS.
    pub fn aws(&self) -> &Aws {
        &self.aws
    }

    /// The table.
    pub fn table(&self) -> Table {
        self.table.clone()
    }

    /// The secrets below this prefix.
    pub fn secrets(&self, settings: SecretSettings) -> Secrets {
        Secrets::connect(&self.aws, settings.prefix)
    }

    /// Spawns work that runs concurrently with the rest of the startup. Startup does not wait for it.
    pub fn beside_start(&self, work: BoxFuture<'static, ()>) {
        drop(tokio::spawn(work));
    }

    /// The verifier of tokens.
    pub fn tokens(&self) -> Arc<Verifier> {
        self.tokens.clone()
    }
}
