//! What a function has once it has started: settings, clock, randomness, the table, the keys; and how it serves.

use std::{fmt, future::Future, sync::Arc};

use futures::FutureExt;
use lambda_http::{Adapter, Body, Request, Service as _, request::LambdaRequest, service_fn};
use lambda_runtime::LambdaEvent;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, DeserializeOwned, IgnoredAny},
};
use serde_json::value::RawValue;

use crate::settings::Settings;
use auth::{
    keys::{KeyCache, PublishedKeys},
    revocations::{RevocationList, Revocations},
    token::Audience,
    verifier::Verifier,
};
use base::{
    clock::{SharedClock, SystemClock},
    environment::{self, FromEnvironment, SettingsError},
    logging::{self, LogSettings},
    random::{Random, SharedRandom, SystemRandom},
};
use gate::{Admitted, Call, Checks, Endpoint, Gate, Reply, gate::Handler};
use problem::Problem;
use storage::{
    aws::{Aws, AwsSettings},
    secrets::{SecretSettings, Secrets},
    table::Table,
};

/// A delivery makes and drops some thousand small things: the system's allocator took a quarter of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A running function.
pub struct Service {
    settings: Settings,
    clock: SharedClock,
    random: SharedRandom,
    aws: Aws,
    table: Table,
    tokens: Arc<Verifier>,
}

/// Why a function could not start or go on.
#[derive(thiserror::Error)]
pub enum StartError {
    /// The environment is incomplete.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The runtime gave up.
    #[error("the Lambda runtime ended: {0}")]
    Runtime(lambda_runtime::Error),
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f) // what `main` prints: a sentence for whoever operates it
    }
}

impl Service {
    /// Starts: reads the environment and makes the clients, once per cold start. Beside the service it gives the settings
    /// of which the caller names the type.
    pub async fn start<S: FromEnvironment>() -> Result<(Self, S), StartError> {
        let (log, aws, settings, own) = environment::read::<(LogSettings, AwsSettings, Settings, S)>()?;
        logging::start(&log.level);
        let aws = Aws::new(aws);
        let table = Table::new(aws.dynamodb(), &settings.table_name);
        let clock: SharedClock = Arc::new(SystemClock);
        let keys = KeyCache::new(PublishedKeys::new(table.clone()), clock.clone());
        let revocations = Revocations::new(RevocationList::new(table.clone()), clock.clone());
        let audience = Audience { issuer: settings.auth_url.clone(), audience: settings.base_url.clone() };
        let tokens = Arc::new(Verifier::new(keys, revocations, audience, clock.clone()));
        let random = Arc::new(SystemRandom);
        Ok((Self { settings, clock, random, aws, table, tokens }, own))
    }

    /// What every function needs to know.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whom tokens are from and for.
    pub fn audience(&self) -> &Audience {
        self.tokens.audience()
    }

    /// The clock.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// The dice.
    pub fn random(&self) -> &dyn Random {
        &*self.random
    }

    /// The dice, to be kept.
    pub fn shared_random(&self) -> SharedRandom {
        self.random.clone()
    }

