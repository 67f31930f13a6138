//! AWS clients, optimized for a fast start, and errors from their calls as sentences.
//!
//! Lambda sets the region and credentials in the environment, so no provider chain is needed. The certificates of AWS
//! services come from Amazon's five authorities. Trusting only these rather than the system's 150 makes a cold start
//! faster and rules out mistakes by any other authority. <https://www.amazontrust.com/repository/>

use std::{error::Error, fmt, fs, str::FromStr, time::Duration};

use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use aws_sdk_dynamodb::{
    config::{
        BehaviorVersion, HttpClient, Region, SharedAsyncSleep,
        retry::{RetryConfig, RetryPartition},
        timeout::TimeoutConfig,
    },
    error::{ProvideErrorMetadata, SdkError},
};
use aws_smithy_http_client::tls::{self, TlsContext, TrustStore, rustls_provider::CryptoMode};
use aws_types::SdkConfig;
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

pub use aws_sdk_dynamodb::config::{AsyncSleep, Sleep};
use base::{Environment, FromEnvironment, logging};

const ROOTS: &str = include_str!("roots.pem");

/// Creates AWS clients that share one pool of connections.
#[derive(Debug, Clone)]
pub struct Aws {
    config: SdkConfig,
    settings: AwsSettings,
    /// Whether each client has a separate retry budget.
    separate_retries: bool,
}

impl Aws {
    /// Clients with these settings. Opens no connection yet.
    pub fn new(settings: AwsSettings) -> Self {
        let roots = TrustStore::empty().with_pem_certificate(settings.authorities.0.clone());
        let tls = TlsContext::builder().with_trust_store(roots).build();
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(CryptoMode::AwsLc))
            .tls_context(tls.expect("a context does not parse its certificates"))
            .build_https();
        Self::over(settings, http)
    }

    /// Clients that use this HTTP client. A simulation responds to their requests within its own process.
    pub fn over(settings: AwsSettings, http: impl HttpClient + 'static) -> Self {
        let AwsSettings { region, access_key_id, secret_access_key, session_token, .. } = settings.clone();
        let credentials = Credentials::new(access_key_id, secret_access_key, session_token, None, "environment");
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(2))
            .operation_attempt_timeout(Duration::from_secs(4))
            .operation_timeout(Duration::from_secs(10)) // below the gateway's 30 s, so that a client gets a 503
            .build();
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(region))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .timeout_config(timeouts)
            .retry_config(RetryConfig::standard().with_max_attempts(3))
            .http_client(http)
            .build();
        Self { config, settings, separate_retries: false }
    }

    /// Clients for a simulated sandbox. They use these timers for timeouts and backoffs, since a sandbox can be frozen,
    /// and separate retry budgets. Otherwise, all clients of the process would share one budget, and one sandbox would
    /// use up the others' retries.
    pub fn in_sandbox(self, timers: impl AsyncSleep + 'static) -> Self {
        let config = self.config.into_builder().sleep_impl(SharedAsyncSleep::new(timers));
        Self { config: config.build(), separate_retries: true, ..self }
    }

    /// The retry budget of a new client; `None` for the one that the SDK shares.
    fn retries(&self) -> Option<RetryPartition> {
        self.separate_retries.then(|| RetryPartition::custom("separate").build())
    }

    /// A client of DynamoDB.
    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let mut config = aws_sdk_dynamodb::config::Builder::from(&self.config);
        config.set_endpoint_url(self.settings.dynamodb_endpoint.clone());
        config.set_retry_partition(self.retries());
        aws_sdk_dynamodb::Client::from_conf(config.build())
    }

    /// A client of SQS.
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        let mut config = aws_sdk_sqs::config::Builder::from(&self.config);
        config.set_endpoint_url(self.settings.sqs_endpoint.clone());
        config.set_retry_partition(self.retries());
        aws_sdk_sqs::Client::from_conf(config.build())
    }

    /// A client of S3, with enough time for large objects.
    pub fn s3(&self) -> aws_sdk_s3::Client {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(2))
            .operation_attempt_timeout(Duration::from_secs(120))
            .operation_timeout(Duration::from_secs(300))
            .build();
        let mut config = aws_sdk_s3::config::Builder::from(&self.config).timeout_config(timeouts);
        config.set_endpoint_url(self.settings.s3_endpoint.clone());
        config.set_retry_partition(self.retries());
        // An emulator does not have a host name per bucket.
        config.set_force_path_style(Some(self.settings.s3_endpoint.is_some()));
        aws_sdk_s3::Client::from_conf(config.build())
    }

    /// A client of Secrets Manager.
    pub fn secrets_manager(&self) -> aws_sdk_secretsmanager::Client {
        let mut config = aws_sdk_secretsmanager::config::Builder::from(&self.config);
        config.set_endpoint_url(self.settings.secrets_manager_endpoint.clone());
        config.set_retry_partition(self.retries());
        aws_sdk_secretsmanager::Client::from_conf(config.build())
    }
}

/// Region, credentials and endpoints of AWS: Lambda's environment variables, and the SDKs' variables for other
/// endpoints.
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html>
#[derive(Clone)]
pub struct AwsSettings {
    /// `AWS_REGION`.
    pub region: String,
    /// `AWS_ACCESS_KEY_ID`.
    pub access_key_id: String,
    /// `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: String,
    /// `AWS_SESSION_TOKEN`: always set on Lambda.
    pub session_token: Option<String>,
    /// `AWS_ENDPOINT_URL_DYNAMODB`, for an endpoint outside of AWS.
    pub dynamodb_endpoint: Option<String>,
    /// `AWS_ENDPOINT_URL_SQS`, for an endpoint outside of AWS.
    pub sqs_endpoint: Option<String>,
    /// `AWS_ENDPOINT_URL_SECRETS_MANAGER`, for an endpoint outside of AWS.
    pub secrets_manager_endpoint: Option<String>,
    /// `AWS_ENDPOINT_URL_S3`, for an endpoint outside of AWS.
    pub s3_endpoint: Option<String>,
    /// The trusted authorities of these endpoints: Amazon's, or those in the file that `AWS_CA_BUNDLE` names.
    pub authorities: Authorities,
}

