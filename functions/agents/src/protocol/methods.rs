//! The methods of the protocol, and what each answers.

use http::StatusCode;
use problem::{Problem, ProblemKind};
use serde_json::{Map, Value, json};

use super::{
    answer::{Answer, Caching, Failure},
    json_rpc::{Request, RpcError, shortened},
    revision::Revision,
    server, tool_call, tool_list,
};
use crate::{caller::Caller, desk::Desk, prompts, resources};

/// The answer to a request.
pub async fn answer(
    desk: &'static Desk,
    caller: Caller,
    revision: Revision,
    request: &Request,
) -> Result<Answer, Failure> {
    let has_handshake = revision.has_handshake();
    match request.method.as_str() {
        "initialize" if has_handshake => initialize(desk, request),
        "ping" if has_handshake => Ok(Answer::new(json!({}))),
        "server/discover" if !has_handshake => Ok(discover()),
        "tools/list" => list(request, Caching::OF_TOKEN, || json!({"tools": tool_list::of(&caller)})),
        "tools/call" => tool_call::answer(desk, caller, request).await,
        "resources/list" => list(request, Caching::OF_RELEASE, || json!({"resources": resources::ALL})),
        "resources/templates/list" => {
            list(request, Caching::OF_RELEASE, || json!({"resourceTemplates": resources::TEMPLATES}))
        }
        "resources/read" => read_resource(desk, &caller, revision, request).await,
        "prompts/list" => list(request, Caching::OF_RELEASE, || json!({"prompts": prompts::ALL})),
        "prompts/get" => prompt(desk, &caller, request),
        unknown if has_handshake => Err(RpcError::no_method(unknown).into()),
        unknown => Err(RpcError::no_method(unknown).with_status(StatusCode::NOT_FOUND).into()),
    }
}

fn initialize(desk: &Desk, request: &Request) -> Result<Answer, Failure> {
    let revision = Revision::negotiated(request.text("protocolVersion")?);
    Ok(Answer::new(json!({
        "protocolVersion": revision.name(),
        "capabilities": server::capabilities(),
        "serverInfo": server::info(&desk.base_url),
        "instructions": server::INSTRUCTIONS,
    })))
}

fn discover() -> Answer {
    let result = json!({
        "supportedVersions": Revision::ALL.map(Revision::name),
        "capabilities": server::capabilities(),
        "instructions": server::INSTRUCTIONS,
    });
    Answer::kept(result, Caching::OF_RELEASE)
}

/// A list, which has one page.
fn list(request: &Request, caching: Caching, result: impl FnOnce() -> Value) -> Result<Answer, Failure> {
    if request.params.contains_key("cursor") {
        return Err(RpcError::invalid_params("`cursor` is none of this list's; it has one page").into());
    }
    Ok(Answer::kept(result(), caching))
}

async fn read_resource(desk: &Desk, caller: &Caller, revision: Revision, request: &Request) -> Result<Answer, Failure> {
    let uri = request.text("uri")?;
    caller.needs(resources::scopes(uri)).map_err(Failure::Token)?;
    let read = resources::read(desk, caller, uri).await;
    let contents = read.and_then(|contents| contents.ok_or_else(|| no_resource(uri)));
    let contents = contents.map_err(|problem| {
        let is_missing = problem.kind.status() == StatusCode::NOT_FOUND;
        // Revisions with a handshake have a code of their own for a resource that there is not.
        let code =
            if is_missing && revision.has_handshake() { RpcError::NO_RESOURCE } else { RpcError::code_of(&problem) };
        RpcError::of_problem(code, problem, &desk.base_url, &caller.request_id).with_datum("uri", uri)
    })?;
    Ok(Answer::kept(json!({"contents": [contents]}), Caching::OF_MOMENT))
}

fn no_resource(uri: &str) -> Problem {
    let shown = shortened(uri);
    Problem::new(ProblemKind::NotFound, format!("No resource has the address `{shown}`; resources/list lists them."))
}

fn prompt(desk: &Desk, caller: &Caller, request: &Request) -> Result<Answer, Failure> {
    let name = request.text("name")?;
    let prompt = prompts::find(name).ok_or_else(|| RpcError::invalid_params("there is no such prompt"))?;
    let arguments: Map<String, Value> = request.arguments()?;
    let text = prompts::text(prompt, &arguments).map_err(|problem| {
        RpcError::of_problem(RpcError::code_of(&problem), problem, &desk.base_url, &caller.request_id)
    })?;
    Ok(Answer::new(json!({
        "description": prompt.description,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    })))
}