    /// The clients of AWS.
    pub fn aws(&self) -> &Aws {
        &self.aws
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The secrets below this prefix.
    pub fn secrets(&self, settings: SecretSettings) -> Secrets {
        Secrets::connect(&self.aws, settings.prefix)
    }

    /// The clock and the dice, to be kept.
    pub fn clock_and_random(&self) -> (SharedClock, SharedRandom) {
        (self.clock.clone(), self.random.clone())
    }

    /// The gate before an endpoint of this function.
    fn gate(&self) -> Gate {
        Gate {
            tokens: self.tokens.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            base_url: self.settings.base_url.clone(),
            environment: self.settings.environment.clone(),
        }
    }

    /// The keys that vouch for tokens.
    pub fn keys(&self) -> &KeyCache {
        self.tokens.keys()
    }

    /// What is revoked.
    pub fn revocations(&self) -> &Revocations {
        self.tokens.revocations()
    }

    /// What verifies tokens.
    pub fn tokens(&self) -> &Arc<Verifier> {
        &self.tokens
    }

    /// Serves an endpoint until Lambda ends the process.
    pub async fn serve<C, F, A>(self, endpoint: Endpoint<C>, handler: F) -> Result<(), StartError>
    where
        C: Admitted,
        F: Fn(C) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Reply, Problem>> + Send + 'static,
    {
        let reads_tokens = endpoint.reads_tokens();
        self.serve_boxed(reads_tokens, endpoint.checks(), admitting(handler)).await
    }

    /// Serves an endpoint and the events of a schedule with one function, until Lambda ends the process. What comes over HTTP
    /// has a request context, and anything else is the schedule, whatever it says: who may send it is a matter of IAM.
    pub async fn serve_with_schedule<F, A, R, X, J, B>(
        self,
        endpoint: Endpoint,
        handler: F,
        job: J,
    ) -> Result<(), StartError>
    where
        F: Fn(Call) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Reply, Problem>> + Send + 'static,
        R: Serialize + Send + 'static,
        X: std::error::Error + Send + Sync + 'static,
        J: Fn() -> B + Clone + Send + Sync + 'static,
        B: Future<Output = Result<R, X>> + Send + 'static,
    {
        if endpoint.reads_tokens() {
            self.tokens.warm_up().await;
        }
        let (gate, handler, endpoint) = (Arc::new(self.gate()), admitting(handler), endpoint.checks());
        let http = Adapter::from(service_fn(move |request: Request| {
            let (gate, handler) = (gate.clone(), handler.clone());
            async move {
                let response: http::Response<Body> = gate.handle(endpoint, &*handler, request).await;
                Ok::<_, lambda_runtime::Error>(response)
            }
        }));
        let serve = move |event: LambdaEvent<HttpOrSchedule>| {
            let (mut http, job) = (http.clone(), job.clone());
            async move {
                match event.payload {
                    HttpOrSchedule::Http(request) => {
                        http.call(LambdaEvent::new(*request, event.context)).await.map(Answered::Http)
                    }
                    HttpOrSchedule::Schedule => scheduled(job()).await.map(Answered::Schedule),
                }
            }
        };
        lambda_runtime::run_concurrent(service_fn(serve)).await.map_err(StartError::Runtime)
    }

    /// Not generic, so that the runtime is compiled once, in this library, and not in each function.
    async fn serve_boxed(self, reads_tokens: bool, endpoint: Checks, handler: Arc<Handler>) -> Result<(), StartError> {
        if reads_tokens {
            self.tokens.warm_up().await;
        }
        let gate = Arc::new(self.gate());
        let serve = move |request: Request| {
            let (gate, handler) = (gate.clone(), handler.clone());
            async move {
                let response: http::Response<Body> = gate.handle(endpoint, &*handler, request).await;
                Ok::<_, std::convert::Infallible>(response)
            }
        };
        lambda_http::run_concurrent(service_fn(serve)).await.map_err(StartError::Runtime)
    }

    /// Serves a trigger until Lambda ends the process.
    pub async fn serve_events<E, R, F, A>(handler: F) -> Result<(), StartError>
    where
        E: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        F: Fn(E) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = R> + Send + 'static,
    {
        let serve = move |event: LambdaEvent<E>| {
            let answer = handler(event.payload);
            async move { Ok::<R, lambda_runtime::Error>(answer.await) }
        };
        lambda_runtime::run_concurrent(service_fn(serve)).await.map_err(StartError::Runtime)
    }

    /// Serves events that come neither over HTTP nor from a schedule, until Lambda ends the process. What fails is tried again
    /// by Lambda or by whoever sent the event.
    pub async fn serve_invocations<E, R, X, F, A>(handler: F) -> Result<(), StartError>
    where
        E: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        X: std::error::Error + Send + Sync + 'static,
        F: Fn(E) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<R, X>> + Send + 'static,
    {
        let serve = move |event: LambdaEvent<E>| {
            let outcome = handler(event.payload);
            async move {
                outcome.await.map_err(|error| {
                    let error = logging::chain(&error);
                    tracing::error!(error, "an event could not be handled");
                    lambda_runtime::Error::from(error) // with its causes, since it goes into Lambda's own record
                })
            }
        };
        lambda_runtime::run_concurrent(service_fn(serve)).await.map_err(StartError::Runtime)
    }

    /// Does a job at each event of a schedule, whatever the event says, until Lambda ends the process.
    pub async fn serve_schedule<R, X, F, A>(job: F) -> Result<(), StartError>
    where
        R: Serialize + Send + 'static,
        X: std::error::Error + Send + Sync + 'static,
        F: Fn() -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<R, X>> + Send + 'static,
    {
        let serve = move |_: LambdaEvent<IgnoredAny>| scheduled(job());
        lambda_runtime::run_concurrent(service_fn(serve)).await.map_err(StartError::Runtime)
    }
}

/// A handler as the gate calls it.
fn admitting<C, F, A>(handler: F) -> Arc<Handler>
where
    C: Admitted,
    F: Fn(C) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Reply, Problem>> + Send + 'static,
{
    Arc::new(move |call, entity| match C::admit(call, entity) {
        Ok(admitted) => handler(admitted).boxed(),
        Err(problem) => std::future::ready(Err(problem)).boxed(),
    })
}

/// Does a scheduled job, and tells in the log why it failed.
async fn scheduled<R, X>(job: impl Future<Output = Result<R, X>>) -> Result<R, lambda_runtime::Error>
where
    X: std::error::Error + Send + Sync + 'static,
{
    job.await.map_err(|error| {
        tracing::error!(error = %logging::chain(&error), "the scheduled job failed");
        lambda_runtime::Error::from(error)
    })
}

/// An event of a function that is called in two ways.
enum HttpOrSchedule {
    Http(Box<LambdaRequest>),
    Schedule,
}

impl<'de> Deserialize<'de> for HttpOrSchedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Marked {
            #[serde(rename = "requestContext")]
            request_context: Option<IgnoredAny>,
        }
        let event = Box::<RawValue>::deserialize(deserializer)?;
        match serde_json::from_str(event.get()) {
            Ok(Marked { request_context: Some(_) }) => serde_json::from_str(event.get())
                .map(|request| Self::Http(Box::new(request)))
                .map_err(de::Error::custom),
            _ => Ok(Self::Schedule),
        }
    }
}

/// The answer to either.
#[derive(Serialize)]
#[serde(untagged)]
enum Answered<H, R> {
    Http(H),
    Schedule(R),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_request_context_came_over_http_and_anything_else_is_the_schedule() {
        for (event, http) in [
            (include_str!("../../../events/publish-event.json"), true),
            (include_str!("../../../events/sweep-deliveries.json"), false),
            ("{}", false),
            ("null", false),
            (r#""text""#, false),
            (r#"{"requestContext": null}"#, false),
        ] {
            let read: HttpOrSchedule = serde_json::from_str(event).expect("an event");
            assert_eq!(matches!(read, HttpOrSchedule::Http(_)), http, "{event}");
        }
    }
}
