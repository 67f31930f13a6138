//! The protocol, AWS JSON 1.0, which every SDK supports.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-making-api-requests-json.html>

mod answers;
mod batch;
mod requests;

use std::time::Duration;

use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName},
};
use hyper::body::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    message::NewMessage,
    queues::{Queues, Receive},
    refusal::{Kind, Refusal, within},
    settings::MAX_BYTES,
};
use answers::{Answer, AttributesAnswer, Messages, Nothing, QueueUrl, QueueUrls, SentAnswer};
use batch::Batch;
use requests::{
    AttributesRequest, BatchRequest, CreateRequest, Entry, ListRequest, QueueRequest, ReceiptRequest, ReceiveRequest,
    SendRequest,
};

const JSON: HeaderValue = HeaderValue::from_static("application/x-amz-json-1.0");
/// The header with the older query protocol's error code, which SDKs use to distinguish errors.
const QUERY_ERROR: HeaderName = HeaderName::from_static("x-amzn-query-error");

impl Queues {
    /// Responds to an operation, given its name (`SendMessage`, which is the header `X-Amz-Target` without
    /// `AmazonSQS.`) and the request's body. The response has a status, `Content-Type`, a body and, for an error,
    /// `x-amzn-query-error`. A `ReceiveMessage` may take as long as its `WaitTimeSeconds`; dropping the future stops
    /// the wait without receiving a message.
    pub async fn answer(&self, operation: &str, body: &[u8]) -> Response<Bytes> {
        match self.perform(operation, body).await {
            Ok(answer) => response(StatusCode::OK, &answer),
            Err(Refusal { kind, message }) => {
                let mut refused =
                    response(StatusCode::BAD_REQUEST, &json!({ "__type": kind.shape(), "message": message }));
                let code = HeaderValue::from_str(&format!("{};Sender", kind.code()));
                refused.headers_mut().extend(code.ok().map(|code| (QUERY_ERROR, code)));
                refused
            }
        }
    }

    async fn perform(&self, operation: &str, body: &[u8]) -> Result<Answer, Refusal> {
        Ok(match operation {
            "SendMessage" => Answer::Sent(self.send_message(read(body)?)?),
            "SendMessageBatch" => Answer::Batch(self.send_batch(read(body)?)?),
            "ReceiveMessage" => Answer::Messages(self.receive_messages(read(body)?).await?),
            "DeleteMessage" => Answer::Nothing(self.delete_message(read(body)?)?),
            "DeleteMessageBatch" => Answer::Batch(self.delete_batch(read(body)?)?),
            "CreateQueue" => Answer::Url(self.create_queue(read(body)?)?),
            "GetQueueAttributes" => Answer::Attributes(self.queue_attributes(read(body)?)?),
            "ListQueues" => Answer::Urls(self.list_queues(read(body)?)),
            "PurgeQueue" => Answer::Nothing(self.purge_queue(read(body)?)?),
            other => {
                let message = format!("The action {other} is not valid for this endpoint.");
                return Err(Refusal::new(Kind::InvalidAction, message));
            }
        })
    }

    fn send_message(&self, request: SendRequest) -> Result<SentAnswer, Refusal> {
        let queue = queue(&request.queue_url)?;
        // SQS reports an invalid queue before an invalid message.
        self.require(queue)?;
        Ok(self.send(queue, request.message.read()?)?.into())
    }

    fn send_batch(&self, request: BatchRequest<requests::NewEntry>) -> Result<Batch, Refusal> {
        let queue = queue(&request.queue_url)?;
        self.require(queue)?;
        batch::check(&request.entries)?;
        let read: Vec<(String, Result<NewMessage, Refusal>)> =
            request.entries.into_iter().map(|entry| (entry.id, entry.message.read())).collect();
        let size: usize = read.iter().filter_map(|(_, message)| Some(message.as_ref().ok()?.size())).sum();
        if size > MAX_BYTES {
            let message =
                format!("Batch requests cannot be longer than {MAX_BYTES} bytes. You have sent {size} bytes.");
            return Err(Refusal::new(Kind::BatchRequestTooLong, message));
        }
        Ok(Batch::of(read, |message| self.send(queue, message?).map(|sent| SentAnswer::from(sent).into())))
    }

    async fn receive_messages(&self, request: ReceiveRequest) -> Result<Messages, Refusal> {
        let queue = queue(&request.queue_url)?;
        let seconds = |name, value: Option<i64>, most| -> Result<Option<Duration>, Refusal> {
            value.map(|value| Ok(Duration::from_secs(within(name, Some(value), 0..=most, 0)?))).transpose()
        };
        let receive = Receive {
            most: within("MaxNumberOfMessages", request.max_number_of_messages, 1..=10, 1)?,
            visibility: seconds("VisibilityTimeout", request.visibility_timeout, 43_200)?,
            wait: seconds("WaitTimeSeconds", request.wait_time_seconds, 20)?,
        };
        let received = self.receive(queue, receive).await?;
        Ok(Messages::of(&received, &request, self.account()))
    }

