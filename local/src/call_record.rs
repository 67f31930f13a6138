//! A record of the functions' calls to the stand-ins. At the end of their run, the contract tests check it against
//! template.yaml.
//!
//! Each line of the file is a distinct call: the function, and the parts of the request that name the operation, the
//! resources and the partition keys. Identifiers are replaced (`ENT#{id}`), since a function makes the same call for
//! many tenants.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Mutex,
};

use axum::{
    extract::Request,
    http::{Method, StatusCode},
    middleware::Next,
    response::Response,
};
use serde_json::{Map, Value, json};

/// The members of requests that name resources and partitions.
const NAMING: [&str; 7] = [
    "ExpressionAttributeNames",
    "IndexName",
    "KeyConditionExpression",
    "QueueUrl",
    "SecretId",
    "Statement",
    "TableName",
];

/// The placeholder for an identifier in a partition key. The crate `rights` reads this placeholder.
const IDENTIFIER: &str = "{id}";

/// The maximum length of a fixed name in a partition key. Identifiers are longer, or contain digits.
const LONGEST_NAME: usize = 16;

/// The open file, and the lines written to it.
pub struct CallRecord(Mutex<Lines>);

struct Lines {
    file: File,
    known: HashSet<String>,
}

impl CallRecord {
    /// Opens this file for appending.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).mode(0o600).open(path)?;
        Ok(Self(Mutex::new(Lines { file, known: HashSet::new() })))
    }

    /// Forwards a function's request, and records it. The bodies of S3 requests are not read.
    pub async fn pass(&self, function: &str, request: Request, body: &[u8], next: Next) -> Response {
        let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok());
        if let Some(target) = target {
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            let naming = naming("", &body).unwrap_or_else(|| json!({}));
            self.add(&json!({ "function": function, "target": target, "body": naming }));
            return next.run(request).await;
        }
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let pairs = request.uri().query().unwrap_or_default().split('&');
        let names: Vec<_> = pairs.map(|pair| pair.split('=').next().unwrap_or_default().to_owned()).collect();
        let answer = next.run(request).await;
        let absent = answer.status() == StatusCode::NOT_FOUND && [Method::GET, Method::HEAD].contains(&method);
        let method = method.as_str();
        let query = names.join("&");
        self.add(&json!({ "function": function, "method": method, "path": path, "query": query, "absent": absent }));
        answer
    }

    fn add(&self, call: &Value) {
        let mut line = call.to_string();
        line.push('\n');
        let mut lines = self.0.lock().expect("nothing panics while holding it");
        if lines.known.contains(&line) {
            return;
        }
        // Use a single write, so that a killed process leaves no partial line.
        if let Err(error) = lines.file.write_all(line.as_bytes()) {
            tracing::warn!("a function call could not be recorded: {error}");
        }
        lines.known.insert(line);
    }
}

/// The parts of a request's member that name the operation, resources and partition keys.
fn naming(member: &str, value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if member == "S" => key_pattern(text).map(Value::from),
        Value::String(_) => NAMING.contains(&member).then(|| value.clone()),
        Value::Object(members) => {
            let is_query = members.contains_key("KeyConditionExpression");
            let kept = |(own, value): (&String, &Value)| {
                // Only queries specify their partition by an expression.
                if own.starts_with("ExpressionAttribute") && !is_query {
                    return None;
                }
                let member = if member == "ExpressionAttributeNames" { member } else { own };
                Some((own.clone(), naming(member, value)?))
            };
            let members: Map<_, _> = members.iter().filter_map(kept).collect();
            (!members.is_empty()).then(|| members.into())
        }
        // A statement's parameters are positional, so a parameter without a name leaves a `null`.
        Value::Array(elements) if member == "Parameters" => {
            Some(elements.iter().map(|element| naming("", element).unwrap_or_default()).collect())
        }
        Value::Array(elements) => {
            let mut elements: Vec<_> = elements.iter().filter_map(|element| naming(member, element)).collect();
            elements.sort_by_cached_key(ToString::to_string);
            elements.dedup();
            (!elements.is_empty()).then(|| elements.into())
        }
        _ => None,
    }
}

