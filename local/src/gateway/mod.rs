//! The gateway: what API Gateway's HTTP API is on AWS. It matches the route, makes an event of the request, invokes the
//! function and makes a response of the answer; what it must refuse itself is a Problem, too.

mod answer;
mod event;
mod refusal;
mod routes;

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request, State},
    response::Response,
    serve::ListenerExt,
};
use deployment::Template;
use http_body_util::BodyExt;
use shared::{clock::SharedClock, random::SharedRandom};
use tokio::{net::TcpListener, time};

use self::{refusal::Refusal, routes::Routes};
use crate::invoke::Invoker;

/// API Gateway gives up on a request after this time.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The largest body that API Gateway takes.
const MAX_BODY: usize = 10 * 1024 * 1024;
/// How much of a larger one is still read, and thrown away: a client that is reset while it sends may never see the answer.
const MAX_DISCARDED: usize = 64 * 1024 * 1024;
/// The largest event that Lambda takes; a body that is not text grows by a third in it.
const MAX_EVENT: usize = 6 * 1024 * 1024;

/// What every request needs.
pub struct Gateway {
    routes: Routes,
    invoker: Invoker,
    base_url: String,
    clock: SharedClock,
    random: SharedRandom,
}

async fn read_whole(mut body: Body) -> Result<Vec<u8>, Refusal> {
    let (mut whole, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(refusal::broken_off)?.into_data() else { continue };
        length += data.len();
        if length <= MAX_BODY {
            whole.extend_from_slice(&data);
        } else if length > MAX_DISCARDED {
            break;
        } else {
            whole = Vec::new();
        }
    }
    if length <= MAX_BODY { Ok(whole) } else { Err(refusal::of_large_body()) }
}

impl Gateway {
    /// A gateway with the template's routes.
    pub fn new(
        template: &Template,
        invoker: Invoker,
        base_url: String,
        clock: SharedClock,
        random: SharedRandom,
    ) -> Self {
        Self { routes: Routes::new(template), invoker, base_url, clock, random }
    }

    /// Answers requests until `shutdown`, and then those that are under way.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        // Small answers go out at once.
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        let service = Router::new().fallback(handle).with_state(Arc::new(self));
        axum::serve(listener, service.into_make_service_with_connect_info::<SocketAddr>())
            .with_graceful_shutdown(shutdown)
            .await
    }

    async fn answer(&self, peer: SocketAddr, request: Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        let body = read_whole(body).await?;
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

async fn handle(
    State(gateway): State<Arc<Gateway>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request<Body>,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let outcome = time::timeout(TIME_LIMIT, gateway.answer(peer, request)).await;
    outcome.unwrap_or_else(|_| Err(Refusal::timed_out(TIME_LIMIT))).unwrap_or_else(|refusal| {
        if let Some(cause) = refusal.cause() {
            tracing::warn!("{method} {path}: {cause}");
        }
        refusal.into_response(&gateway.base_url, &shared::random::uuid(gateway.random.as_ref()))
    })
}
