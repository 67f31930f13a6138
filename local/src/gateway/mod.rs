//! The gateway, a stand-in for API Gateway's HTTP API. It finds the route, turns the request into an event, invokes the
//! function, and converts its response to HTTP. When the gateway itself refuses a request, it also responds with a
//! Problem.
//!
//! cargo-lambda's server is not an alternative: it reports a fixed source address, leaves path parameters encoded, lets
//! clients choose request ids, fails on a JSON body that is not UTF-8, and hangs once about a hundred requests are
//! queued for one function.

mod answer;
mod body;
mod connections;
mod event;
mod refusal;
mod routes;

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{extract::Request, response::Response};
use base::{SharedClock, SharedRandom, logging};
use http::request::Parts;
use template::Template;
use tokio::{net::TcpListener, time};

use self::{answer::ProblemShown, refusal::Refusal, routes::Routes};
use crate::{
    invoke::Invoker,
    terminal::{Answered, Terminal},
};

const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The largest head that API Gateway accepts: the request line and the header values together.
const MAX_HEAD: usize = 10_240;
/// The largest event that Lambda accepts. In an event, a binary body is a third larger.
const MAX_EVENT: usize = 6 * 1024 * 1024;

/// Responds to requests by invoking functions.
pub struct Gateway {
    routes: Routes,
    invoker: Invoker,
    base_url: String,
    terminal: Terminal,
    clock: SharedClock,
    random: SharedRandom,
}

impl Gateway {
    /// A gateway with the template's routes; shows its requests on the terminal.
    pub fn new(
        template: &Template,
        invoker: Invoker,
        base_url: String,
        terminal: Terminal,
        clock: SharedClock,
        random: SharedRandom,
    ) -> Self {
        Self { routes: Routes::new(template), invoker, base_url, terminal, clock, random }
    }

    /// Serves requests until `shutdown`, then waits for the requests in progress.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let gateway = Arc::new(self);
        let answer = move |peer, request| Arc::clone(&gateway).handle(peer, request);
        connections::serve(listener, connections::HEAD_LIMIT, answer, shutdown).await
    }

    async fn handle(self: Arc<Self>, peer: SocketAddr, request: Request) -> Response {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let begun = Instant::now();
        let response = self.answer(peer, request).await.unwrap_or_else(|refusal| {
            if let Some(cause) = refusal.cause() {
                let method = logging::shortened(method.as_str());
                let path = logging::shortened(&path);
                tracing::warn!("{method} {path}: {cause}");
            }
            refusal.into_response(&self.base_url, &base::random::uuid(self.random.as_ref()))
        });
        let answered = Answered {
            method: &method,
            path: &path,
            status: response.status(),
            problem: response.extensions().get().map(|ProblemShown(kind)| kind.as_str()),
            took: begun.elapsed(),
        };
        self.terminal.answered(self.clock.now(), &answered);
        response
    }

    async fn answer(&self, peer: SocketAddr, request: Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        if head_size(&parts) > MAX_HEAD {
            body::leave(&parts.headers, body);
            return Err(refusal::of_large_head(MAX_HEAD));
        }
        let body = body::read(&parts.headers, body, body::TIMEOUTS).await?;
        let answered = time::timeout(TIME_LIMIT, self.invoke(peer, parts, body)).await;
        answered.unwrap_or_else(|_| Err(Refusal::timed_out(TIME_LIMIT)))
    }

    async fn invoke(&self, peer: SocketAddr, parts: Parts, body: Vec<u8>) -> Result<Response, Refusal> {
        let path = parts.uri.path();
        let (route, parameters) = self.routes.find(&parts.method, path);
        let event = event::of_request(&event::Received {
            parts: &parts,
            body: &body,
            peer,
            route: &route.key,
            parameters,
            now: self.clock.now(),
            random: self.random.as_ref(),
        })?;
        if event.len() > MAX_EVENT {
            return Err(Refusal::too_large(MAX_EVENT));
        }
        let answer = self.invoker.invoke(&route.function, event).await.map_err(Refusal::of_invocation);
        let response = answer.and_then(|answer| answer::to_response(&answer).map_err(Refusal::of_answer));
        response.map_err(|refusal| refusal.in_place_of(&route.function))
    }
}

/// The size of a head, as API Gateway counts it.
fn head_size(parts: &Parts) -> usize {
    let line = parts.method.as_str().len() + parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
    line + parts.headers.values().map(|value| value.len()).sum::<usize>()
}
