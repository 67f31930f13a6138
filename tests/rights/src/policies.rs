//! The policies of a function's role: those in the template, and those that SAM adds.
//! <https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-resource-function.html>
//!
//! A contract test compares these policies with the output of SAM's translator.

use serde_json::{Map, Value, json};

/// A policy with unresolved references.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The policy's name, or its position in the template.
    pub name: String,
    /// The policy's statements.
    pub statements: Vec<Value>,
}

/// Why a function's policies cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The function has a separate role, whose policies are elsewhere.
    #[error("a function with its own `Role` is not supported")]
    Role,
    /// An entry in `Policies` is neither a statement, a policy in the template, nor a known AWS policy.
    #[error("the policy {0} is unknown")]
    Unknown(String),
}

/// The policy that SAM adds to every function.
const BASIC: &str = "AWSLambdaBasicExecutionRole";

/// The managed AWS policy with this name.
/// <https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html>
fn of_aws(name: &str) -> Option<Policy> {
    let logs = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"];
    let statement = json!({ "Effect": "Allow", "Action": logs, "Resource": "*" });
    (name == BASIC).then(|| Policy { name: name.to_owned(), statements: vec![statement] })
}

/// The policies of one `AWS::Serverless::Function`.
pub fn of_function(properties: &Value, resources: &Map<String, Value>) -> Result<Vec<Policy>, PolicyError> {
    if properties.get("Role").is_some() {
        return Err(PolicyError::Role);
    }
    let unknown = |policy: &Value| PolicyError::Unknown(policy.to_string());
    let aws = |name: &str| of_aws(name).ok_or_else(|| unknown(&name.into()));
    let mut policies = vec![aws(BASIC)?];
    let entries: Vec<_> = match &properties["Policies"] {
        Value::Null => Vec::new(),
        Value::Array(entries) => entries.iter().collect(),
        entry => vec![entry],
    };
    for (place, entry) in entries.into_iter().enumerate() {
        policies.push(match entry {
            Value::String(name) => aws(name)?,
            Value::Object(_) if entry.get("Statement").is_some() => {
                let name = format!("Policies[{place}]");
                Policy { name, statements: statements(&entry["Statement"]) }
            }
            _ => {
                let named = entry["Ref"].as_str().and_then(|id| Some((id, resources.get(id)?)));
                let managed = named.filter(|(_, resource)| resource["Type"] == "AWS::IAM::ManagedPolicy");
                let (name, policy) = managed.ok_or_else(|| unknown(entry))?;
                let statements = statements(&policy["Properties"]["PolicyDocument"]["Statement"]);
                Policy { name: name.to_owned(), statements }
            }
        });
    }
    // Lambda uses the function's role to send failed events to this destination.
    let failures = &properties["EventInvokeConfig"]["DestinationConfig"]["OnFailure"];
    match failures["Type"].as_str() {
        None if failures.is_null() => {}
        Some("SQS") => {
            let statement =
                json!({ "Effect": "Allow", "Action": "sqs:SendMessage", "Resource": failures["Destination"] });
            policies.push(Policy { name: "EventInvokeConfig".to_owned(), statements: vec![statement] });
        }
        _ => return Err(unknown(failures)),
    }
    Ok(policies)
}

/// The statements in a value that is one statement or a list of them.
fn statements(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(statements) => statements.clone(),
        statement => vec![statement.clone()],
    }
}
