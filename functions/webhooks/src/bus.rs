//! The envelope of EventBridge's events.
//! <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html>

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use problem::{Pointer, Rule};
use webhooks::events::{ingest::BusEvent, rejected::Rejection};

/// The longest identifier of a bus event. EventBridge's are UUIDs.
const MAX_ID_LENGTH: usize = 255;

/// Lambda's record of an event that exhausted its retries. It is a message on the queue of rejected events, which an
/// operator sends again unchanged. <https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html>
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GivenUp<'a> {
    #[serde(rename = "requestContext")]
    _request_context: IgnoredAny,
    #[serde(borrow)]
    request_payload: &'a RawValue,
}

/// The event itself, extracted from Lambda's record if there is one.
pub fn unwrapped(event: &RawValue) -> &RawValue {
    serde_json::from_str(event.get()).map_or(event, |GivenUp { request_payload, .. }| request_payload)
}

/// Reads an event's identifier and detail. Other members are ignored, since EventBridge may add more.
///
/// # Errors
/// Rejects an event without this envelope.
pub fn read(event: &RawValue) -> Result<BusEvent<'_>, Rejection> {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        detail: Option<&'a RawValue>,
    }
    // serde would also read a two-element list as the two members.
    let members = Some(event.get()).filter(|event| event.starts_with('{')).map(serde_json::from_str);
    let Some(Ok(Members { id, detail })) = members else {
        return Err(Rejection::invalid(
            Pointer::default(),
            Rule::InvalidType,
            "must be an object with one `id` and one `detail`",
        ));
    };
    let id = id.and_then(|id| serde_json::from_str(id.get()).ok()).filter(|id: &String| is_id(id));
    match (id, detail) {
        (Some(id), Some(detail)) => Ok(BusEvent { id, detail }),
        (None, _) => {
            Err(Rejection::invalid("id", Rule::InvalidFormat, "is missing, or is not a valid event identifier"))
        }
        (_, None) => Err(Rejection::invalid("detail", Rule::Required, "is missing")),
    }
}

fn is_id(text: &str) -> bool {
    (1..=MAX_ID_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use problem::Violation;

    use super::*;

    const DETAIL: &str = r#"{"type":"booking.created","managingEntityIdentifier":"a","data":{ "b":1e400}}"#;

    fn read_text(event: &str) -> Result<(String, String), (String, Vec<String>)> {
        let event = RawValue::from_string(event.to_owned()).expect("JSON");
        match read(&event) {
            Ok(BusEvent { id, detail }) => Ok((id, detail.get().to_owned())),
            Err(Rejection { reason, violations }) => {
                Err((reason.to_owned(), violations.iter().map(Violation::name).collect()))
            }
        }
    }

    fn whole() -> String {
        format!(r#"{{"version":"0","id":"e-1","source":"bookings","time":"2026-11-20T09:45:00Z","detail":{DETAIL}}}"#)
    }

    #[test]
    fn an_event_has_its_identifier_and_its_unchanged_detail() {
        assert_eq!(read_text(&whole()), Ok(("e-1".into(), DETAIL.into())));
        // An event must not be lost because AWS added a member to the envelope.
        let replayed = whole().replace("\"version\"", "\"replay-name\":\"again\",\"more\":{},\"version\"");
        assert_eq!(read_text(&replayed), read_text(&whole()));
    }

    #[test]
    fn an_event_without_its_envelope_is_rejected() {
        let detail = DETAIL;
        for (event, field) in [
            ("null".to_owned(), "body"),
            ("[]".to_owned(), "body"),
            (format!(r#"["e-1", {detail}]"#), "body"),
            (format!(r#"{{"id":"e-1","id":"e-2","detail":{detail}}}"#), "body"),
            ("{}".to_owned(), "id"),
            (format!(r#"{{"id":"","detail":{detail}}}"#), "id"),
            (format!(r#"{{"id":"e\n1","detail":{detail}}}"#), "id"),
            (format!(r#"{{"id":"{}","detail":{detail}}}"#, "x".repeat(256)), "id"),
            (format!(r#"{{"id":1,"detail":{detail}}}"#), "id"),
            (r#"{"id":"e-1"}"#.to_owned(), "detail"),
        ] {
            assert_eq!(read_text(&event), Err(("invalid-request".into(), vec![field.into()])), "{event}");
        }
    }

    #[test]
    fn an_event_is_extracted_from_the_record_of_lambda() {
        let event = whole();
        let given_up = format!(
            r#"{{"version":"1.0","requestContext":{{"condition":"RetriesExhausted"}},"requestPayload": {event},"responsePayload":{{}}}}"#
        );
        let given_up = RawValue::from_string(given_up).expect("JSON");
        assert_eq!(unwrapped(&given_up).get(), event);
        for plain in [event.as_str(), "null", "{}", r#"{"requestPayload":{}}"#] {
            let plain = RawValue::from_string(plain.to_owned()).expect("JSON");
            assert_eq!(unwrapped(&plain).get(), plain.get());
        }
    }
}
