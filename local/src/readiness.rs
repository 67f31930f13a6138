//! Waits until the whole service answers: every function is called once, through the gateway where it has a route, and the
//! demo application gets a token and uses it. So no client waits for a function's first request. Functions that come by a
//! schedule alone, and seldom, are left out. A function of the audit trail is ready when it asks for its first invocation: a
//! call without a token would stand in the trail as a refusal that no client met.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use gate::endpoints;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, StatusCode,
    body::Bytes,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use operator::applications::Credentials;
use serde_json::Value;
use template::{Function, Route};
use tokio::{task::JoinSet, time};

use crate::{invoke::Invoker, settings::SELDOM};

/// The time limit. An idle machine takes a second.
const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
/// So many deaths before the first answer, and the function is given up.
const HOPELESS: u64 = 3;

/// An event of the bus for an entity without webhooks. It is the same at every start, so that it is kept once.
const EVENT_FOR_NOBODY: &str =
    r#"{"id":"are-you-ready","detail":{"type":"booking.created","managingEntityIdentifier":"local:nobody","data":{}}}"#;

/// The step that Secrets Manager takes when a rotation is configured: the version does not exist, so nothing is tested.
const ROTATION_OF_NOTHING: &str =
    r#"{"Step":"testSecret","SecretId":"waypost/local/signing-key","ClientRequestToken":"readiness"}"#;

/// A part of the service does not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// A function does not answer.
    #[error("{function} does not answer ({last}); see logs/{function}.log in the data folder")]
    Function {
        function: String,
        /// The last error or status.
        last: String,
    },
    /// The demo application gets no token, or the token opens nothing.
    #[error("the demo application cannot use the service ({last}); see the logs in the data folder")]
    Application {
        /// The last error or status.
        last: String,
    },
}

/// Whether a function comes by a schedule alone, and not soon: no client waits for it, and the canary would wait for the
/// queue, which nothing reads yet.
fn is_seldom(function: &Function) -> bool {
    function.routes.is_empty() && function.schedule.as_ref().is_some_and(|trigger| trigger.every >= SELDOM)
}

#[derive(Clone)]
pub struct Probe {
    client: Client<HttpConnector, Full<Bytes>>,
    gateway: SocketAddr,
    invoker: Invoker,
    begun: Instant,
}

impl Probe {
    /// A probe of the service behind this gateway.
    pub fn new(gateway: SocketAddr, invoker: Invoker) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http(), gateway, invoker, begun: Instant::now() }
    }

    /// Returns when everything answers.
    pub async fn wait(self, functions: &[Function], demo: &Credentials) -> Result<(), NotReady> {
        let mut waiting = JoinSet::new();
        for function in functions.iter().filter(|function| !is_seldom(function)) {
            waiting.spawn(self.clone().wait_for_function(function.clone()));
        }
        while let Some(answered) = waiting.join_next().await {
            answered.unwrap_or(Ok(()))?;
        }
        self.wait_for_application(demo).await
    }

    async fn wait_for_function(self, function: Function) -> Result<(), NotReady> {
        loop {
            let last = match self.call(&function).await {
                Ok(()) => return Ok(()),
                Err(last) => last,
            };
            if self.begun.elapsed() > LIMIT || self.invoker.deaths(&function.name) >= HOPELESS {
                return Err(NotReady::Function { function: function.name, last });
            }
            time::sleep(PAUSE).await;
        }
    }

    /// Accepts every answer that is no server error; without a token, most functions say 401.
    async fn call(&self, function: &Function) -> Result<(), String> {
        if endpoints::of_function(&function.name).is_some_and(|endpoint| endpoint.audited.is_some()) {
            let asks = self.invoker.asks_for_work(&function.name);
            return if asks { Ok(()) } else { Err("its process has not asked for work yet".to_owned()) };
        }
        let unmatched = Route { path: "/".to_owned(), method: "GET".to_owned(), function: function.name.clone() };
        match function.routes.first().or(function.answers_unmatched.then_some(&unmatched)) {
            Some(route) => {
                let request = Request::builder().method(route.method.as_str()).uri(self.address(&route.path));
                let (status, _) = self.send(request.body(Full::default())).await?;
                if status.is_server_error() { Err(status.to_string()) } else { Ok(()) }
            }
            None => {
                let nothing = match function {
                    Function { queues, .. } if !queues.is_empty() => r#"{"Records":[]}"#,
                    Function { bus: true, .. } => EVENT_FOR_NOBODY,
                    Function { rotates: true, .. } => ROTATION_OF_NOTHING,
                    _ => "{}",
                };
                self.invoker.invoke(&function.name, nothing).await.map(drop).map_err(|error| error.to_string())
            }
        }
    }

    async fn wait_for_application(&self, demo: &Credentials) -> Result<(), NotReady> {
        loop {
            let last = match self.use_token(demo).await {
                Ok(()) => return Ok(()),
                Err(last) => last,
            };
            if self.begun.elapsed() > LIMIT {
                return Err(NotReady::Application { last });
            }
            time::sleep(PAUSE).await;
        }
    }

    async fn use_token(&self, demo: &Credentials) -> Result<(), String> {
        let form =
            format!("grant_type=client_credentials&client_id={}&client_secret={}", demo.client_id, demo.client_secret);
        let request = Request::post(self.address("/oauth2/token"))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::from(form));
        let (status, body) = self.send(request).await?;
        let token: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Some(token) = token["access_token"].as_str() else {
            // The owner may have ended the secret. The service has answered, which is all that counts here.
            return if status == StatusCode::UNAUTHORIZED {
                Ok(())
            } else {
                Err(format!("the token endpoint says {status}"))
            };
        };
        let path = "/api/managing-entity/demo-hotel/webhook/event/list";
        let request = Request::builder().method(Method::GET).uri(self.address(path));
        let (status, _) =
            self.send(request.header(AUTHORIZATION, format!("Bearer {token}")).body(Full::default())).await?;
        // The owner may have removed the application a moment ago, so that its tokens are revoked.
        if [StatusCode::OK, StatusCode::UNAUTHORIZED].contains(&status) {
            Ok(())
        } else {
            Err(format!("{path} says {status}"))
        }
    }

    fn address(&self, path: &str) -> String {
        format!("http://{}{}", self.gateway, path.replace(['{', '}'], ""))
    }

    async fn send(&self, request: http::Result<Request<Full<Bytes>>>) -> Result<(StatusCode, Bytes), String> {
        let request = request.map_err(|error| error.to_string())?;
        let response = self.client.request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    }
}
