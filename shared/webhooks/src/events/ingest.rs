//! Events of the platform's own services, which come over EventBridge: a rule hands them to a function, which publishes
//! them as a request over HTTP would. Who may put events on the bus is a matter of IAM, and decides alone: the entity in
//! an event is taken at its word.
//!
//! EventBridge and Lambda give an event at least once, and so does whoever puts a rejected one on its way again. The bus
//! event's identifier is an idempotency key, in a name space of its own: what comes again makes nothing new, even where
//! webhooks have changed meanwhile.

use aws_lc_rs::digest;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{
    EventType, members,
    publish::{PublishError, Published, Publisher},
    rejected::{NotTaken, RejectedEvents, Rejection},
};
use auth::entity::{AuthorizedEntity, EntityId};
use base::logging::Metric;
use problem::{JsonBody, Problem, json_body::Violation};
use storage::table::TableError;

/// The longest identifier of a bus event; EventBridge's own are UUIDs.
const MAX_ID_LENGTH: usize = 255;

/// Everything that taking events from the bus needs.
pub struct Ingestion {
    /// What publishes them.
    pub publisher: Publisher,
    /// Where those go that cannot be published.
    pub rejected: RejectedEvents,
    /// The name of this deployment, for the metric of rejected events.
    pub environment: String,
}

/// What became of an event of the bus.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ingested {
    /// It is published, now or when it came before.
    Published(Published),
    /// It cannot be published, and stands on the queue of rejected events.
    Rejected(Rejection),
}

/// Why it is not known what becomes of an event. Trying again helps.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The table failed.
    #[error("the table failed an event of the bus")]
    Table(#[from] TableError),
    /// An event was to be rejected.
    #[error("an event of the bus can be neither published nor rejected")]
    Rejection(#[from] NotTaken),
}

/// A bus event, as far as it matters here: with a member that nobody knows yet, it is one still.
/// <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html>
#[derive(Debug)]
struct BusEvent<'a> {
    id: String,
    detail: &'a RawValue,
}

/// What its sender says.
#[derive(Debug)]
struct Detail<'a> {
    entity: EntityId,
    kind: &'static EventType,
    data: &'a RawValue,
}

/// Lambda's own record of an event that it gave up: a message of the queue of rejected events, which an operator hands over
/// again as it is. <https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html>
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GivenUp<'a> {
    #[serde(rename = "requestContext")]
    _request_context: IgnoredAny,
    #[serde(borrow)]
    request_payload: &'a RawValue,
}

impl Ingestion {
    /// Publishes an event of the bus, or rejects it when that cannot be done.
    pub async fn ingest(&self, event: Box<RawValue>) -> Result<Ingested, IngestError> {
        let event = unwrapped(&event);
        let (id, outcome) = match BusEvent::read(event) {
            Ok(read) => (read.id.clone(), self.publish(&read).await?),
            Err(rejection) => (String::new(), Err(rejection)),
        };
        let rejection = match outcome {
            Ok(published) => return Ok(Ingested::Published(published)),
            Err(rejection) => rejection,
        };
        self.rejected.put(event.get(), &rejection).await?;
        let violations = rejection.violations.len();
        tracing::warn!(busEventId = id, reason = rejection.reason, violations, "an event of the bus was rejected");
        Metric {
            name: "EventsRejected",
            value: 1.0,
            dimensions: &[("Environment", &self.environment), ("Reason", rejection.reason)],
            at: self.publisher.clock.now(),
        }
        .tell();
        Ok(Ingested::Rejected(rejection))
    }

