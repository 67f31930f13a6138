//! Waiting until the service is ready: the demo application gets a token and uses it. Other functions start on their
//! first request, within hundredths of a second.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

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
use tokio::time;

use crate::invoke::Invoker;

/// The time limit for the whole wait. An idle machine needs a second; one that starts many services at once needs far
/// longer.
const LIMIT: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// If a process dies this many times before its first response, the start fails.
const HOPELESS: u64 = 3;
/// The functions that the demo application calls.
const ASKED: [&str; 2] = ["token", "list-event-types"];

/// Why the service is not ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// A function's process keeps dying.
    #[error("{function} is not running ({last}); see logs/{function}.log in the data folder")]
    Function {
        function: &'static str,
        /// The last error or status.
        last: String,
    },
    /// The demo application gets no token, or its token is refused.
    #[error("the demo application cannot use the service ({last}); see the logs in the data folder")]
    Application {
        /// The last error or status.
        last: String,
    },
}

pub struct Probe {
    client: Client<HttpConnector, Full<Bytes>>,
    gateway: SocketAddr,
    invoker: Invoker,
    begun: Instant,
}

impl Probe {
    /// A readiness check for the service behind this gateway.
    pub fn new(gateway: SocketAddr, invoker: Invoker) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http(), gateway, invoker, begun: Instant::now() }
    }

    /// Returns once the demo application gets its responses.
    pub async fn wait(self, demo: &Credentials) -> Result<(), NotReady> {
        loop {
            let last = match self.use_token(demo).await {
                Ok(()) => return Ok(()),
                Err(last) => last,
            };
            if let Some(function) = ASKED.into_iter().find(|function| self.invoker.deaths(function) >= HOPELESS) {
                return Err(NotReady::Function { function, last });
            }
            if self.begun.elapsed() > LIMIT {
                return Err(NotReady::Application { last });
            }
            time::sleep(POLL_INTERVAL).await;
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
            // The owner may have revoked the secret. Any response from the service is enough here.
            return if status == StatusCode::UNAUTHORIZED {
                Ok(())
            } else {
                Err(format!("the token endpoint answered {status}"))
            };
        };
        let path = "/api/managing-entity/demo-hotel/webhook/event/list";
        let request = Request::builder().method(Method::GET).uri(self.address(path));
        let (status, _) =
            self.send(request.header(AUTHORIZATION, format!("Bearer {token}")).body(Full::default())).await?;
        // The owner may have just removed the application, which revokes its tokens.
        if [StatusCode::OK, StatusCode::UNAUTHORIZED].contains(&status) {
            Ok(())
        } else {
            Err(format!("{path} answered {status}"))
        }
    }

    fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.gateway)
    }

    async fn send(&self, request: http::Result<Request<Full<Bytes>>>) -> Result<(StatusCode, Bytes), String> {
        let request = request.map_err(|error| error.to_string())?;
        let response = self.client.request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok((status, body.to_bytes()))
    }
}
