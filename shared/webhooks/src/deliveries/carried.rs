//! A delivery in the message of its first attempt: its head as it was written, and its event. So a dispatcher reads
//! neither, and needs no claim while the message is fresh (`claim.rs`).
//!
//! The table stays the truth: the attempt is recorded on condition that the head is there as the message has it.

use serde::{Deserialize, Serialize};

use super::item::{HeadItem, partition};
use crate::events::{Event, store::StoredEvent};
use base::{DeliveryId, trace::Trace};

/// The longest carried delivery, in bytes: ten such messages are billed as one request, which has 64 KB.
/// <https://aws.amazon.com/sqs/pricing/>
const MAX_BYTES: usize = 6_000;
/// Characters that JSON may have and a message may not.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
const NOT_IN_MESSAGES: [char; 2] = ['\u{FFFE}', '\u{FFFF}'];

/// What a message carries.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) head: HeadItem,
    pub(super) event: StoredEvent,
}

#[derive(Serialize)]
struct Written<'a> {
    head: &'a HeadItem,
    body: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<&'a str>,
}

#[derive(Deserialize)]
struct Read {
    head: HeadItem,
    body: String,
    traceparent: Option<String>,
    tracestate: Option<String>,
}

/// A new delivery of the event as its message carries it, as JSON; `None` for one that is too long, or has a character
/// that no message may have.
pub fn carried(head: &HeadItem, event: &Event) -> Option<String> {
    if event.body.len() > MAX_BYTES {
        return None;
    }
    let trace = event.trace.as_ref();
    let (traceparent, tracestate) = (trace.map(Trace::traceparent), trace.and_then(Trace::tracestate));
    let text = serde_json::to_string(&Written { head, body: &event.body, traceparent, tracestate }).ok()?;
    (text.len() <= MAX_BYTES && !text.contains(NOT_IN_MESSAGES)).then_some(text)
}

impl Carried {
    /// What a message for this delivery carries; `None` where it is malformed or another's, so that it is looked up.
    pub(super) fn read(text: &str, delivery: &DeliveryId) -> Option<Self> {
        let Read { head, body, traceparent, tracestate } = serde_json::from_str(text).ok()?;
        let is_of =
            |head: &HeadItem| DeliveryId::of(&head.event, &head.delivery.webhook_identifier) == head.delivery.id;
        if head.delivery.id != *delivery || head.pk != partition(delivery) || !is_of(&head) {
            return None;
        }
        let event = StoredEvent::of(&head.event, body, (traceparent, tracestate), head.expires_at);
        Some(Self { head, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::item::tests::{NOW, event_and_head};
    use base::testing::CountingRandom;

    #[test]
    fn a_delivery_is_read_from_its_message_as_it_was_written() {
        let (event, head) = event_and_head("{\"text\":\"ä\\u0000\\\"\"}");
        let event = Event { trace: Some(Trace::named("one").next_span(&CountingRandom::default())), ..event };
        let read = Carried::read(&carried(&head, &event).expect("short"), &head.delivery.id).expect("its own");
        let json = |head: &HeadItem| serde_json::to_value(head).expect("JSON");
        assert_eq!(json(&read.head), json(&head));
        assert_eq!((&read.event.body, Some(&read.event.trace)), (&event.body, event.trace.as_ref()));
        assert!(read.event.is_kept(NOW));
    }

    #[test]
    fn a_delivery_that_no_message_can_carry_is_looked_up() {
        let long = format!("{{\"text\":\"{}\"}}", "x".repeat(MAX_BYTES));
        for data in [long.as_str(), "{\"text\":\"\u{FFFF}\"}"] {
            let (event, head) = event_and_head(data);
            assert_eq!(carried(&head, &event), None);
        }
        let (event, head) = event_and_head("{}");
        let text = carried(&head, &event).expect("short");
        let (_, other) = event_and_head("{}");
        assert!(Carried::read(&text, &head.delivery.id).is_some());
        assert!(
            Carried::read(&text, &DeliveryId::of(&other.event, &base::WebhookId::new(NOW, &CountingRandom::default())))
                .is_none()
        );
        assert!(Carried::read("{}", &head.delivery.id).is_none());
    }
}