/// The certificates of authorities, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorities(String);

impl Default for Authorities {
    /// Amazon's authorities.
    fn default() -> Self {
        Self(ROOTS.to_owned())
    }
}

impl FromStr for Authorities {
    type Err = String;

    /// Reads the file with this name. The SDK would panic on an unreadable certificate.
    fn from_str(file: &str) -> Result<Self, Self::Err> {
        let pem = fs::read_to_string(file).map_err(|error| format!("a file that cannot be found or read: {error}"))?;
        let mut roots = RootCertStore::empty();
        for (number, certificate) in (1..).zip(CertificateDer::pem_slice_iter(pem.as_bytes())) {
            let fault = |error: &dyn fmt::Display| format!("a file whose certificate {number} cannot be read: {error}");
            roots.add(certificate.map_err(|error| fault(&error))?).map_err(|error| fault(&error))?;
        }
        if roots.is_empty() { Err("a file without certificates".to_owned()) } else { Ok(Self(pem)) }
    }
}

impl fmt::Debug for AwsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsSettings").field("region", &self.region).finish_non_exhaustive()
    }
}

impl FromEnvironment for AwsSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let [region, access_key_id, secret_access_key] =
            ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| environment.required(name));
        let authorities = environment.parsed("AWS_CA_BUNDLE", Authorities::default());
        Some(Self {
            region: region?,
            access_key_id: access_key_id?,
            secret_access_key: secret_access_key?,
            session_token: environment.optional("AWS_SESSION_TOKEN"),
            dynamodb_endpoint: environment.optional("AWS_ENDPOINT_URL_DYNAMODB"),
            sqs_endpoint: environment.optional("AWS_ENDPOINT_URL_SQS"),
            secrets_manager_endpoint: environment.optional("AWS_ENDPOINT_URL_SECRETS_MANAGER"),
            s3_endpoint: environment.optional("AWS_ENDPOINT_URL_S3"),
            authorities: authorities?,
        })
    }
}

/// An error from a call to AWS: AWS's code and message, or why there was no response. The SDK would display an unknown
/// error in Rust's debug format, with the whole response.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct CallError(String);

impl CallError {
    /// The error as a sentence.
    pub fn of<E: ProvideErrorMetadata + Error + 'static>(error: &SdkError<E>) -> Self {
        let SdkError::ServiceError(response) = error else { return Self(logging::chain(error)) };
        Self(match (response.err().code(), response.err().message()) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(text), None) | (None, Some(text)) => text.to_owned(),
            (None, None) => format!("status {}", response.raw().status().as_u16()),
        })
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{
        config::http::HttpResponse,
        error::{ConnectorError, ErrorMetadata},
        operation::get_item::GetItemError,
    };

    use super::*;

    #[test]
    fn authorities_are_read_from_a_file_that_has_some() {
        let of = |file: &str| format!("{}/src/aws/{file}", env!("CARGO_MANIFEST_DIR")).parse::<Authorities>();
        assert_eq!(of("roots.pem"), Ok(Authorities::default()));
        assert_eq!(of("mod.rs.none").map_err(|fault| fault.contains("cannot be found or read")), Err(true));
        assert_eq!(of("../lib.rs"), Err("a file without certificates".to_owned()));
    }

    /// Each of these certificates would make the first client panic.
    #[test]
    fn an_unreadable_certificate_is_a_fault_with_its_number() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("bundle.pem");
        let of = |content: &str| {
            fs::write(&file, content).expect("written");
            file.to_str().expect("a path of text").parse::<Authorities>()
        };
        let pem = |base64: &str| format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n");
        for broken in [pem("no base64!"), pem("bm8gY2VydGlmaWNhdGU="), "-----BEGIN CERTIFICATE-----\nbm8=\n".to_owned()]
        {
            for (before, number) in [("", 1), (ROOTS, 6)] {
                let fault = of(&format!("{before}{broken}")).expect_err(&broken);
                assert!(fault.starts_with(&format!("a file whose certificate {number} cannot be read: ")), "{fault}");
            }
        }
        assert!(of(&pem("no base64!").replace("CERTIFICATE", "PUBLIC KEY")).is_err());
        assert_eq!(of(ROOTS), Ok(Authorities::default()));
    }

    fn answered(metadata: ErrorMetadata) -> String {
        let raw = HttpResponse::new(500.try_into().expect("a status"), "the whole answer".into());
        CallError::of(&SdkError::service_error(GetItemError::generic(metadata), raw)).to_string()
    }

    #[test]
    fn an_error_of_aws_is_a_sentence_without_debug_format() {
        let code = || ErrorMetadata::builder().code("InternalServerError");
        assert_eq!(answered(code().message("try again").build()), "InternalServerError: try again");
        assert_eq!(answered(code().build()), "InternalServerError");
        assert_eq!(answered(ErrorMetadata::builder().build()), "status 500");
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let unreachable: SdkError<GetItemError> = SdkError::dispatch_failure(ConnectorError::io(refused.into()));
        let said = CallError::of(&unreachable).to_string();
        assert!(said.ends_with("connection refused") && !said.contains(['{', '(']), "{said}");
    }
}