    fn delete_message(&self, request: ReceiptRequest) -> Result<Nothing, Refusal> {
        let queue = queue(&request.queue_url)?;
        self.require(queue)?;
        let receipt = request.receipt_handle.ok_or_else(|| Refusal::missing("ReceiptHandle"))?;
        self.delete(queue, &receipt)?;
        Ok(Nothing {})
    }

    fn delete_batch(&self, request: BatchRequest<requests::ReceiptEntry>) -> Result<Batch, Refusal> {
        let queue = queue(&request.queue_url)?;
        self.require(queue)?;
        batch::check(&request.entries)?;
        let entries = request.entries.into_iter().map(|entry| (entry.id, entry.receipt_handle));
        Ok(Batch::of(entries, |receipt| {
            let receipt = receipt.ok_or_else(|| Refusal::missing("ReceiptHandle"))?;
            self.delete(queue, &receipt).map(|()| Nothing {}.into())
        }))
    }

    fn create_queue(&self, request: CreateRequest) -> Result<QueueUrl, Refusal> {
        let name = request.queue_name.ok_or_else(|| Refusal::missing("QueueName"))?;
        self.create(&name, &request.attributes)?;
        Ok(QueueUrl { queue_url: self.url(&name) })
    }

    fn queue_attributes(&self, request: AttributesRequest) -> Result<AttributesAnswer, Refusal> {
        let mut attributes = self.attributes(queue(&request.queue_url)?)?;
        let names = request.attribute_names;
        names.iter().try_for_each(|name| Self::check_attribute(name, &attributes))?;
        if !names.iter().any(|name| name == "All") {
            attributes.retain(|name, _| names.contains(name));
        }
        Ok(AttributesAnswer { attributes })
    }

    fn list_queues(&self, request: ListRequest) -> QueueUrls {
        let names = self.names().into_iter().filter(|name| name.starts_with(&request.queue_name_prefix));
        QueueUrls { queue_urls: names.map(|name| self.url(&name)).collect() }
    }

    fn purge_queue(&self, request: QueueRequest) -> Result<Nothing, Refusal> {
        self.purge(queue(&request.queue_url)?)?;
        Ok(Nothing {})
    }
}

/// The queue's name, which ends its URL.
fn queue(url: &Option<String>) -> Result<&str, Refusal> {
    let url = url.as_deref().ok_or_else(|| Refusal::missing("QueueUrl"))?;
    Ok(url.rsplit('/').next().unwrap_or(url))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| Refusal::new(Kind::Serialization, error.to_string()))
}

