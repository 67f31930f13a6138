//! Rejected events from the bus. The fault is the sender's, so a retry would fail again. They go to a separate queue
//! for an operator, byte for byte and with the reason.

use std::borrow::Cow;

use aws_sdk_sqs::{Client, types::MessageAttributeValue};
use serde::Serialize;

use base::{Environment, FromEnvironment};
use problem::{Pointer, Problem, Rule, Violation};
use storage::aws::{Aws, CallError};

/// The largest message that SQS accepts, with its attributes: 1 MiB.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>
const MAX_BYTES: usize = 1024 * 1024;
/// The bytes reserved for the attribute that describes changes.
const ROOM_FOR_CHANGES: usize = 256;
/// The maximum number of violations in a message, which must leave room for the event.
const MAX_VIOLATIONS: usize = 20;
/// The member of a bus event that contains the sender's part.
pub(super) const DETAIL: &str = "detail";
/// The type of every attribute.
const TEXT: &str = "String";

/// Why an event was not published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// The kind of Problem that the same request would get over HTTP.
    pub reason: &'static str,
    /// The violations, with pointers into the bus event.
    pub violations: Vec<Violation>,
}

/// The queue of rejected events.
#[derive(Debug, Clone)]
pub struct RejectedEvents {
    client: Client,
    url: String,
}

/// The queue did not accept an event.
#[derive(Debug, thiserror::Error)]
#[error("the queue of rejected events did not accept an event: {0}")]
pub struct NotTaken(String);

/// A message of the queue.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    body: String,
    attributes: Vec<(&'static str, String)>,
}

impl Rejection {
    /// The rejection for one bad value.
    pub fn invalid(pointer: impl Into<Pointer>, rule: Rule, detail: &str) -> Self {
        Self::of(&Violation::body(pointer, rule, detail).into(), Clone::clone)
    }

    /// The rejection for a Problem with the value at this pointer into the bus event.
    pub(super) fn whole(problem: &Problem, pointer: &Pointer) -> Self {
        let mut rejection = Self::of(problem, |_| pointer.clone());
        if rejection.violations.is_empty() {
            rejection.violations.push(Violation::body(pointer.clone(), Rule::TooLong, problem.detail.clone()));
        }
        rejection
    }

    /// The rejection for a Problem whose pointers are relative to the sender's part of the bus event.
    pub(super) fn members(problem: &Problem) -> Self {
        let detail = Pointer::from(DETAIL);
        Self::of(problem, |member| detail.within(member))
    }

    fn of(problem: &Problem, in_event: impl Fn(&Pointer) -> Pointer) -> Self {
        let violations = problem.violations().into_iter();
        let violations =
            violations.map(|violation| Violation { pointer: in_event(&violation.pointer), ..violation }).collect();
        Self { reason: problem.kind.slug(), violations }
    }
}

impl RejectedEvents {
    /// The queue at this address.
    pub fn connect(aws: &Aws, url: impl Into<String>) -> Self {
        Self { client: aws.sqs(), url: url.into() }
    }

    /// Puts an event on the queue, with the attributes `reason` and `violations` (a JSON list). If SQS cannot accept
    /// the event unchanged, the attribute `changed` describes the change.
    pub async fn put(&self, event: &str, rejection: &Rejection) -> Result<(), NotTaken> {
        let Message { body, attributes } = Message::of(event, rejection);
        let mut request = self.client.send_message().queue_url(&self.url).message_body(body);
        for (name, value) in attributes {
            let value = MessageAttributeValue::builder().data_type(TEXT).string_value(value).build();
            let value = value.map_err(|error| NotTaken(error.to_string()))?;
            request = request.message_attributes(name, value);
        }
        request.send().await.map_err(|error| NotTaken(CallError::of(&error).to_string()))?;
        Ok(())
    }
}

