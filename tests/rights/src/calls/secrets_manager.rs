//! Actions and resources of Secrets Manager's operations.
//! <https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssecretsmanager.html>

use serde_json::Value;

use super::{CallError, list, text};
use crate::{access::Access, names::Deployed};

/// Operations on one secret that need only the right of the same name.
const OPERATIONS: [&str; 8] = [
    "DeleteSecret",
    "DescribeSecret",
    "GetSecretValue",
    "ListSecretVersionIds",
    "PutSecretValue",
    "RotateSecret",
    "UpdateSecret",
    "UpdateSecretVersionStage",
];

pub fn accesses(deployed: &Deployed, operation: &str, request: &Value) -> Result<Vec<Access>, CallError> {
    let action = format!("secretsmanager:{operation}");
    if operation == "BatchGetSecretValue" {
        return batch(deployed, action, request);
    }
    if !OPERATIONS.contains(&operation) {
        return Err(CallError::Operation(action));
    }
    Ok(vec![Access::new(action, deployed.secret_arn(text(request, "SecretId")?))])
}

/// A batch of secrets: each needs the right to read it. AWS returns only those that the caller may read, so a missing
/// grant is detected only here.
/// <https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_BatchGetSecretValue.html>
fn batch(deployed: &Deployed, action: String, request: &Value) -> Result<Vec<Access>, CallError> {
    let ids = list(request, "SecretIdList")?.iter().map(|id| id.as_str().ok_or(CallError::Member("SecretIdList")));
    let read = |id| Ok(Access::new("secretsmanager:GetSecretValue", deployed.secret_arn(id?)));
    std::iter::once(Ok(Access::new(action, "*"))).chain(ids.map(read)).collect()
}
