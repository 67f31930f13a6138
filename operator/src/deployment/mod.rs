//! The deployment that an operator works on: a stack on AWS, or a local service.

mod folder;

pub use folder::Folder;

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    path::{Path, PathBuf},
    str::FromStr,
};

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::{Client, config::Builder};
use serde_json::Value;

use base::audit::{Action, AuditOutcome, Entry, Notes};
use base::{Clock, SystemClock, SystemRandom, random};
use storage::secrets::versions::{SecretVersions, Version, Versioned};
use storage::{SecretError, Table};
use webhooks::deliveries::queue::{Queue, QueueSettings};

/// The account of a local service's queues, which are named as in the template.
const LOCAL_ACCOUNT: &str = "000000000000";

/// An operator's access to a deployment.
pub struct Deployment {
    /// The table.
    pub table: Table,
    /// Secrets Manager.
    pub secrets: Client,
    /// The common prefix of all secrets' names.
    pub secrets_prefix: String,
    /// The deployment's name.
    pub environment: String,
    /// The stack, or the local service's folder.
    pub location: Location,
}

/// Where a deployment is.
#[derive(Debug)]
pub enum Location {
    /// On AWS.
    Stack(Box<Stack>),
    /// On this machine.
    Folder(Folder),
}

/// A stack, as CloudFormation describes it.
#[derive(Debug)]
pub struct Stack {
    name: String,
    outputs: BTreeMap<String, String>,
    /// Credentials and region.
    pub aws: SdkConfig,
}

impl Stack {
    /// The stack with this name and these outputs.
    pub fn new(name: &str, outputs: BTreeMap<String, String>, aws: SdkConfig) -> Self {
        Self { name: name.to_owned(), outputs, aws }
    }

    /// An output's value.
    pub fn output(&self, output: &'static str) -> Result<&str, DeploymentError> {
        let missing = || DeploymentError::NoOutput { stack: self.name.clone(), output };
        self.outputs.get(output).map(String::as_str).ok_or_else(missing)
    }

    /// An output's value, parsed.
    pub fn parsed<T: FromStr>(&self, output: &'static str) -> Result<T, DeploymentError> {
        let malformed = |_| DeploymentError::BadOutput { stack: self.name.clone(), output };
        self.output(output)?.parse().map_err(malformed)
    }
}

/// Why a deployment cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The stack lacks an output.
    #[error(
        "the stack {stack} has no output {output}: it belongs to another program, or its deployment is incomplete; run \
         `make deploy`"
    )]
    NoOutput {
        /// The stack's name.
        stack: String,
        /// The output's name.
        output: &'static str,
    },
    /// An output has an unexpected form.
    #[error("the output {output} of the stack {stack} is malformed; run `make deploy`")]
    BadOutput {
        /// The stack's name.
        stack: String,
        /// The output's name.
        output: &'static str,
    },
    /// No service is running with the folder.
    #[error(
        "no service is running with the data in {0}; start it with `make run DATA={0}`, and try again while it runs"
    )]
    NoService(PathBuf),
    /// A running service's `service.env` lacks a line.
    #[error("{path} has no line {name}=…; start the service again")]
    ServiceEnv {
        /// The file.
        path: PathBuf,
        /// The missing name.
        name: &'static str,
    },
    /// A file cannot be used.
    #[error("{path} cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// Another command holds the rotation lock.
    #[error("another rotation is in progress in {0}; wait until it has finished")]
    UnderWay(PathBuf),
}

impl DeploymentError {
    /// Whether the named deployment does not exist or is locked, in which case nothing was changed and a retry would
    /// fail again.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::NoOutput { .. } | Self::NoService(_) | Self::UnderWay(_))
    }
}

impl Deployment {
    /// The deployment of a stack.
    pub fn of_stack(stack: Stack) -> Result<Self, DeploymentError> {
        Ok(Self {
            table: Table::connect(&stack.aws, None, stack.output("TableName")?),
            secrets: Client::new(&stack.aws),
            secrets_prefix: stack.output("SecretsPrefix")?.to_owned(),
            environment: stack.output("EnvironmentName")?.to_owned(),
            location: Location::Stack(Box::new(stack)),
        })
    }

