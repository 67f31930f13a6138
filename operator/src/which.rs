//! What the operator's commands share: which deployment they are for, on AWS or on this machine, and how they begin and end.
//!
//! On AWS they take credentials and region as every AWS tool does.

use std::{
    collections::BTreeMap,
    error::Error,
    fs::{self, File, TryLockError},
    io::{self, stderr},
    path::{Path, PathBuf},
    process::ExitCode,
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_secretsmanager::{Client, config::Credentials, error::DisplayErrorContext};
use base::logging;
use clap::Args;
use serde_json::Value;
use storage::table::Table;

/// Which deployment a command is for.
#[derive(Debug, Args)]
pub struct Which {
    /// The table's name: the stack's output `TableName`.
    #[arg(long, requires = "secrets_prefix", required_unless_present = "data")]
    pub table: Option<String>,
    /// What the secrets' names begin with: the stack's output `SecretsPrefix`.
    #[arg(long, requires = "table")]
    pub secrets_prefix: Option<String>,
    /// The data folder of a service that runs on this machine, in place of a stack.
    #[arg(long, conflicts_with_all = ["table", "secrets_prefix"])]
    pub data: Option<PathBuf>,
}

/// A deployment, as its operator reaches it.
pub struct Deployment {
    /// The table.
    pub table: Table,
    /// Secrets Manager.
    pub secrets: Client,
    /// What the secrets' names begin with.
    pub secrets_prefix: String,
    /// What there is beside these on one machine.
    pub here: Option<Here>,
}

/// A service that runs on this machine.
#[derive(Debug)]
pub struct Here {
    data: PathBuf,
    told: BTreeMap<String, String>,
}

/// Why a deployment cannot be worked on.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// No service runs here.
    #[error("no service runs with the data in {0}; start it with `make run`")]
    NoService(PathBuf),
    /// What the service says to its clients is not all there.
    #[error("{path} does not say {name}")]
    ServiceEnv {
        /// The file.
        path: PathBuf,
        /// What is missing in it.
        name: &'static str,
    },
    /// A file cannot be used.
    #[error("{path} cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// What the file system says.
        source: io::Error,
    },
    /// Secrets Manager did not answer, or refused.
    #[error("the secret {name} cannot be read: {reason}")]
    Secret {
        /// The secret, prefix included.
        name: String,
        /// What Secrets Manager or the SDK says; never the value.
        reason: String,
    },
    /// A secret has a value that is none of ours.
    #[error("the secret {name} holds something else than JSON")]
    Form {
        /// The secret, prefix included.
        name: String,
        /// Where it stops being JSON.
        source: serde_json::Error,
    },
    /// Two commands at once could lose a key.
    #[error("another rotation is under way in {0}")]
    UnderWay(PathBuf),
}

impl Deployment {
    /// The deployment that the arguments name.
    pub async fn of(which: &Which) -> Result<Self, OperatorError> {
        if let Some(data) = &which.data {
            return Self::on_one_machine(data).await;
        }
        let aws = aws_config::load_from_env().await;
        Ok(Self {
            table: Table::new(aws_sdk_dynamodb::Client::new(&aws), which.table.as_deref().unwrap_or_default()),
            secrets: Client::new(&aws),
            secrets_prefix: which.secrets_prefix.clone().unwrap_or_default(),
            here: None,
        })
    }

    /// The present value of a secret, by its name after the prefix.
    pub async fn secret(&self, name: &str) -> Result<Value, OperatorError> {
        let name = format!("{}{name}", self.secrets_prefix);
        match self.secrets.get_secret_value().secret_id(&name).send().await {
            Ok(answer) => serde_json::from_str(answer.secret_string().unwrap_or_default())
                .map_err(|source| OperatorError::Form { name, source }),
            Err(error) => Err(OperatorError::Secret { name, reason: DisplayErrorContext(error).to_string() }),
        }
    }

    /// The service says in its `service.env` where its parts are.
    async fn on_one_machine(data: &Path) -> Result<Self, OperatorError> {
        let text = fs::read_to_string(data.join("service.env"));
        let text = text.map_err(|_| OperatorError::NoService(data.to_owned()))?;
        let told = text.lines().filter_map(|line| line.split_once('='));
        let told = told.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let here = Here { data: data.to_owned(), told };
        let aws = credentials_of(&here).await?;
        let dynamodb = aws_sdk_dynamodb::config::Builder::from(&aws).endpoint_url(here.value("DYNAMODB_ENDPOINT")?);
        let secrets =
            aws_sdk_secretsmanager::config::Builder::from(&aws).endpoint_url(here.value("SERVICES_ENDPOINT")?);
        Ok(Self {
            table: Table::new(aws_sdk_dynamodb::Client::from_conf(dynamodb.build()), here.value("TABLE_NAME")?),
            secrets: Client::from_conf(secrets.build()),
            secrets_prefix: format!("waypost/{}/", here.value("ENVIRONMENT")?),
            here: Some(here),
        })
    }
}

impl Here {
    /// What the service says to its clients under this name.
    pub fn value(&self, name: &'static str) -> Result<&str, OperatorError> {
        let missing = || OperatorError::ServiceEnv { path: self.data.join("service.env"), name };
        self.told.get(name).map(String::as_str).ok_or_else(missing)
    }

    /// The header that shows the stand-ins the credentials of this start, for a request that no SDK makes.
    pub fn authorization(&self) -> Result<String, OperatorError> {
        let id = self.value("AWS_ACCESS_KEY_ID")?;
        Ok(format!("AWS4-HMAC-SHA256 Credential={id}/20260101/us-east-1/lambda/aws4_request"))
    }

    /// The file from which the next start loads a secret.
    pub fn secret_file(&self, name: &str) -> PathBuf {
        self.data.join(format!("secrets/{name}.json"))
    }

    /// Keeps a second rotation out for as long as the file is open.
    pub fn lock(&self) -> Result<File, OperatorError> {
        let path = self.data.join("rotation.lock");
        let at = |source| OperatorError::File { path: path.clone(), source };
        let lock = File::options().create(true).write(true).truncate(false).open(&path).map_err(at)?;
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(TryLockError::WouldBlock) => Err(OperatorError::UnderWay(self.data.clone())),
            Err(TryLockError::Error(source)) => Err(at(source)),
        }
    }
}

/// Lets a command say on standard error what it does. `program` is its name in Rust, such as `rotate_data_keys`.
pub fn begin(program: &str) {
    tracing_subscriber::fmt()
        .with_writer(stderr)
        .with_env_filter(format!("warn,{program}=info"))
        .without_time()
        .with_target(false)
        .init();
}

/// Says how a command ended.
pub fn end<E: Error + 'static>(outcome: Result<(), E>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", logging::chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// What the stand-ins of one machine ask for.
async fn credentials_of(here: &Here) -> Result<SdkConfig, OperatorError> {
    let (id, secret) = (here.value("AWS_ACCESS_KEY_ID")?, here.value("AWS_SECRET_ACCESS_KEY")?);
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new(here.value("AWS_REGION")?.to_owned()))
        .credentials_provider(Credentials::new(id, secret, None, None, "service.env"));
    Ok(config.load().await)
}
