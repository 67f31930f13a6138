//! Queues and secrets: ministack, which stands for SQS and Secrets Manager, and for S3 where geo-IP databases are to be
//! published in a bucket. ministack keeps everything in memory, so after every start it is given the queues and the secrets
//! anew, as the files have them at that moment: an operator's program may have changed a file. Messages that are lost with it
//! are only hints, which the sweep repeats.
//!
//! ministack checks no credentials. So it listens at a socket in a private folder, and [`relay`] stands before it.

pub mod relay;

use std::{
    fs::{self, DirBuilder},
    io,
    net::SocketAddr,
    os::unix::{
        fs::DirBuilderExt,
        net::{SocketAddr as UnixAddress, UnixStream},
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use aws_sdk_sqs::types::QueueAttributeName;
use base::{Random, logging, random};
use geo_ip::StoreAddress;
use serde_json::json;
use storage::aws::CallError;
use template::Queue;
use tokio::time;

use crate::{
    aws::{ACCOUNT, Endpoints, REGION},
    processes::{ProcessGroup, Supervised},
    secrets::{Secrets, SecretsError},
};

/// How long ministack may take to listen. An idle machine takes a quarter of a second.
const START_LIMIT: Duration = Duration::from_secs(20);

/// ministack, and its content.
pub struct Ministack {
    process: Supervised,
    socket: PathBuf,
    endpoints: Endpoints,
    secrets_prefix: String,
    queues: Vec<Queue>,
    secrets: PathBuf,
    bucket: Option<String>,
}

/// Why there are no queues or secrets.
#[derive(Debug, thiserror::Error)]
pub enum MinistackError {
    #[error("ministack does not answer; see logs/ministack.log in the data folder")]
    Silent,
    #[error("the secrets cannot be loaded")]
    Secrets(#[from] SecretsError),
    #[error("ministack refused {what}: {reason}")]
    Refused {
        /// A queue, a secret or a bucket, by name.
        what: String,
        reason: String,
    },
}

/// A queue's address at ministack.
pub fn queue_url(services: SocketAddr, queue: &str) -> String {
    format!("http://{services}/{ACCOUNT}/{queue}")
}

/// A queue's ARN at ministack.
pub fn queue_arn(queue: &str) -> String {
    format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}")
}

/// The socket at which ministack listens, in the private scratch folder. If that path is too long for a socket's address, it
/// is in a private temporary folder. The socket and that folder are removed when this is dropped.
pub struct Socket {
    pub path: PathBuf,
    folder: Option<PathBuf>,
}

impl Socket {
    /// Chooses a path that no other run has, and makes the temporary folder if it needs one. The ministack of a run that
    /// ended a moment ago may still begin to listen, and would be taken for this run's if they had one path.
    pub fn new(scratch: &Path, random: &dyn Random) -> io::Result<Self> {
        let run = random::alphanumeric(random, 16);
        let path = scratch.join(format!("services-{run}.sock"));
        if UnixAddress::from_pathname(&path).is_ok() {
            return Ok(Self { path, folder: None });
        }
        let folder = std::env::temp_dir().join(format!("waypost-{run}"));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self { path: folder.join("services.sock"), folder: Some(folder) })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = match &self.folder {
            Some(folder) => fs::remove_dir_all(folder),
            None => fs::remove_file(&self.path),
        };
    }
}

/// Starts ministack, without content, and keeps it running. `address` is the relay's.
pub fn start(
    group: &Arc<ProcessGroup>,
    program: &Path,
    scratch: &Path,
    socket: &Path,
    address: SocketAddr,
) -> Supervised {
    let (scratch, bind) = (scratch.to_owned(), format!("unix:{}", socket.display()));
    let process = group.keep_running("ministack", program, move |command| {
        command
            .args(["ministack.app:app", "--bind", &bind])
            // Without worker processes, and without closing the connections that the relay keeps.
            .args(["--workers", "0", "--keep-alive", "3600", "--log-level", "WARNING"])
            .current_dir(&scratch)
            .env("GATEWAY_PORT", address.port().to_string())
            .env("SERVICES", "sqs,secretsmanager,s3")
            .env("LOG_LEVEL", "WARNING")
            .env("TMPDIR", &scratch)
            // Else it opens ports for these, and looks for containers of earlier runs.
            .env("IOT_MTLS_ENABLED", "0")
            .env("SFTP_ENABLED", "0")
            .env("DOCKER_HOST", "unix:///nonexistent");
    });
    process.want();
    process
}

impl Ministack {
    /// ministack with these queues, and the secrets of a folder.
    pub fn new(
        process: Supervised,
        socket: PathBuf,
        endpoints: Endpoints,
        secrets_prefix: String,
        queues: &[Queue],
        secrets: PathBuf,
    ) -> Self {
        let mut queues = queues.to_vec();
        // A dead-letter queue must exist before the queue that names it.
        queues.sort_by_key(|queue| queue.dead_letter.is_some());
        Self { process, socket, endpoints, secrets_prefix, queues, secrets, bucket: None }
    }

    /// The same with a bucket, if the store of geo-IP databases is one.
    pub fn with_bucket_of(self, store: &StoreAddress) -> Self {
        let bucket = match store {
            StoreAddress::S3 { bucket, .. } => Some(bucket.clone()),
            StoreAddress::Folder(_) => None,
        };
        Self { bucket, ..self }
    }

    /// Waits until ministack listens, and gives it its content.
    pub async fn fill(&self) -> Result<(), MinistackError> {
        let begun = Instant::now();
        while UnixStream::connect(&self.socket).is_err() {
            if begun.elapsed() > START_LIMIT {
                return Err(MinistackError::Silent);
            }
            time::sleep(Duration::from_millis(10)).await;
        }
        // Secrets first: a provider whose secret is missing counts as taken away, while a missing queue is only an outage.
        self.load_secrets().await?;
        self.create_queues().await?;
        self.create_bucket().await
    }

    /// Gives ministack its content anew each time that it had to be started again.
    pub async fn keep_filled(self) {
        let mut deaths = self.process.deaths.clone();
        while deaths.changed().await.is_ok() {
            match self.fill().await {
                Ok(()) => tracing::info!("queues and secrets are there again"),
                Err(error) => tracing::error!("{}", logging::chain(&error)),
            }
        }
    }

    async fn create_queues(&self) -> Result<(), MinistackError> {
        let client = self.endpoints.sqs();
        for queue in &self.queues {
            let mut request = client.create_queue().queue_name(&queue.logical_id);
            for (name, value) in queue.attributes() {
                request = request.attributes(QueueAttributeName::from(name), value);
            }
            if let Some((dead_letters, receives)) = &queue.dead_letter {
                let policy = json!({ "deadLetterTargetArn": queue_arn(dead_letters), "maxReceiveCount": receives });
                request = request.attributes(QueueAttributeName::RedrivePolicy, policy.to_string());
            }
            request.send().await.map_err(|error| MinistackError::Refused {
                what: format!("the queue {}", queue.logical_id),
                reason: CallError::of(&error).to_string(),
            })?;
        }
        Ok(())
    }

    async fn create_bucket(&self) -> Result<(), MinistackError> {
        let Some(bucket) = &self.bucket else { return Ok(()) };
        self.endpoints.s3().create_bucket().bucket(bucket).send().await.map(drop).map_err(|error| {
            let reason = CallError::of(&error).to_string();
            MinistackError::Refused { what: format!("the bucket {bucket}"), reason }
        })
    }

    async fn load_secrets(&self) -> Result<(), MinistackError> {
        let client = self.endpoints.secrets_manager();
        for (name, value) in Secrets::read(&self.secrets)?.iter() {
            let name = format!("{}{name}", self.secrets_prefix);
            let request = client.create_secret().name(&name).secret_string(value.to_string());
            request.send().await.map_err(|error| MinistackError::Refused {
                what: format!("the secret {name}"),
                reason: CallError::of(&error).to_string(),
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base::SystemRandom;

    use super::*;

    #[test]
    fn no_two_runs_have_one_socket() {
        let scratch = tempfile::tempdir().expect("a folder");
        let socket = || Socket::new(scratch.path(), &SystemRandom).expect("nothing is made");
        let (former, next) = (socket(), socket());
        assert_ne!(former.path, next.path);
        assert_eq!(former.path.parent(), Some(scratch.path()));
        fs::write(&next.path, "").expect("written");
        let path = next.path.clone();
        drop(next);
        assert!(!path.exists(), "it goes with the run");
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_has_a_short_one_in_its_place() {
        let long = Socket::new(Path::new(&format!("/data/{}", "x".repeat(120))), &SystemRandom).expect("a folder");
        assert!(UnixAddress::from_pathname(&long.path).is_ok());
        let folder = long.path.parent().expect("a folder").to_owned();
        assert!(folder.is_dir());
        drop(long);
        assert!(!folder.exists(), "it goes with the run");
    }
}
