//! Messages of the queues of due deliveries as Lambda passes them on, and the response that returns some to the queue.

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};

use webhooks::deliveries::queue::{inbox::BatchMessage, message::AttemptMessage};

/// The ARN of the queue from which a batch comes; empty for a batch without messages.
pub fn queue_arn(batch: &SqsEvent) -> &str {
    batch.records.first().and_then(|message| message.event_source_arn.as_deref()).unwrap_or_default()
}

/// A batch's messages.
pub fn read(batch: SqsEvent) -> Vec<BatchMessage> {
    batch.records.into_iter().map(handed).collect()
}

fn handed(message: SqsMessage) -> BatchMessage {
    let attempts = AttemptMessage::read(message.body.as_deref().unwrap_or_default());
    BatchMessage { message_id: message.message_id.unwrap_or_default(), attempts }
}

/// The response that returns the messages with these identifiers to the queue.
pub fn again(message_ids: Vec<String>) -> SqsBatchResponse {
    let failures = message_ids.into_iter().map(|message_id| {
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = message_id;
        failure
    });
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = failures.collect();
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn batch() -> SqsEvent {
        let attempt = json!({
            "delivery": "dlv_01m7wh697q3m7qqm482zyh92yd", "attempt": 1, "webhook": "whk_01m74zy5eva3kj3s4w04zg1hhc",
        });
        let batch = json!({ "Records": [
            {
                "messageId": "one",
                "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:slow",
                "body": json!({ "entity": "demo-hotel", "attempts": [attempt] }).to_string(),
            },
            { "messageId": "two", "body": "garbage" },
        ] });
        serde_json::from_value(batch).expect("a batch")
    }

    #[test]
    fn every_message_of_a_batch_is_read_even_a_malformed_one() {
        assert!(queue_arn(&batch()).ends_with(":slow"));
        let [one, two] = read(batch()).try_into().expect("two messages");
        let attempts = one.attempts.expect("one of ours");
        assert_eq!((one.message_id.as_str(), attempts[0].entity.as_str()), ("one", "demo-hotel"));
        assert!(two.message_id == "two" && two.attempts.is_err());
        assert_eq!((queue_arn(&SqsEvent::default()), read(SqsEvent::default()).len()), ("", 0));
    }

    #[test]
    fn the_response_names_only_the_messages_to_retry() {
        let response = serde_json::to_value(again(vec!["two".to_owned()])).expect("JSON");
        assert_eq!(response, json!({ "batchItemFailures": [{ "itemIdentifier": "two" }] }));
        assert_eq!(serde_json::to_value(again(Vec::new())).expect("JSON"), json!({ "batchItemFailures": [] }));
    }
}