    async fn publish(
        &self,
        BusEvent { id, detail }: &BusEvent<'_>,
    ) -> Result<Result<Published, Rejection>, TableError> {
        let Detail { entity, kind, data } = match Detail::read(detail) {
            Ok(detail) => detail,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let (key, content) = (format!("bus:{id}"), sha256(&without_space(detail.get())));
        match self.publisher.publish_once(&AuthorizedEntity::by_bus(entity), kind, data, &key, content).await {
            Ok(published) => Ok(Ok(published)),
            Err(PublishError::Table(error)) => Err(error),
            Err(error @ PublishError::TooLarge(_)) => Ok(Err(Rejection::whole(&error.into(), "detail.data"))),
            Err(error @ PublishError::KeyConflict) => {
                let message =
                    "came before with another detail; an event that is another needs an identifier of its own";
                let violations = vec![Violation { field: "id".to_owned(), message: message.to_owned() }];
                Ok(Err(Rejection { reason: Problem::from(error).kind.slug(), violations }))
            }
        }
    }
}

impl<'a> BusEvent<'a> {
    fn read(event: &'a RawValue) -> Result<Self, Rejection> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(borrow)]
            id: Option<&'a RawValue>,
            #[serde(borrow)]
            detail: Option<&'a RawValue>,
        }
        // Without the first condition, a list of two would be taken for the two members.
        let members = Some(event.get()).filter(|event| event.starts_with('{')).map(serde_json::from_str);
        let Some(Ok(Members { id, detail })) = members else {
            return Err(Rejection::invalid("event", "must be an object with one `id` and one `detail`"));
        };
        let id = id.and_then(|id| serde_json::from_str(id.get()).ok()).filter(|id: &String| is_id(id));
        match (id, detail) {
            (Some(id), Some(detail)) => Ok(Self { id, detail }),
            (None, _) => Err(Rejection::invalid("id", "must be there and be the identifier that the bus gave")),
            (_, None) => Err(Rejection::invalid("detail", "is missing")),
        }
    }
}

impl<'a> Detail<'a> {
    fn read(detail: &'a RawValue) -> Result<Self, Rejection> {
        let members = JsonBody::read(detail.get().as_bytes());
        let mut members = members.map_err(|problem| Rejection::whole(&problem, "detail"))?;
        let kind = members::kind(&mut members);
        let entity = members.required::<String>("managingEntityIdentifier", "the identifier of a managing entity");
        let entity =
            entity.and_then(|entity| members.violations.note("managingEntityIdentifier", EntityId::parse(&entity)));
        let data = members::data(&mut members);
        members.finish().map_err(|problem| Rejection::members(&problem, "detail"))?;
        match (entity, kind, data) {
            (Some(entity), Some(kind), Some(data)) => Ok(Self { entity, kind, data }),
            _ => Err(Rejection::invalid("detail", "lacks a value")),
        }
    }
}

/// The event, also where it stands in Lambda's record of it.
fn unwrapped(event: &RawValue) -> &RawValue {
    serde_json::from_str(event.get()).map_or(event, |GivenUp { request_payload, .. }| request_payload)
}

/// JSON without the white space between its parts, which is all that those who pass it on may change of an event.
fn without_space(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let stays = |character: &char| {
        let was_in_string = in_string;
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            _ => {}
        }
        was_in_string || !character.is_ascii_whitespace()
    };
    json.chars().filter(stays).collect()
}

