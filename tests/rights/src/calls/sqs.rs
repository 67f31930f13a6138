//! The actions and resources of SQS's operations.
//! <https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsqs.html>

use serde_json::Value;

use super::{CallError, text};
use crate::{access::Access, names::Deployed};

/// Operations on a queue, each with the action that it requires: a batch requires the single operation's action.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html>
const ACTIONS: [(&str, &str); 7] = [
    ("DeleteMessage", "DeleteMessage"),
    ("DeleteMessageBatch", "DeleteMessage"),
    ("GetQueueAttributes", "GetQueueAttributes"),
    ("PurgeQueue", "PurgeQueue"),
    ("ReceiveMessage", "ReceiveMessage"),
    ("SendMessage", "SendMessage"),
    ("SendMessageBatch", "SendMessage"),
];

pub fn accesses(deployed: &Deployed, operation: &str, request: &Value) -> Result<Vec<Access>, CallError> {
    let action = ACTIONS.iter().find(|(name, _)| *name == operation);
    let (_, action) = action.ok_or_else(|| CallError::Operation(format!("sqs:{operation}")))?;
    let queue = text(request, "QueueUrl")?.rsplit('/').next().unwrap_or_default();
    Ok(vec![Access::new(format!("sqs:{action}"), deployed.queue_arn(queue))])
}
