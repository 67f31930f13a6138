//! The clients of AWS, made for a fast start.
//!
//! Lambda puts region and credentials into the environment, so no chain of providers is asked and no profile is read.
//! The certificates of AWS's services come from five authorities of its own; trusting those, and not the hundred and
//! fifty of the system's store, spares each cold start the reading of as many files, and the service a hundred and
//! forty-five others' mistakes. <https://www.amazontrust.com/repository/>

use std::time::Duration;

use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, retry::RetryConfig, timeout::TimeoutConfig};
use aws_smithy_http_client::tls::{self, TlsContext, TrustStore, rustls_provider::CryptoMode};
use aws_types::SdkConfig;

use crate::settings::AwsSettings;

const ROOTS: &str = include_str!("roots.pem");

/// Makes clients of AWS's services, which share one pool of connections.
#[derive(Debug, Clone)]
pub struct Aws {
    config: SdkConfig,
    settings: AwsSettings,
}

impl Aws {
    /// Clients with these settings. Opens no connection yet.
    pub fn new(settings: AwsSettings) -> Self {
        let AwsSettings { region, access_key_id, secret_access_key, session_token, .. } = settings.clone();
        let credentials = Credentials::new(access_key_id, secret_access_key, session_token, None, "environment");
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(2))
            .operation_attempt_timeout(Duration::from_secs(4))
            .operation_timeout(Duration::from_secs(10)) // below the gateway's 30 s, so that a client gets a 503
            .build();
        let tls = TlsContext::builder().with_trust_store(TrustStore::empty().with_pem_certificate(ROOTS)).build();
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(CryptoMode::AwsLc))
            .tls_context(tls.expect("the certificates are part of the program, and well-formed"))
            .build_https();
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(region))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .timeout_config(timeouts)
            .retry_config(RetryConfig::standard().with_max_attempts(3))
            .http_client(http)
            .build();
        Self { config, settings }
    }

    /// A client of DynamoDB.
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let mut config = aws_sdk_dynamodb::config::Builder::from(&self.config);
        config.set_endpoint_url(self.settings.dynamodb_endpoint.clone());
        aws_sdk_dynamodb::Client::from_conf(config.build())
    }

    /// A client of SQS.
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        let mut config = aws_sdk_sqs::config::Builder::from(&self.config);
        config.set_endpoint_url(self.settings.sqs_endpoint.clone());
        aws_sdk_sqs::Client::from_conf(config.build())
    }

    /// A client of S3, with time enough for large objects.
    pub fn s3(&self) -> aws_sdk_s3::Client {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(2))
            .operation_attempt_timeout(Duration::from_secs(120))
            .operation_timeout(Duration::from_secs(300))
            .build();
        let mut config = aws_sdk_s3::config::Builder::from(&self.config).timeout_config(timeouts);
        config.set_endpoint_url(self.settings.s3_endpoint.clone());
        // A stand-in has no name for each bucket.
        config.set_force_path_style(Some(self.settings.s3_endpoint.is_some()));
        aws_sdk_s3::Client::from_conf(config.build())
    }

    /// A client of Secrets Manager.
    pub fn secrets_manager(&self) -> aws_sdk_secretsmanager::Client {
        let mut config = aws_sdk_secretsmanager::config::Builder::from(&self.config);
        config.set_endpoint_url(self.settings.secrets_manager_endpoint.clone());
        aws_sdk_secretsmanager::Client::from_conf(config.build())
    }
}