impl Message {
    fn of(event: &str, rejection: &Rejection) -> Self {
        let listed = &rejection.violations[..rejection.violations.len().min(MAX_VIOLATIONS)];
        let violations = serde_json::to_string(listed).expect("texts can always be written");
        let mut attributes =
            vec![("reason", rejection.reason.to_owned()), ("violations", acceptable(&violations).into_owned())];
        let bytes = |(name, value): &(&str, String)| name.len() + TEXT.len() + value.len();
        let room = MAX_BYTES - ROOM_FOR_CHANGES - attributes.iter().map(bytes).sum::<usize>();

        let mut changes = Vec::new();
        let mut body = acceptable(event);
        if let Cow::Owned(_) = body {
            changes.push("U+FFFE and U+FFFF are written as escapes, because SQS does not accept them".to_owned());
        }
        if body.len() > room {
            let kept = body.floor_char_boundary(room);
            changes
                .push(format!("cut off after {kept} of {} bytes, because an SQS message cannot be larger", body.len()));
            body.to_mut().truncate(kept);
        }
        if !changes.is_empty() {
            attributes.push(("changed", changes.join("; ")));
        }
        Self { body: body.into_owned(), attributes }
    }
}

/// JSON with only the characters that SQS accepts, which are those of XML. U+FFFE and U+FFFF, which JSON allows in
/// strings only, become escapes. Control characters are always escaped in JSON.
fn acceptable(json: &str) -> Cow<'_, str> {
    if json.contains(['\u{fffe}', '\u{ffff}']) {
        json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff").into()
    } else {
        json.into()
    }
}

/// The queue of rejected events: `REJECTED_EVENTS_URL`.
#[derive(Debug, Clone)]
pub struct RejectedEventsSettings {
    /// The address of the SQS queue.
    pub url: String,
}

impl FromEnvironment for RejectedEventsSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { url: environment.required("REJECTED_EVENTS_URL")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn rejection(fields: usize) -> Rejection {
        let violation = |number| Violation::body(Pointer::from(DETAIL).at(number), Rule::Unknown, "is unknown");
        Rejection { reason: "invalid-request", violations: (0..fields).map(violation).collect() }
    }

    #[test]
    fn a_rejected_event_is_queued_byte_for_byte_with_its_reason() {
        let event = "{ \"a\" : 1e400,\r\n\"u\":\"\\u0000é\u{7f}\u{fffd}😀\" }";
        let violations = r#"[{"in":"body","pointer":"/detail/0","code":"unknown","detail":"is unknown"}]"#;
        assert_eq!(
            Message::of(event, &rejection(1)),
            Message {
                body: event.to_owned(),
                attributes: vec![("reason", "invalid-request".to_owned()), ("violations", violations.to_owned())],
            }
        );
    }

    #[test]
    fn characters_that_sqs_does_not_take_are_escaped_and_the_change_is_noted() {
        let event = "{\"a\":\"\u{fffe}\u{ffff}\"}";
        let message = Message::of(event, &rejection(0));
        assert_eq!(message.body, r#"{"a":"\ufffe\uffff"}"#);
        let before: Value = serde_json::from_str(event).expect("JSON");
        let after: Value = serde_json::from_str(&message.body).expect("JSON");
        assert_eq!(before, after);
        assert!(matches!(&message.attributes[2], ("changed", how) if how.contains("escapes")));
        let mut strange = rejection(1);
        strange.violations[0].pointer = "\u{ffff}".into();
        assert!(!Message::of("{}", &strange).attributes[1].1.contains('\u{ffff}'));
    }

    #[test]
    fn an_event_too_large_for_the_queue_is_cut_between_two_characters() {
        let size = |message: &Message| {
            let attributes = message.attributes.iter().map(|(name, value)| name.len() + TEXT.len() + value.len());
            message.body.len() + attributes.sum::<usize>()
        };
        for character in ["x", "é", "😀", "\u{ffff}"] {
            let event = format!("{{\"a\":\"{}\"}}", character.repeat(MAX_BYTES / character.len()));
            let message = Message::of(&event, &rejection(1_000));
            assert!(size(&message) <= MAX_BYTES, "{character}: {}", size(&message));
            assert!(size(&message) > MAX_BYTES - 300, "{character}: {}", size(&message));
            let said = &message.attributes[2].1;
            assert!(said.contains(&format!("cut off after {}", message.body.len())), "{said}");
        }
    }
}
