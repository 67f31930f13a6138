//! Requests to the local AWS stand-ins, sent without an SDK and signed with the credentials in service.env.

use std::collections::BTreeMap;

use fakes::AwsCaller;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::secret;

/// The variables for an AWS SDK, with the credentials from service.env.
const VARIABLES: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"];

/// The operator's credentials in this `service.env`.
pub fn aws_caller(env: &BTreeMap<String, String>) -> AwsCaller {
    AwsCaller::new(&env["AWS_ACCESS_KEY_ID"], &env["AWS_SECRET_ACCESS_KEY"])
}

/// A call to this address in the JSON protocol, signed by the operator.
pub fn aws_call(env: &BTreeMap<String, String>, url: &str, target: &str, body: &Value) -> RequestBuilder {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client needs nothing");
    let request = client.post(url).header("x-amz-target", target);
    let request = request.header("content-type", "application/x-amz-json-1.0").body(body.to_string());
    aws_caller(env).sign(request)
}

/// The variables that a program needs to use the stand-ins.
pub fn aws_variables(env: &BTreeMap<String, String>) -> [(&'static str, String); 3] {
    VARIABLES.map(|name| (name, env[name].clone()))
}

/// A request that invokes a function with an event, as its trigger does on AWS.
pub fn invocation(env: &BTreeMap<String, String>, function: &str, event: impl Into<String>) -> RequestBuilder {
    // In a stack, CloudFormation chooses the function's name.
    let variable = format!("FUNCTION_{}", function.to_uppercase().replace('-', "_"));
    let function = env.get(&variable).map_or(function, String::as_str);
    let url = format!("{}/2015-03-31/functions/{function}/invocations", env["LAMBDA_ENDPOINT"]);
    aws_caller(env).sign(reqwest::Client::new().post(url).body(event.into()))
}

/// The URL of one of the template's queues. In a stack, CloudFormation chooses the queue's name, which is one of the
/// outputs.
pub fn queue_url(env: &BTreeMap<String, String>, queue: &str) -> String {
    let in_bundle = || format!("{}/000000000000/{queue}", env["SERVICES_ENDPOINT"]);
    env.get(&format!("{queue}Url")).cloned().unwrap_or_else(in_bundle)
}

/// Removes all messages from one of the template's queues, including delayed messages and those in flight.
pub async fn purge(env: &BTreeMap<String, String>, queue: &str) {
    let request = json!({ "QueueUrl": queue_url(env, queue) });
    ask(env, "AmazonSQS.PurgeQueue", &request).await.expect("it is there");
}

/// The operator's call to Secrets Manager.
pub async fn secrets_manager(
    env: &BTreeMap<String, String>,
    operation: &str,
    request: &Value,
) -> Result<Value, String> {
    ask(env, &format!("secretsmanager.{operation}"), request).await
}

async fn ask(env: &BTreeMap<String, String>, operation: &str, request: &Value) -> Result<Value, String> {
    let sent = aws_call(env, &env["SERVICES_ENDPOINT"], operation, request).send().await;
    let answer = sent.map_err(|error| format!("{operation}: {error}"))?;
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    if !status.is_success() {
        return Err(format!("{operation}: {status}: {text}"));
    }
    // Some operations respond with an empty body.
    let text = if text.is_empty() { "null" } else { &text };
    serde_json::from_str(text).map_err(|error| format!("{operation}: {error}"))
}

/// Immediately deletes one of the service's secrets.
pub async fn delete_secret(env: &BTreeMap<String, String>, name: &str) {
    let request = json!({ "SecretId": secret(env, name), "ForceDeleteWithoutRecovery": true });
    secrets_manager(env, "DeleteSecret", &request).await.expect("it is there");
}
