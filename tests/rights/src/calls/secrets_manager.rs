//! The actions and resources of Secrets Manager's operations.
//! <https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssecretsmanager.html>

use serde_json::Value;

use super::{CallError, text};
use crate::{access::Access, names::Deployed};

/// Operations on one secret that require only the right with the same name.
const OPERATIONS: [&str; 7] = [
    "DeleteSecret",
    "DescribeSecret",
    "GetSecretValue",
    "PutSecretValue",
    "RotateSecret",
    "UpdateSecret",
    "UpdateSecretVersionStage",
];

/// The operation without a resource, whose right always covers all secrets in the account.
const LIST: &str = "ListSecrets";

pub fn accesses(deployed: &Deployed, operation: &str, request: &Value) -> Result<Vec<Access>, CallError> {
    let action = format!("secretsmanager:{operation}");
    if operation == LIST {
        return Ok(vec![Access::new(action, "*".to_owned())]);
    }
    if !OPERATIONS.contains(&operation) {
        return Err(CallError::Operation(action));
    }
    Ok(vec![Access::new(action, deployed.secret_arn(text(request, "SecretId")?))])
}
