//! Secrets: ministack, which stands for Secrets Manager, and for S3 where geo-IP databases are to be published in a bucket.
//! It keeps everything in memory, so whenever it starts, it is given the secrets anew, as the files have them at that
//! moment: an operator's program may have changed one since.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use aws_sdk_secretsmanager::error::DisplayErrorContext;
use shared::{geo_ip::StoreAddress, logging};
use tokio::{net::TcpStream, time};

use crate::{
    aws::{ACCOUNT, Endpoints, REGION},
    processes::{ProcessGroup, Supervised},
    queues::Queues,
    secrets::{Secrets, SecretsError},
};

/// How long it may take to listen; it takes a quarter of a second where nothing else runs.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The stand-in, and what it is to hold.
pub struct Services {
    process: Supervised,
    address: SocketAddr,
    endpoints: Endpoints,
    secrets_prefix: String,
    queues: Queues,
    secrets: PathBuf,
    bucket: Option<String>,
}

/// Why there are no secrets.
#[derive(Debug, thiserror::Error)]
pub enum ServicesError {
    /// It does not listen.
    #[error("ministack does not answer; see logs/ministack.log in the data folder")]
    Silent,
    /// There is nothing to give it.
    #[error("the secrets cannot be loaded")]
    Secrets(#[from] SecretsError),
    /// It does not take what it is given.
    #[error("ministack refused {what}: {reason}")]
    Refused {
        /// A secret or a bucket, by name.
        what: String,
        /// What it says.
        reason: String,
    },
}

/// A queue's address there.
pub fn queue_url(services: SocketAddr, queue: &str) -> String {
    format!("http://{services}/{ACCOUNT}/{queue}")
}

/// A queue's ARN there.
pub fn queue_arn(queue: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}")
}

/// Starts the process and keeps it running; it holds nothing yet.
pub fn start(group: &Arc<ProcessGroup>, program: &Path, scratch: &Path, address: SocketAddr) -> Supervised {
    let scratch = scratch.to_owned();
    group.keep_running("ministack", program, move |command| {
        command
            .current_dir(&scratch)
            .env("GATEWAY_PORT", address.port().to_string())
            .env("BIND_HOST", address.ip().to_string())
            .env("SERVICES", "secretsmanager,s3")
            .env("LOG_LEVEL", "WARNING")
            .env("TMPDIR", &scratch)
            // It would also open ports for these, and look for containers of earlier runs.
            .env("IOT_MTLS_ENABLED", "0")
            .env("SFTP_ENABLED", "0")
            .env("DOCKER_HOST", "unix:///nonexistent");
    })
}

impl Services {
    /// The stand-in at this address, with the secrets of a folder. The queues are not in it, and share its fate.
    pub fn new(
        process: Supervised,
        address: SocketAddr,
        endpoints: Endpoints,
        secrets_prefix: String,
        queues: Queues,
        secrets: PathBuf,
    ) -> Self {
        Self { process, address, endpoints, secrets_prefix, queues, secrets, bucket: None }
    }

    /// The same with the bucket of a store that is one.
    pub fn with_bucket_of(self, store: &StoreAddress) -> Self {
        let bucket = match store {
            StoreAddress::S3 { bucket, .. } => Some(bucket.clone()),
            StoreAddress::Folder(_) => None,
        };
        Self { bucket, ..self }
    }

    /// Waits until it listens, and gives it everything.
    pub async fn fill(&self) -> Result<(), ServicesError> {
        let begun = Instant::now();
        while TcpStream::connect(self.address).await.is_err() {
            if begun.elapsed() > START_LIMIT {
                return Err(ServicesError::Silent);
            }
            time::sleep(Duration::from_millis(10)).await;
        }
        self.load_secrets().await?;
        self.create_bucket().await
    }

    /// Gives it everything anew whenever it had to be started again. The queues forget with it: whoever ends it wants to
    /// see what becomes of a bundle whose services have lost everything.
    pub async fn keep_filled(self) {
        let mut deaths = self.process.deaths.clone();
        while deaths.changed().await.is_ok() {
            self.queues.forget();
            match self.fill().await {
                Ok(()) => tracing::info!("the secrets are there again"),
                Err(error) => tracing::error!("{}", logging::chain(&error)),
            }
        }
    }

    async fn create_bucket(&self) -> Result<(), ServicesError> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        self.endpoints.s3().create_bucket().bucket(bucket).send().await.map(drop).map_err(|error| {
            let reason = DisplayErrorContext(error).to_string();
            ServicesError::Refused { what: format!("the bucket {bucket}"), reason }
        })
    }

    async fn load_secrets(&self) -> Result<(), ServicesError> {
        let client = self.endpoints.secrets_manager();
        for (name, value) in Secrets::read(&self.secrets)?.iter() {
            let name = format!("{}{name}", self.secrets_prefix);
            let request = client.create_secret().name(&name).secret_string(value.to_string());
            request.send().await.map_err(|error| ServicesError::Refused {
                what: format!("the secret {name}"),
                reason: error.into_service_error().to_string(),
            })?;
        }
        Ok(())
    }
}