    /// The local service with this data folder.
    pub async fn in_folder(data: &Path) -> Result<Self, DeploymentError> {
        let folder = Folder::open(data)?;
        folder.check_service().await?;
        let aws: SdkConfig = folder.aws().await?;
        let secrets = Builder::from(&aws).endpoint_url(folder.value("SERVICES_ENDPOINT")?);
        let environment = folder.value("ENVIRONMENT")?.to_owned();
        Ok(Self {
            table: Table::connect(&aws, Some(folder.value("DYNAMODB_ENDPOINT")?), folder.value("TABLE_NAME")?),
            secrets: Client::from_conf(secrets.build()),
            secrets_prefix: format!("waypost/{environment}/"),
            environment,
            location: Location::Folder(folder),
        })
    }

    /// The folder, if the deployment is a local service.
    pub fn folder(&self) -> Option<&Folder> {
        match &self.location {
            Location::Folder(folder) => Some(folder),
            Location::Stack(_) => None,
        }
    }

    /// The queues of due deliveries.
    pub async fn delivery_queues(&self) -> Result<Queue, DeploymentError> {
        Ok(match &self.location {
            Location::Stack(stack) => {
                let urls = QueueSettings::new(stack.output("DeliveryQueueUrl")?, stack.output("SlowDeliveryQueueUrl")?);
                Queue::over(aws_sdk_sqs::Client::new(&stack.aws), &urls)
            }
            Location::Folder(folder) => {
                let services = folder.value("SERVICES_ENDPOINT")?;
                let url = |name| format!("{services}/{LOCAL_ACCOUNT}/{name}");
                let config = aws_sdk_sqs::config::Builder::from(&folder.aws().await?).endpoint_url(services);
                let urls = QueueSettings::new(url("DeliveryQueue"), url("SlowDeliveryQueue"));
                Queue::over(aws_sdk_sqs::Client::from_conf(config.build()), &urls)
            }
        })
    }

    /// A secret's versions, by its name after the prefix.
    pub fn versions(&self, name: &str) -> SecretVersions {
        SecretVersions::new(self.secrets.clone(), format!("{}{name}", self.secrets_prefix))
    }
}

/// Writes a completed action's audit line to standard error, since standard output is for the result. Functions write
/// such lines to their log.
pub(crate) fn audit(environment: &str, action: Action, notes: &Notes) {
    let entry = Entry { action, outcome: AuditOutcome::Done, notes, environment, at: SystemClock.now() };
    eprintln!("{}", entry.text());
}

/// A version's label before it becomes current. It is not the pending label, which Secrets Manager uses for rotations.
const UNFINISHED: &str = "WAYPOSTPENDING";

/// A secret that an operator replaces. For a local service, an open `ReplacedSecret` also locks out other rotations.
pub struct ReplacedSecret {
    /// The versions in Secrets Manager.
    pub versions: SecretVersions,
    _lock: Option<File>,
}

impl ReplacedSecret {
    /// The secret with this name after the prefix.
    pub fn open(deployment: &Deployment, name: &str) -> Result<Self, DeploymentError> {
        let lock = deployment.folder().map(|folder| folder.lock()).transpose()?;
        Ok(Self { versions: deployment.versions(name), _lock: lock })
    }

    /// The version that the functions read.
    pub async fn current(&self) -> Result<Version, SecretError> {
        self.versions.current().await
    }

    /// Replaces the version `in_place_of` with a new one, and returns the new version's identifier. The new version
    /// becomes current only if `in_place_of` is still current, so that no concurrent change is lost.
    pub async fn replace(&self, value: &Value, in_place_of: &str) -> Result<String, SecretError> {
        let id = random::uuid(&SystemRandom);
        self.versions.put(&id, value, UNFINISHED).await?;
        self.versions.make_current(&id, in_place_of).await?;
        Ok(id)
    }
}
