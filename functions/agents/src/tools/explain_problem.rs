//! `explain_problem`: explains a kind of Problem.

use std::future::ready;

use futures::FutureExt;
use problem::{JsonBody, Problem, ProblemKind, Rule, near};
use serde_json::{Value, json};

use crate::{
    schemas,
    tool::{Hints, Run, Tool, ToolCall},
    use_cases::UseCases,
    words,
};

/// Explains a kind of Problem.
pub const EXPLAIN_PROBLEM: Tool = Tool {
    name: "explain_problem",
    title: "Explain an error",
    description: "Explains a kind of error (a Problem, RFC 9457): what it means and how to fix it. Every failed tool \
                  call and API error is a Problem. First read its `detail`, which says why this call failed; then pass \
                  its `kind` to this tool. Needs no managing entity.",
    input,
    output,
    scopes: &[],
    hints: Hints::READS,
    run: Run::ForAll(|use_cases, call| ready(explain(use_cases, &call)).boxed()),
};

fn explain(use_cases: &UseCases, call: &ToolCall) -> Result<Value, Problem> {
    let body = call.body();
    let mut body = JsonBody::read(&body)?;
    let slug = body.required_text("kind");
    let kind = slug.and_then(|slug| body.violations.note("kind", Rule::UnknownValue, of_slug(&slug)));
    let kind = body.finish_with(kind)?;
    Ok(explained(kind, &use_cases.base_url))
}

fn explained(kind: ProblemKind, base_url: &str) -> Value {
    json!({
        "kind": kind.slug(),
        "status": kind.status().as_u16(),
        "title": kind.title(),
        "explanation": words::text(kind.explanation()),
        "page": format!("{base_url}/problems/{}", kind.slug()),
    })
}

/// The kind with this slug, or the message for an unknown one.
fn of_slug(slug: &str) -> Result<ProblemKind, String> {
    ProblemKind::of_slug(slug).ok_or_else(|| {
        let all = "the resource waypost://problems lists all kinds";
        near::none_of("must be the `kind` of a Problem", slug, ProblemKind::ALL.iter().map(|kind| kind.slug()), all)
    })
}

fn input() -> Value {
    // The kinds are not enumerated: the list would be the longest part of the tool, and every error states its kind.
    let kind = json!({
        "type": "string",
        "maxLength": 64,
        "description": "The Problem's `kind`. The resource waypost://problems lists all kinds.",
        "examples": ["webhook-disabled"],
    });
    schemas::object(json!({ "kind": kind }), &["kind"])
}

fn output() -> Value {
    schemas::object(
        json!({
            "kind": schemas::of("ProblemKind"),
            "status": { "type": "integer", "minimum": 400, "maximum": 599, "description": "Its HTTP status." },
            "title": { "type": "string", "description": "A short name for the kind." },
            "explanation": { "type": "string", "description": "Its meaning and its remedy." },
            "page": { "type": "string", "format": "uri", "description": "The page that explains the kind to people." },
        }),
        &["kind", "status", "title", "explanation", "page"],
    )
}
