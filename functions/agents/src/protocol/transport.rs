//! The transport between HTTP and the protocol. The gate checks requests first, including their `Origin`, which stops
//! DNS rebinding. `Host` is not checked: programs can send any value, and behind CloudFront or a proxy it differs from
//! `BaseUrl`. `Accept` is ignored, since responses have only one form.

use gate::{Call, Reply};
use http::StatusCode;
use problem::{Problem, json_body::MAX_BYTES};

use super::{
    answer::Failure,
    headers::{self, PROTOCOL_VERSION},
    json_rpc::{self, Message, Request, RpcError},
    methods,
    revision::Revision,
    server::Server,
};
use crate::caller::Caller;

/// Handles the message in a call's body.
pub async fn answer<S: Server>(server: &'static S, call: Call) -> Result<Reply, Problem> {
    if call.body.len() > MAX_BYTES {
        return Err(Problem::too_large("The message", MAX_BYTES));
    }
    match Message::read(&call.body) {
        Ok(Message::Request(request)) => answer_request(server, call, &request).await,
        Ok(Message::Notification) => acknowledge(&call),
        Ok(Message::Response) => {
            RpcError::invalid_request("this server sends no requests and expects no responses").reply(None)
        }
        Err((id, error)) => error.reply(id.as_ref()),
    }
}

async fn answer_request<S: Server>(server: &'static S, call: Call, request: &Request) -> Result<Reply, Problem> {
    let revision = match Revision::of_request(request, call.headers()) {
        Ok(revision) => revision,
        Err(error) => return error.reply(Some(&request.id)),
    };
    let answer = methods::answer(server, Caller::of(call)?, revision, request).await;
    match answer.map(|answer| answer.in_revision(revision, server)) {
        Ok((result, None)) => json_rpc::result(&request.id, result),
        Ok((result, Some(problem))) => Ok(json_rpc::result(&request.id, result)?.reporting(problem)),
        Err(Failure::Rpc(error)) => error.reply(Some(&request.id)),
        Err(Failure::Token(problem)) => Err(problem),
    }
}

/// Accepts a notification. It has no effect, since the server keeps no state about clients.
fn acknowledge(call: &Call) -> Result<Reply, Problem> {
    match headers::only(call.headers(), PROTOCOL_VERSION).and_then(Revision::named) {
        Ok(_) => Ok(Reply::bare(StatusCode::ACCEPTED)),
        Err(error) => error.reply(None),
    }
}
