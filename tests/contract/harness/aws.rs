//! The credentials of what stands for AWS, for requests that no SDK makes.

use std::collections::BTreeMap;

use serde_json::json;

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
    let url = format!("{}/2015-03-31/functions/{function}/invocations", env["LAMBDA_ENDPOINT"]);
    reqwest::Client::new().post(url).header("authorization", aws_authorization_of(env))
}

/// Deletes a secret of a bundle at once.
pub async fn delete_secret(env: &BTreeMap<String, String>, name: &str) {
    let request = json!({ "SecretId": format!("waypost/local/{name}"), "ForceDeleteWithoutRecovery": true });
    let deleted = reqwest::Client::new()
        .post(&env["SERVICES_ENDPOINT"])
        .header("x-amz-target", "secretsmanager.DeleteSecret")
        .header("content-type", "application/x-amz-json-1.1")
        .header("authorization", aws_authorization_of(env))
        .body(request.to_string());
    assert_eq!(deleted.send().await.expect("the stand-in answers").status(), 200);
}
