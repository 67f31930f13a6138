//! A run of the canary: gets a token, publishes an event over the public API, and waits for its arrival.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT as USER_AGENT_HEADER},
};
use hyper::body::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use url::Url;

use crate::canary::{
    arrivals::Arrivals,
    secret::{CanarySecret, SECRET},
};
use crate::events::{catalogue, type_details};
use base::metric::{Metrics, Name, Number};
use base::{EventId, SharedClock, logging, pause};
use outbound::{AttemptError, Limits, Outbound, USER_AGENT, addresses::AddressRules};
use storage::{SecretError, SecretText, Secrets, Table, TableError};

/// A request's limits. `whole` exceeds the gate's deadline, and a response is at most a few kilobytes long.
const LIMITS: Limits = Limits { connect: Duration::from_secs(5), whole: Duration::from_secs(15), body: 64 * 1024 };
/// The first pause between two polls for the arrival: a healthy arrival takes a tenth of a second.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two polls.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The longest wait for the arrival. Cold starts take a few seconds; beyond this limit, the deliveries of every webhook
/// are probably late.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(30);

/// The canary.
pub struct Canary {
    secrets: Secrets,
    arrivals: Arrivals,
    outbound: Outbound,
    addresses: Addresses,
    environment: String,
    clock: SharedClock,
}

/// The deployment's public addresses.
struct Addresses {
    base: String,
    auth: String,
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the canary's secret could not be read")]
    Secret(#[from] SecretError),
    #[error("the canary got no token")]
    Token(#[source] RequestError),
    #[error("the canary's event was not published")]
    Publish(#[source] RequestError),
    #[error("the canary's webhook is removed or disabled; run `waypost-admin provision` to create it again")]
    NoWebhook,
    #[error("the canary's event did not arrive in time")]
    Late,
    #[error("the canary event's arrival could not be read from the table")]
    Table(#[from] TableError),
}

impl Failure {
    /// The step that failed, as a dimension of the metric.
    fn step(&self) -> &'static str {
        match self {
            Self::Secret(_) => "secret",
            Self::Token(_) => "token",
            Self::Publish(_) | Self::NoWebhook => "publish",
            Self::Late | Self::Table(_) => "arrival",
        }
    }
}

/// Why a request failed. The response body is left out, since it may contain a token.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("the address is malformed")]
    Address,
    #[error(transparent)]
    Attempt(#[from] AttemptError),
    #[error("the answer was {0}")]
    Status(StatusCode),
    #[error("the answer has an unexpected form")]
    Form,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishAnswer {
    event_identifier: EventId,
    deliveries: Vec<serde::de::IgnoredAny>,
}

impl Canary {
    /// A canary for the deployment with these public addresses of the API and the token issuer.
    pub fn new(
        secrets: Secrets,
        table: Table,
        rules: AddressRules,
        base_url: &str,
        auth_url: &str,
        environment: &str,
        clock: SharedClock,
    ) -> Self {
        Self {
            secrets,
            arrivals: Arrivals(table),
            outbound: Outbound::within(rules).limited_to(LIMITS),
            addresses: Addresses { base: base_url.to_owned(), auth: auth_url.to_owned() },
            environment: environment.to_owned(),
            clock,
        }
    }

    /// Sends an event through the deployment and publishes the outcome as a metric. Without the canary's secret, it
    /// only logs a warning.
    pub async fn run(&self) {
        let secret = match self.secrets.read::<CanarySecret>(SECRET).await {
            Err(SecretError::Missing { .. }) => {
                tracing::warn!("the canary is not provisioned, so it does nothing; run `waypost-admin provision`");
                return;
            }
            read => read.map_err(Failure::from),
        };
        let passed = match secret {
            Ok(secret) => self.pass(&secret).await,
            Err(failure) => Err(failure),
        };
        match passed {
            Ok(took) => self.publish(&[], Number::millis(Name::CanaryArrivalAfter, &[took])),
            Err(failure) => {
                tracing::error!(step = failure.step(), error = logging::chain(&failure), "the canary's run failed");
                self.publish(&[failure.step()], Number::count(Name::CanaryFailures, 1));
            }
        }
    }

    fn publish(&self, by: &[&str], number: Number) {
        Metrics { environment: &self.environment, by, numbers: &[number], at: self.clock.now() }.publish();
    }

    /// Publishes an event and returns the time from the request to the arrival.
    async fn pass(&self, secret: &CanarySecret) -> Result<Duration, Failure> {
        let token = self.token(secret).await.map_err(Failure::Token)?;
        let began = self.clock.now();
        let published = self.publish_event(secret, &token).await.map_err(Failure::Publish)?;
        if published.deliveries.is_empty() {
            return Err(Failure::NoWebhook);
        }
        let mut wait = FIRST_PAUSE;
        loop {
            if let Some(arrived) = self.arrivals.of(&published.event_identifier).await? {
                return Ok(arrived.since(began));
            }
            if self.clock.now().since(began) >= ARRIVAL_LIMIT {
                return Err(Failure::Late);
            }
            pause(wait).await;
            wait = (wait * 3 / 2).min(LONGEST_PAUSE);
        }
    }

    async fn token(&self, secret: &CanarySecret) -> Result<SecretText, RequestError> {
        let credentials = BASE64_STANDARD.encode(format!("{}:{}", secret.client_id, secret.client_secret.expose()));
        let url = format!("{}/oauth2/token", self.addresses.auth);
        let authorization = format!("Basic {credentials}");
        let form = "grant_type=client_credentials".to_owned();
        let media_type = "application/x-www-form-urlencoded";
        let answer: TokenAnswer = self.post(&url, &authorization, media_type, form, StatusCode::OK).await?;
        Ok(SecretText::new(answer.access_token))
    }

    async fn publish_event(&self, secret: &CanarySecret, token: &SecretText) -> Result<PublishAnswer, RequestError> {
        let base = &self.addresses.base;
        let entity = &secret.managing_entity_identifier;
        let url = format!("{base}/api/managing-entity/{entity}/webhook/event");
        let authorization = format!("Bearer {}", token.expose());
        // An ordinary type, which customers publish too. A strict deployment refuses data that does not conform.
        let kind = catalogue::example();
        let sample = type_details::samples(kind).next().expect("the build refuses a type without samples");
        let event = json!({ "type": kind.value, "data": sample }).to_string();
        self.post(&url, &authorization, "application/json", event, StatusCode::ACCEPTED).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        url: &str,
        authorization: &str,
        media_type: &'static str,
        body: String,
        expected: StatusCode,
    ) -> Result<T, RequestError> {
        let url = Url::parse(url).map_err(|_| RequestError::Address)?;
        let headers: [(HeaderName, HeaderValue); 4] = [
            (ACCEPT, HeaderValue::from_static("application/json")),
            (AUTHORIZATION, HeaderValue::from_str(authorization).map_err(|_| RequestError::Form)?),
            (CONTENT_TYPE, HeaderValue::from_static(media_type)),
            (USER_AGENT_HEADER, HeaderValue::from_static(USER_AGENT)),
        ];
        let answer = self.outbound.send(Method::POST, &url, &headers, Bytes::from(body)).await?;
        if answer.status != expected {
            return Err(RequestError::Status(answer.status));
        }
        serde_json::from_slice(&answer.body).map_err(|_| RequestError::Form)
    }
}
