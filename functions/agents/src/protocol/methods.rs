//! The protocol's methods and their results.

use http::StatusCode;
use problem::{Problem, ProblemKind};
use serde_json::{Value, json};

use super::{
    answer::{Answer, Caching, Failure},
    json_rpc::{Request, RpcError, shortened},
    revision::{INITIALIZE, Revision},
    server::{Refusal, Server, ToolResult},
};
use crate::caller::Caller;

/// Handles a request.
pub async fn answer<S: Server>(
    server: &'static S,
    caller: Caller,
    revision: Revision,
    request: &Request,
) -> Result<Answer, Failure> {
    let has_handshake = revision.has_handshake();
    match request.method.as_str() {
        INITIALIZE if has_handshake => initialize(server, request),
        "ping" if has_handshake => Ok(Answer::new(json!({}))),
        "server/discover" if !has_handshake => Ok(discover::<S>()),
        "tools/list" => {
            has_one_page(request)?;
            Ok(Answer::kept(json!({"tools": server.tools(&caller).await}), Caching::OF_TOKEN))
        }
        "tools/call" => call_tool(server, caller, request).await,
        "resources/list" => list(request, Caching::OF_TOKEN, || json!({"resources": server.resources(&caller)})),
        "resources/templates/list" => {
            list(request, Caching::OF_TOKEN, || json!({"resourceTemplates": server.resource_templates(&caller)}))
        }
        "resources/read" => read_resource(server, &caller, revision, request).await,
        "prompts/list" => list(request, Caching::OF_RELEASE, || json!({"prompts": server.prompts()})),
        "prompts/get" => prompt(server, &caller, request),
        unknown if has_handshake => Err(RpcError::no_method(unknown).into()),
        unknown => Err(RpcError::no_method(unknown).with_status(StatusCode::NOT_FOUND).into()),
    }
}

fn initialize<S: Server>(server: &S, request: &Request) -> Result<Answer, Failure> {
    let revision = Revision::negotiated(request.text("protocolVersion")?);
    Ok(Answer::new(json!({
        "protocolVersion": revision.name(),
        "capabilities": capabilities(),
        "serverInfo": server.info(),
        "instructions": S::INSTRUCTIONS,
    })))
}

fn discover<S: Server>() -> Answer {
    let result = json!({
        "supportedVersions": Revision::ALL.map(Revision::name),
        "capabilities": capabilities(),
        "instructions": S::INSTRUCTIONS,
    });
    Answer::kept(result, Caching::OF_RELEASE)
}

/// A server's capabilities. A client gets tokens by client credentials, without user sign-in.
/// <https://modelcontextprotocol.io/extensions/auth/oauth-client-credentials>
fn capabilities() -> Value {
    json!({
        "tools": {},
        "resources": {},
        "prompts": {},
        "extensions": {"io.modelcontextprotocol/oauth-client-credentials": {}},
    })
}

/// Responds to a request for a list that fits into one page.
fn list(request: &Request, caching: Caching, result: impl FnOnce() -> Value) -> Result<Answer, Failure> {
    has_one_page(request)?;
    Ok(Answer::kept(result(), caching))
}

/// Checks that the request is for the first page, which is the only one. An empty cursor means the first page.
fn has_one_page(request: &Request) -> Result<(), RpcError> {
    let cursor = request.params.get("cursor");
    if cursor.is_some_and(|cursor| !cursor.is_null() && cursor != "") {
        return Err(RpcError::invalid_params("`cursor` must be omitted, because this list has only one page"));
    }
    Ok(())
}

/// Calls a tool. A Problem becomes the call's result, so that the model reads it.
async fn call_tool<S: Server>(server: &'static S, caller: Caller, request: &Request) -> Result<Answer, Failure> {
    let name = request.text("name")?;
    let arguments = request.arguments()?;
    let request_id = caller.request_id.clone();
    match server.call_tool(caller, name, arguments).await {
        Ok(result) => Ok(Answer::new(json!(result))),
        Err(Refusal::Unknown) => Err(unknown_name("tool", name).into()),
        Err(Refusal::Token(problem)) => Err(Failure::Token(problem)),
        Err(Refusal::Problem(problem)) => {
            let body = problem.body(server.base_url(), &request_id).into();
            Ok(Answer::reporting(json!(ToolResult::refused(&body)), problem))
        }
    }
}

/// The error for an unknown tool or prompt name.
fn unknown_name(kind: &str, name: &str) -> RpcError {
    RpcError::invalid_params(format!("there is no {kind} named `{}`; {kind}s/list lists them", shortened(name)))
}

async fn read_resource<S: Server>(
    server: &S,
    caller: &Caller,
    revision: Revision,
    request: &Request,
) -> Result<Answer, Failure> {
    let uri = request.text("uri")?;
    let problem = match server.read_resource(caller, uri).await {
        Ok(contents) => return Ok(Answer::kept(json!({"contents": [contents]}), Caching::OF_MOMENT)),
        Err(Refusal::Unknown) => no_resource(uri),
        Err(Refusal::Token(problem)) => return Err(Failure::Token(problem)),
        Err(Refusal::Problem(problem)) => problem,
    };
    let is_missing = problem.kind.status() == StatusCode::NOT_FOUND;
    // Revisions with a handshake have their own code for a missing resource.
    let code = if is_missing && revision.has_handshake() { RpcError::NO_RESOURCE } else { RpcError::code_of(&problem) };
    Err(RpcError::of_problem(code, problem, server.base_url(), &caller.request_id).with_datum("uri", uri).into())
}

fn no_resource(uri: &str) -> Problem {
    let shown = shortened(uri);
    Problem::new(ProblemKind::NotFound, format!("There is no resource at `{shown}`; see resources/list."))
}

fn prompt<S: Server>(server: &S, caller: &Caller, request: &Request) -> Result<Answer, Failure> {
    let name = request.text("name")?;
    let arguments = request.arguments()?;
    server.prompt(name, &arguments).map(Answer::new).map_err(|refusal| match refusal {
        Refusal::Unknown => unknown_name("prompt", name).into(),
        Refusal::Token(problem) => Failure::Token(problem),
        Refusal::Problem(problem) => {
            let code = RpcError::code_of(&problem);
            RpcError::of_problem(code, problem, server.base_url(), &caller.request_id).into()
        }
    })
}