/// A string that may be a partition key, with its identifiers replaced; `None` for any other string. A key consists of
/// parts separated by `#`, and the first part is a word in capitals.
fn key_pattern(text: &str) -> Option<String> {
    let is_name = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    let is_kind = |part: &str| part.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_short = |part: &str| (1..=LONGEST_NAME).contains(&part.len());
    let mut parts = text.split('#');
    let kind = parts.next().filter(|kind| is_short(kind) && is_kind(kind))?;
    let rest = parts.map(|part| if is_short(part) && is_name(part) { part } else { IDENTIFIER });
    Some(std::iter::once(kind).chain(rest).collect::<Vec<_>>().join("#"))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_partition_key_keeps_fixed_names_and_loses_identifiers() {
        for (key, pattern) in [
            ("KEYS", "KEYS"),
            ("REVOKED#DAY", "REVOKED#DAY"),
            ("ENT#hotel-42", "ENT#{id}"),
            ("DUE#3", "DUE#{id}"),
            ("ALLOWANCE#own-tokens#0190c1f2-7f6a-7cc1", "ALLOWANCE#own-tokens#{id}"),
            ("STATE#abcdefghijklmnopqrs", "STATE#{id}"),
            ("ENT#", "ENT#{id}"),
        ] {
            assert_eq!(key_pattern(key).as_deref(), Some(pattern), "{key}");
        }
        for text in ["", "pending", "https://example.com/#A", "2026-11-20T09:45:00.000Z", "#ENT"] {
            assert_eq!(key_pattern(text), None, "{text}");
        }
    }

    #[test]
    fn a_request_is_recorded_with_its_names_and_without_its_values() {
        let item = |id: &str| json!({ "pk": { "S": format!("ENT#{id}") }, "name": { "S": id }, "n": { "N": "1" } });
        let pattern = json!({ "pk": { "S": "ENT#{id}" } });
        for (request, expected) in [
            (
                json!({
                    "TableName": "t", "IndexName": "byDue", "KeyConditionExpression": "#n0 = :v0", "Limit": 10,
                    "FilterExpression": "#n1 = :v1", "ExpressionAttributeNames": { "#n0": "pk" },
                    "ExpressionAttributeValues": { ":v0": { "S": "DUE#1" }, ":v1": { "S": "secret" } },
                }),
                json!({
                    "TableName": "t", "IndexName": "byDue", "KeyConditionExpression": "#n0 = :v0",
                    "ExpressionAttributeNames": { "#n0": "pk" },
                    "ExpressionAttributeValues": { ":v0": { "S": "DUE#{id}" } },
                }),
            ),
            (
                json!({ "RequestItems": { "t": [
                    { "PutRequest": { "Item": item("1") } }, { "PutRequest": { "Item": item("2") } },
                ] } }),
                json!({ "RequestItems": { "t": [{ "PutRequest": { "Item": pattern } }] } }),
            ),
            (
                json!({ "Statement": "UPDATE t", "Parameters": [{ "S": "secret" }, { "N": "1" }, { "S": "DLV#1" }] }),
                json!({ "Statement": "UPDATE t", "Parameters": [null, null, { "S": "DLV#{id}" }] }),
            ),
            (
                json!({ "QueueUrl": "http://q/0/Queue", "Entries": [{ "Id": "1", "MessageBody": "secret" }] }),
                json!({ "QueueUrl": "http://q/0/Queue" }),
            ),
            (
                json!({ "TableName": "t", "Key": item("1"), "ExpressionAttributeNames": { "#n0": "attempts" } }),
                json!({ "TableName": "t", "Key": pattern }),
            ),
        ] {
            assert_eq!(naming("", &request), Some(expected), "{request}");
        }
        assert_eq!(naming("", &json!({ "SecretString": "secret" })), None);
    }

    #[test]
    fn a_call_is_recorded_once_for_the_owner_of_the_file_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("calls.jsonl");
        let record = CallRecord::open(&file).expect("the folder is there");
        for function in ["token", "token", "openapi"] {
            record.add(&json!({ "function": function }));
        }
        let recorded = fs::read_to_string(&file).expect("it is there");
        assert_eq!(recorded, "{\"function\":\"token\"}\n{\"function\":\"openapi\"}\n");
        assert_eq!(fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
    }
}
