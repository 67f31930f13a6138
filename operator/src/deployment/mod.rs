//! The deployment that an operator works on: a stack on AWS, or a service that runs on this machine.

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

/// A deployment, as its operator reaches it.
pub struct Deployment {
    /// The table.
    pub table: Table,
    /// Secrets Manager.
    pub secrets: Client,
    /// The beginning of every secret's name.
    pub secrets_prefix: String,
    /// The deployment's name.
    pub environment: String,
    /// Where the deployment runs.
    pub location: Location,
}

/// Where a deployment runs.
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
    /// The stack of this name with these outputs.
    pub fn new(name: &str, outputs: BTreeMap<String, String>, aws: SdkConfig) -> Self {
        Self { name: name.to_owned(), outputs, aws }
    }

    /// The value of an output.
    pub fn output(&self, output: &'static str) -> Result<&str, DeploymentError> {
        let missing = || DeploymentError::NoOutput { stack: self.name.clone(), output };
        self.outputs.get(output).map(String::as_str).ok_or_else(missing)
    }

    /// The value of an output, read as a type of its own.
    pub fn parsed<T: FromStr>(&self, output: &'static str) -> Result<T, DeploymentError> {
        let malformed = |_| DeploymentError::BadOutput { stack: self.name.clone(), output };
        self.output(output)?.parse().map_err(malformed)
    }
}

/// Why a deployment cannot be worked on.
#[derive(Debug, thiserror::Error)]
pub enum DeploymentError {
    /// The stack lacks an output.
    #[error(
        "the stack {stack} has no output {output}: it is another program's, or its deployment has not ended; run `make deploy`"
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
    /// No service runs on the folder.
    #[error("no service runs with the data in {0}; start it with `make run DATA={0}`, and try again beside it")]
    NoService(PathBuf),
    /// The file `service.env` of a running service lacks a line.
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
    /// Another command holds the lock of rotations.
    #[error("another rotation is under way in {0}; wait until it has ended")]
    UnderWay(PathBuf),
}

impl DeploymentError {
    /// Whether the deployment that was named is not there. A repetition finds no other answer.
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

    /// The service that runs on this data folder.
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

    /// The folder, where the deployment runs on this machine.
    pub fn folder(&self) -> Option<&Folder> {
        match &self.location {
            Location::Folder(folder) => Some(folder),
            Location::Stack(_) => None,
        }
    }

    /// The versions of a secret, by its name after the prefix.
    pub fn versions(&self, name: &str) -> SecretVersions {
        SecretVersions::new(self.secrets.clone(), format!("{}{name}", self.secrets_prefix))
    }
}

/// Writes the audit line of an action that was done. The functions write theirs to their log; an operator's program writes
/// it to standard error, since standard output holds the result.
pub(crate) fn audit(environment: &str, action: Action, notes: &Notes) {
    let entry = Entry { action, outcome: AuditOutcome::Done, notes, environment, at: SystemClock.now() };
    eprintln!("{}", entry.text());
}

/// The label of a version before it is the current one. Secrets Manager's own label is that of its rotations.
const UNFINISHED: &str = "WAYPOSTPENDING";

/// A secret of a deployment. On one machine no second rotation begins for as long as it is open.
pub struct ReplacedSecret {
    /// The versions in Secrets Manager.
    pub versions: SecretVersions,
    _lock: Option<File>,
}

impl ReplacedSecret {
    /// The secret of this name after the prefix.
    pub fn open(deployment: &Deployment, name: &str) -> Result<Self, DeploymentError> {
        let lock = deployment.folder().map(|folder| folder.lock()).transpose()?;
        Ok(Self { versions: deployment.versions(name), _lock: lock })
    }

    /// The version that the functions read.
    pub async fn current(&self) -> Result<Version, SecretError> {
        self.versions.current().await
    }

    /// Makes this the value in place of that version, and returns the new version's name. The new version becomes current only
    /// if that one still is: a value that another operator made meanwhile is not lost.
    pub async fn replace(&self, value: &Value, in_place_of: &str) -> Result<String, SecretError> {
        let id = random::uuid(&SystemRandom);
        self.versions.put(&id, value, UNFINISHED).await?;
        self.versions.make_current(&id, in_place_of).await?;
        Ok(id)
    }
}