fn is_id(text: &str) -> bool {
    (1..=MAX_ID_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn sha256(text: &str) -> String {
    BASE64_STANDARD.encode(digest::digest(&digest::SHA256, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(event: &str) -> Result<(String, String, String), (String, Vec<String>)> {
        let event = RawValue::from_string(event.to_owned()).expect("JSON");
        let read = BusEvent::read(&event).and_then(|event| Ok((event.id, Detail::read(event.detail)?)));
        match read {
            Ok((id, detail)) => Ok((id, detail.entity.to_string(), detail.data.get().to_owned())),
            Err(Rejection { reason, violations }) => {
                Err((reason.to_owned(), violations.into_iter().map(|violation| violation.field).collect()))
            }
        }
    }

    fn with_detail(detail: &str) -> String {
        format!(r#"{{"version":"0","id":"e-1","source":"bookings","time":"2026-11-20T09:45:00Z","detail":{detail}}}"#)
    }

    #[test]
    fn what_an_event_says_is_read_and_its_data_are_taken_as_they_came() {
        let data = r#"{ "b" : 1e400,"a":-0 , "u":"\ud800\u0000é" }"#;
        let detail =
            format!(r#"{{ "data" : {data}, "managingEntityIdentifier":"demo-hotel","type":"booking.created"}}"#);
        assert_eq!(read(&with_detail(&detail)), Ok(("e-1".into(), "demo-hotel".into(), data.into())));
        // What AWS adds to its envelope one day is no reason to lose an event.
        let replayed = with_detail(&detail).replace("\"version\"", "\"replay-name\":\"again\",\"more\":{},\"version\"");
        assert_eq!(read(&replayed), read(&with_detail(&detail)));
    }

    #[test]
    fn everything_that_is_wrong_with_a_detail_is_told_by_its_place() {
        let invalid = |fields: &[&str]| {
            Err(("invalid-request".to_owned(), fields.iter().map(|field| (*field).to_owned()).collect()))
        };
        for (detail, fields) in [
            ("[]", &["detail"][..]),
            (r#""text""#, &["detail"]),
            ("null", &["detail"]),
            ("{}", &["detail.type", "detail.managingEntityIdentifier", "detail.data"]),
            (
                r#"{"type":"nothing.happened","managingEntityIdentifier":"a/b","data":[],"body":1}"#,
                &["detail.type", "detail.managingEntityIdentifier", "detail.data", "detail.body"],
            ),
            (r#"{"type":"booking.created","managingEntityIdentifier":"a","data":{},"data":{}}"#, &["detail.data"]),
        ] {
            assert_eq!(read(&with_detail(detail)), invalid(fields), "{detail}");
        }
        let deep = format!(
            r#"{{"type":"booking.created","managingEntityIdentifier":"a","data":{}1{}}}"#,
            r#"{"a":"#.repeat(100),
            "}".repeat(100)
        );
        assert_eq!(read(&with_detail(&deep)), invalid(&["detail"]));
    }

    #[test]
    fn an_event_without_its_envelope_is_rejected() {
        let detail = r#"{"type":"booking.created","managingEntityIdentifier":"a","data":{}}"#;
        for (event, field) in [
            ("null".to_owned(), "event"),
            ("[]".to_owned(), "event"),
            (format!(r#"["e-1", {detail}]"#), "event"),
            (format!(r#"{{"id":"e-1","id":"e-2","detail":{detail}}}"#), "event"),
            ("{}".to_owned(), "id"),
            (format!(r#"{{"id":"","detail":{detail}}}"#), "id"),
            (format!(r#"{{"id":"e\n1","detail":{detail}}}"#), "id"),
            (format!(r#"{{"id":"{}","detail":{detail}}}"#, "x".repeat(256)), "id"),
            (format!(r#"{{"id":1,"detail":{detail}}}"#), "id"),
            (r#"{"id":"e-1"}"#.to_owned(), "detail"),
        ] {
            assert_eq!(read(&event), Err(("invalid-request".into(), vec![field.into()])), "{event}");
        }
    }

    #[test]
    fn what_is_wrong_as_a_whole_has_a_place_and_a_sentence() {
        let problem = Problem::too_large("The event", 262_144);
        let Rejection { reason, violations } = Rejection::whole(&problem, "detail.data");
        assert_eq!((reason, violations[0].field.as_str()), ("payload-too-large", "detail.data"));
        assert!(violations[0].message.contains("262144"), "{violations:?}");
    }

    #[test]
    fn an_event_that_lambda_gave_up_is_the_same_event() {
        let event = with_detail(r#"{"type":"booking.created","managingEntityIdentifier":"a","data":{ "b":1e400}}"#);
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

    #[test]
    fn space_between_the_parts_of_an_event_is_no_content_and_space_in_its_texts_is() {
        let json = "{ \"a b\" :\t\"c \\\" d \\\\\" ,\r\n \"e\" : [ 1 , 2.0 ] }";
        assert_eq!(without_space(json), r#"{"a b":"c \" d \\","e":[1,2.0]}"#);
        assert_eq!(without_space(&without_space(json)), without_space(json));
    }

    proptest! {
        #[test]
        fn no_detail_makes_the_reader_panic(detail in "[\\[\\]{}\":,a0\\\\ ]{0,60}") {
            if let Ok(detail) = RawValue::from_string(detail) {
                let _ = Detail::read(&detail);
            }
        }
    }
}
