//! The contract's promises for every response, regardless of the request.

use http::HeaderMap;
use serde_json::Value;

/// The promises that a response breaks. `no_problem` permits errors that are not Problems.
pub fn common_faults(base_url: &str, no_problem: bool, status: u16, headers: &HeaderMap, body: &[u8]) -> Vec<String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut faults = Vec::new();
    if header("service-version") != "2.0" {
        faults.push("Service-Version is not 2.0".to_owned());
    }
    let request_id = header("x-request-id");
    if !is_uuid(request_id) {
        faults.push(format!("X-Request-Id is no UUID: {request_id}"));
    }
    for (name, value) in [("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")] {
        if header(name) != value {
            faults.push(format!("{name} is not {value}"));
        }
    }
    if header("content-type").starts_with("text/html") {
        page_faults(header("content-security-policy"), &mut faults);
    }
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return faults;
    };
    time_faults(&body, &mut faults);
    if status >= 400 && !no_problem {
        problem_faults(base_url, status, request_id, &body, &mut faults);
    }
    faults
}

/// The promises that apply to every page: it forbids frames, and loads and runs nothing. Only the panel runs its own
/// files; it does not interpret text as markup, and names the pages that may frame it.
fn page_faults(policy: &str, faults: &mut Vec<String>) {
    let directives: Vec<&str> = policy.split(';').map(str::trim).collect();
    for needed in ["default-src 'none'", "base-uri 'none'", "form-action 'none'"] {
        if !directives.contains(&needed) {
            faults.push(format!("a page's Content-Security-Policy lacks {needed}: {policy}"));
        }
    }
    let is_panel =
        ["script-src 'self'", "require-trusted-types-for 'script'"].iter().all(|own| directives.contains(own));
    let ancestors = directives.iter().find_map(|directive| directive.strip_prefix("frame-ancestors "));
    if ancestors.is_none_or(|ancestors| ancestors != "'none'" && !is_panel || ancestors.contains('*')) {
        faults.push(format!("a page may be framed: {policy}"));
    }
    if policy.contains("script-src") && !is_panel {
        faults.push(format!("a page may run something: {policy}"));
    }
}

fn problem_faults(base_url: &str, status: u16, request_id: &str, body: &Value, faults: &mut Vec<String>) {
    let mut members: Vec<&str> = body.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    members.retain(|name| !name.starts_with("error"));
    members.sort_unstable();
    if members != ["detail", "instance", "kind", "properties", "status", "title", "type"] {
        faults.push(format!("a Problem has other members: {members:?}"));
    }
    if body["status"] != status {
        faults.push("a Problem's status is not the response's".to_owned());
    }
    if body["kind"] == "invalid-request" && body.pointer("/properties/violations/0").is_none() {
        faults.push("a Problem does not list its violations".to_owned());
    }
    if body["instance"] != format!("urn:uuid:{request_id}") {
        faults.push("a Problem's instance is not the request's id".to_owned());
    }
    let page = format!("{base_url}/problems/{}", body["kind"].as_str().unwrap_or_default());
    if body["type"] != page {
        faults.push("a Problem's type is not the page of its kind at this service".to_owned());
    }
}

/// Members whose content comes from publishers or describes such content.
const OF_PUBLISHERS: [&str; 3] = ["data", "samples", "schema"];

/// Times must be in UTC with milliseconds; publishers' times are not checked.
fn time_faults(value: &Value, faults: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !OF_PUBLISHERS.contains(&name.as_str())) {
                let is_day = name == "lastUsedDate"; // a credential's owner needs only the day
                let is_time = name.ends_with("Date") && !is_day || name == "lastUpdate" || name == "timestamp";
                // openapi.yaml covers values that are not strings; the served document also has members with these
                // names.
                if is_time && member.as_str().is_some_and(|text| !is_timestamp(text)) {
                    faults.push(format!("{name} is not a time in the contract's format: {member}"));
                }
                time_faults(member, faults);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| time_faults(item, faults)),
        _ => {}
    }
}

fn is_timestamp(text: &str) -> bool {
    fits(text, "0000-00-00T00:00:00.000Z", |byte| byte.is_ascii_digit())
}

fn is_uuid(text: &str) -> bool {
    fits(text, "00000000-0000-0000-0000-000000000000", |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a string has the same format as a model; a zero in the model matches any byte that `varies` accepts.
fn fits(text: &str, model: &str, varies: fn(u8) -> bool) -> bool {
    text.len() == model.len()
        && text.bytes().zip(model.bytes()).all(|(byte, model)| if model == b'0' { varies(byte) } else { byte == model })
}
