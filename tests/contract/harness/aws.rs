//! The credentials of what stands for AWS, for requests that no SDK makes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::secret;

/// The credentials that service.env names, for the environment of an AWS SDK.
const VARIABLES: [&str; 3] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"];

/// The header that shows an access key id. The signature is anything: the key id is what is checked.
pub fn aws_authorization(access_key_id: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={access_key_id}/20260101/us-east-1/any/aws4_request, \
         SignedHeaders=host;x-amz-date, Signature=00"
    )
}

/// The header for the stand-ins of a bundle with this `service.env`.
pub fn aws_authorization_of(env: &BTreeMap<String, String>) -> String {
    aws_authorization(&env["AWS_ACCESS_KEY_ID"])
}

/// The variables with which a program reaches the stand-ins.
pub fn aws_variables(env: &BTreeMap<String, String>) -> [(&'static str, String); 3] {
    VARIABLES.map(|name| (name, env[name].clone()))
}

/// A request that invokes a function, as what triggers it on AWS does; it is still to be given the event.
pub fn invocation(env: &BTreeMap<String, String>, function: &str) -> reqwest::RequestBuilder {
    // In a stack, CloudFormation has named the function.
    let variable = format!("FUNCTION_{}", function.to_uppercase().replace('-', "_"));
    let function = env.get(&variable).map_or(function, String::as_str);
    let url = format!("{}/2015-03-31/functions/{function}/invocations", env["LAMBDA_ENDPOINT"]);
    reqwest::Client::new().post(url).header("authorization", aws_authorization_of(env))
}

/// The address of a queue of the template. In a stack, CloudFormation has named the queue, and an output says how.
pub fn queue_url(env: &BTreeMap<String, String>, queue: &str) -> String {
    let in_bundle = || format!("{}/000000000000/{queue}", env["SERVICES_ENDPOINT"]);
    env.get(&format!("{queue}Url")).cloned().unwrap_or_else(in_bundle)
}

/// Takes every message from a queue of the template, those included that are delayed or handed out.
pub async fn purge(env: &BTreeMap<String, String>, queue: &str) {
    let request = json!({ "QueueUrl": queue_url(env, queue) });
    ask(env, "AmazonSQS.PurgeQueue", &request).await.expect("it is there");
}

/// Asks Secrets Manager, as an operator does.
pub async fn secrets_manager(
    env: &BTreeMap<String, String>,
    operation: &str,
    request: &Value,
) -> Result<Value, String> {
    ask(env, &format!("secretsmanager.{operation}"), request).await
}

async fn ask(env: &BTreeMap<String, String>, operation: &str, request: &Value) -> Result<Value, String> {
    let sent = reqwest::Client::new()
        .post(&env["SERVICES_ENDPOINT"])
        .header("x-amz-target", operation)
        .header("content-type", "application/x-amz-json-1.1")
        .header("authorization", aws_authorization_of(env))
        .body(request.to_string());
    let answer = sent.send().await.map_err(|error| format!("{operation}: {error}"))?;
    let (status, text) = (answer.status(), answer.text().await.unwrap_or_default());
    if !status.is_success() {
        return Err(format!("{operation}: {status}: {text}"));
    }
    // Some operations answer with nothing.
    let text = if text.is_empty() { "null" } else { &text };
    serde_json::from_str(text).map_err(|error| format!("{operation}: {error}"))
}

/// Deletes a secret of the service at once.
pub async fn delete_secret(env: &BTreeMap<String, String>, name: &str) {
    let request = json!({ "SecretId": secret(env, name), "ForceDeleteWithoutRecovery": true });
    secrets_manager(env, "DeleteSecret", &request).await.expect("it is there");
}