fn response(status: StatusCode, body: &impl Serialize) -> Response<Bytes> {
    let body = serde_json::to_vec(body).expect("maps have texts as keys, and nothing else can fail");
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use base::SystemRandom;
    use futures::FutureExt;
    use serde_json::Value;

    use super::*;
    use crate::timer::tests::HandTimer;

    fn queues() -> Queues {
        let timer = Box::new(HandTimer::new());
        let queues = Queues::timed("http://127.0.0.2:1", "r", "1", timer, Arc::new(SystemRandom));
        queues.create("q", &[].into()).unwrap();
        queues
    }

    /// The status, the error code and the body.
    fn ask(queues: &Queues, operation: &str, request: &Value) -> (u16, String, Value) {
        let answer = queues.answer(operation, request.to_string().as_bytes()).now_or_never().expect("it need not wait");
        let code = answer.headers().get(QUERY_ERROR).map(|code| code.to_str().unwrap().to_owned());
        (answer.status().as_u16(), code.unwrap_or_default(), serde_json::from_slice(answer.body()).unwrap())
    }

    fn done(queues: &Queues, operation: &str, mut request: Value) -> Value {
        request["QueueUrl"] = "http://elsewhere/1/q".into();
        let (status, code, answer) = ask(queues, operation, &request);
        assert_eq!((status, code.as_str()), (200, ""), "{operation} {request}: {answer}");
        answer
    }

    fn refused(queues: &Queues, operation: &str, mut request: Value) -> String {
        request["QueueUrl"] = "http://elsewhere/1/q".into();
        let (status, code, answer) = ask(queues, operation, &request);
        assert_eq!(status, 400, "{operation} {request}: {answer}");
        assert!(answer["message"].is_string() && answer["__type"].as_str().unwrap().starts_with("com.amazon"));
        code.strip_suffix(";Sender").expect("it is the sender's").to_owned()
    }

    #[test]
    fn a_message_is_sent_received_and_deleted() {
        let queues = queues();
        let attributes = json!({
            "one": { "DataType": "String", "StringValue": "1" },
            "two": { "DataType": "Binary", "BinaryValue": "AAE=" },
        });
        let sent = done(
            &queues,
            "SendMessage",
            json!({ "MessageBody": "text", "MessageAttributes": attributes,
            "MessageGroupId": "hotel" }),
        );
        assert_eq!(sent["MD5OfMessageBody"], "1cb251ec0d568de6a929b520c4aed8d1");
        let nothing_asked = json!({ "VisibilityTimeout": 0 });
        let received = done(&queues, "ReceiveMessage", nothing_asked)["Messages"][0].clone();
        assert_eq!((&received["Body"], &received["MessageId"]), (&json!("text"), &sent["MessageId"]));
        assert!(received["Attributes"].is_null() && received["MessageAttributes"].is_null(), "{received}");
        let everything = json!({ "AttributeNames": ["All"], "MessageAttributeNames": ["All"] });
        let received = done(&queues, "ReceiveMessage", everything)["Messages"][0].clone();
        assert_eq!(received["MessageAttributes"], attributes);
        assert_eq!(received["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"]);
        assert_eq!(
            received["Attributes"],
            json!({
                "SenderId": "1", "SentTimestamp": "1800000000000", "ApproximateReceiveCount": "2",
                "ApproximateFirstReceiveTimestamp": "1800000000000", "MessageGroupId": "hotel",
            })
        );
        done(&queues, "DeleteMessage", json!({ "ReceiptHandle": received["ReceiptHandle"] }));
        assert_eq!(done(&queues, "ReceiveMessage", json!({})), json!({}));
    }

    #[test]
    fn a_receiver_gets_the_attributes_that_it_names() {
        let queues = queues();
        let text = json!({ "DataType": "String", "StringValue": "x" });
        let attributes = json!({ "a.one": text, "a.two": text, "b": text });
        done(&queues, "SendMessage", json!({ "MessageBody": "text", "MessageAttributes": attributes }));
        for (asked, expected) in [
            (json!(["b"]), vec!["b"]),
            (json!(["a.*"]), vec!["a.one", "a.two"]),
            (json!([".*"]), vec!["a.one", "a.two", "b"]),
            (json!(["c"]), vec![]),
        ] {
            let request = json!({ "MessageAttributeNames": asked, "VisibilityTimeout": 0,
                "MessageSystemAttributeNames": ["SentTimestamp", "AWSTraceHeader"] });
            let received = done(&queues, "ReceiveMessage", request)["Messages"][0].clone();
            let names: Vec<_> =
                received["MessageAttributes"].as_object().into_iter().flat_map(|map| map.keys()).collect();
            assert_eq!(names, expected, "{asked}");
            assert_eq!(received["Attributes"], json!({ "SentTimestamp": "1800000000000" }));
        }
    }

    #[test]
    fn each_entry_of_a_batch_succeeds_or_fails_by_itself() {
        let queues = queues();
        let sent = done(
            &queues,
            "SendMessageBatch",
            json!({ "Entries": [
            { "Id": "good", "MessageBody": "text" },
            { "Id": "bad", "MessageBody": "text", "DelaySeconds": 901 },
            { "Id": "empty", "MessageBody": "" },
        ] }),
        );
        assert_eq!(sent["Successful"][0]["Id"], "good");
        let failed = |answer: &Value| -> Vec<(String, String, bool)> {
            let entries = answer["Failed"].as_array().unwrap().iter();
            let text = |entry: &Value, name: &str| entry[name].as_str().unwrap().to_owned();
            entries.map(|entry| (text(entry, "Id"), text(entry, "Code"), entry["SenderFault"] == true)).collect()
        };
        let entry = |id: &str, code: &str| (id.to_owned(), code.to_owned(), true);
        assert_eq!(failed(&sent), [entry("bad", "InvalidParameterValue"), entry("empty", "MissingParameter")]);
        let receipt = done(&queues, "ReceiveMessage", json!({}))["Messages"][0]["ReceiptHandle"].clone();
        let deleted = done(
            &queues,
            "DeleteMessageBatch",
            json!({ "Entries": [
            { "Id": "1", "ReceiptHandle": receipt }, { "Id": "2", "ReceiptHandle": "x" },
        ] }),
        );
        assert_eq!(deleted["Successful"], json!([{ "Id": "1" }]));
        assert_eq!(failed(&deleted), [entry("2", "ReceiptHandleIsInvalid")]);
    }

    #[test]
    fn a_batch_that_is_malformed_is_refused_as_a_whole() {
        let queues = queues();
        let entry = |id: &str, size: usize| json!({ "Id": id, "MessageBody": "x".repeat(size) });
        let many: Vec<_> = (0..11).map(|number| entry(&number.to_string(), 1)).collect();
        for (entries, code) in [
            (json!([]), "AWS.SimpleQueueService.EmptyBatchRequest"),
            (json!(many), "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"),
            (json!([entry("a", 1), entry("a", 1)]), "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"),
            (json!([entry("a b", 1)]), "AWS.SimpleQueueService.InvalidBatchEntryId"),
            (json!([entry(&"a".repeat(81), 1)]), "AWS.SimpleQueueService.InvalidBatchEntryId"),
            (json!([entry("a", MAX_BYTES), entry("b", 1)]), "AWS.SimpleQueueService.BatchRequestTooLong"),
        ] {
            assert_eq!(refused(&queues, "SendMessageBatch", json!({ "Entries": entries })), code);
        }
        done(&queues, "SendMessageBatch", json!({ "Entries": [entry("a", MAX_BYTES)] }));
        assert_eq!(refused(&queues, "DeleteMessageBatch", json!({})), "AWS.SimpleQueueService.EmptyBatchRequest");
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let queues = queues();
        for (operation, request) in [
            ("ReceiveMessage", json!({ "MaxNumberOfMessages": 0 })),
            ("ReceiveMessage", json!({ "MaxNumberOfMessages": 11 })),
            ("ReceiveMessage", json!({ "WaitTimeSeconds": 21 })),
            ("ReceiveMessage", json!({ "VisibilityTimeout": 43201 })),
            ("SendMessage", json!({ "MessageBody": "x", "DelaySeconds": -1 })),
            ("SendMessage", json!({ "MessageBody": "x", "MessageDeduplicationId": "x" })),
            ("SendMessage", json!({ "MessageBody": "x".repeat(MAX_BYTES + 1) })),
        ] {
            assert_eq!(refused(&queues, operation, request), "InvalidParameterValue");
        }
        for (operation, request) in
            [("SendMessage", json!({})), ("DeleteMessage", json!({})), ("CreateQueue", json!({}))]
        {
            assert_eq!(refused(&queues, operation, request), "MissingParameter");
        }
        assert_eq!(refused(&queues, "DeleteMessage", json!({ "ReceiptHandle": "x" })), "ReceiptHandleIsInvalid");
        assert_eq!(refused(&queues, "AddPermission", json!({})), "InvalidAction");
        assert_eq!(refused(&queues, "SendMessage", json!({ "MessageBody": 1 })), "MalformedInput");
        let attribute =
            json!({ "MessageBody": "x", "MessageAttributes": { "a": { "DataType": "Binary", "BinaryValue": "é" } } });
        assert_eq!(refused(&queues, "SendMessage", attribute), "InvalidParameterValue");
    }

    #[test]
    fn queues_are_made_found_and_described() {
        let queues = queues();
        let url = json!({ "QueueUrl": "http://127.0.0.2:1/1/made" });
        let make = json!({ "QueueName": "made", "Attributes": { "DelaySeconds": "3" } });
        assert_eq!(done(&queues, "CreateQueue", make), url);
        assert_eq!(done(&queues, "ListQueues", json!({}))["QueueUrls"].as_array().unwrap().len(), 2);
        assert_eq!(
            done(&queues, "ListQueues", json!({ "QueueNamePrefix": "m" })),
            json!({ "QueueUrls": [url["QueueUrl"]] })
        );
        let asked = json!({ "AttributeNames": ["QueueArn", "RedrivePolicy"] });
        assert_eq!(
            done(&queues, "GetQueueAttributes", asked),
            json!({ "Attributes": { "QueueArn": "arn:aws:sqs:r:1:q" } })
        );
        let all = done(&queues, "GetQueueAttributes", json!({ "AttributeNames": ["All"] }));
        assert_eq!(all["Attributes"]["VisibilityTimeout"], "30");
        let unknown = json!({ "AttributeNames": ["Colour"] });
        assert_eq!(refused(&queues, "GetQueueAttributes", unknown), "InvalidAttributeName");
        done(&queues, "SendMessage", json!({ "MessageBody": "x" }));
        done(&queues, "PurgeQueue", json!({}));
        assert_eq!(done(&queues, "ReceiveMessage", json!({})), json!({}));
        for operation in ["SendMessage", "ReceiveMessage", "DeleteMessage", "PurgeQueue", "GetQueueAttributes"] {
            let (status, code, _) = ask(&queues, operation, &json!({ "QueueUrl": "http://127.0.0.2:1/1/other" }));
            assert_eq!((status, code.as_str()), (400, "AWS.SimpleQueueService.NonExistentQueue;Sender"), "{operation}");
            assert_eq!(ask(&queues, operation, &json!({})).1, "MissingParameter;Sender", "{operation}");
        }
    }
}
