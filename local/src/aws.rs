//! The AWS stand-ins' addresses: as variables for the functions, and as clients for this process.

use std::net::SocketAddr;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{self, SharedCredentialsProvider};
use base::{Random, random};

/// The region that all stand-ins use.
pub const REGION: &str = "us-east-1";
/// The account that all stand-ins use.
pub const ACCOUNT: &str = "000000000000";

/// A queue's URL on the server for queues and secrets.
pub fn queue_url(services: SocketAddr, queue: &str) -> String {
    format!("http://{services}/{ACCOUNT}/{queue}")
}

/// The credentials that a caller uses to sign its requests to a stand-in.
#[derive(Clone)]
pub struct Credentials {
    /// The access key id, which identifies the caller.
    pub access_key_id: String,
    /// The key for computing signatures.
    pub secret_access_key: String,
}

impl Credentials {
    /// New random credentials for one run.
    pub fn fresh(random: &dyn Random) -> Self {
        Self {
            access_key_id: format!("LOCAL{}", random::alphanumeric(random, 43)),
            secret_access_key: random::alphanumeric(random, 43),
        }
    }
}

/// The stand-ins' addresses, and a caller's credentials.
#[derive(Clone)]
pub struct Endpoints {
    pub credentials: Credentials,
    /// The address of DynamoDB.
    pub table: String,
    /// The address of SQS and Secrets Manager, and of S3 if its requests are forwarded to another server.
    pub services: String,
}

impl Endpoints {
    /// The variables that direct an AWS SDK to the stand-ins.
    pub fn variables(&self) -> [(&'static str, &str); 7] {
        [
            ("AWS_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", &self.credentials.access_key_id),
            ("AWS_SECRET_ACCESS_KEY", &self.credentials.secret_access_key),
            ("AWS_ENDPOINT_URL_DYNAMODB", &self.table),
            ("AWS_ENDPOINT_URL_SQS", &self.services),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", &self.services),
            ("AWS_ENDPOINT_URL_S3", &self.services),
        ]
    }

    /// These endpoints with a function's credentials, if it has separate ones.
    pub fn of(&self, function: Option<&Credentials>) -> Self {
        Self { credentials: function.unwrap_or(&self.credentials).clone(), ..self.clone() }
    }

    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        aws_sdk_dynamodb::Client::new(&self.config(&self.table))
    }

    pub fn secrets_manager(&self) -> aws_sdk_secretsmanager::Client {
        aws_sdk_secretsmanager::Client::new(&self.config(&self.services))
    }

    fn config(&self, endpoint: &str) -> SdkConfig {
        let Credentials { access_key_id, secret_access_key } = &self.credentials;
        let credentials = config::Credentials::new(access_key_id, secret_access_key, None, None, "local");
        SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static(REGION))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .endpoint_url(endpoint)
            .build()
    }
}
