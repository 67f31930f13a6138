//! Events from the platform's services, which arrive over a bus and are published like those from HTTP requests. IAM
//! controls which services may put events on the bus, so the entity in an event is not checked further.
//!
//! The bus delivers an event at least once, and an operator may put a rejected event on the bus again. The identifier
//! of the bus event is an idempotency key in a separate namespace, so a repeated event creates nothing new, even if
//! webhooks changed in the meantime.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    json_text::without_space,
    new_event::{Content, take_data, take_type},
    publish::{PublishError, Published, Publisher},
    rejected::{self, NotTaken, RejectedEvents, Rejection},
    retention, subject,
    validation::DataValidator,
};
use auth::{AuthorizedEntity, EntityId};
use base::metric::{Metrics, Name, Number};
use base::trace::Trace;
use problem::{JsonBody, Pointer, Problem, Rule, Violation};
use storage::{IdempotentRequest, TableError};

/// Publishes or rejects events from the bus.
pub struct Ingestion {
    /// Publishes the events.
    pub publisher: Publisher,
    /// Validates their data.
    pub validator: DataValidator,
    /// The queue for events that cannot be published.
    pub rejected: RejectedEvents,
    /// This deployment's name, for the metric of rejected events.
    pub environment: String,
}

/// The outcome for an event from the bus.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Ingested {
    /// The event is published: now, or when the bus delivered it before.
    Published(Published),
    /// The event cannot be published, and is on the queue of rejected events.
    Rejected(Rejection),
}

/// Why an event from the bus was neither published nor rejected. Lambda retries it.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// The table failed.
    #[error("a DynamoDB request for an event from the bus failed")]
    Table(#[from] TableError),
    /// The queue of rejected events failed.
    #[error("an event from the bus can be neither published nor rejected")]
    Rejection(#[from] NotTaken),
}

/// An event from the bus.
#[derive(Debug)]
pub struct BusEvent<'a> {
    /// The identifier that the bus assigned.
    pub id: String,
    /// The sender's part, as JSON.
    pub detail: &'a RawValue,
}

/// Why a bus event is not published now.
enum Unpublished {
    /// It can never be published.
    Rejected(Rejection),
    /// The table failed.
    Table(TableError),
}

/// The sender's part of a bus event.
#[derive(Debug)]
struct Detail<'a> {
    entity: EntityId,
    content: Content<'a>,
}

impl Ingestion {
    /// Publishes an event from the bus within this span, or puts it unchanged (`whole`) on the queue of rejected
    /// events. Input that is not a bus event is passed in as a rejection.
    pub async fn ingest(
        &self,
        whole: &str,
        event: Result<BusEvent<'_>, Rejection>,
        trace: &Trace,
    ) -> Result<Ingested, IngestError> {
        let (id, rejection) = match event {
            Err(rejection) => (String::new(), rejection),
            Ok(event) => match self.publish(&event, trace).await {
                Ok(published) => return Ok(Ingested::Published(published)),
                Err(Unpublished::Table(error)) => return Err(error.into()),
                Err(Unpublished::Rejected(rejection)) => (event.id, rejection),
            },
        };
        self.rejected.put(whole, &rejection).await?;
        let violations = rejection.violations.len();
        tracing::warn!(busEventId = id, reason = rejection.reason, violations, "an event from the bus was rejected");
        Metrics {
            environment: &self.environment,
            by: &[rejection.reason],
            numbers: &[Number::count(Name::EventsRejected, 1)],
            at: self.publisher.clock.now(),
        }
        .publish();
        Ok(Ingested::Rejected(rejection))
    }

    async fn publish(&self, BusEvent { id, detail }: &BusEvent<'_>, trace: &Trace) -> Result<Published, Unpublished> {
        let longest = self.publisher.retention();
        let Detail { entity, mut content } = Detail::read(detail, longest).map_err(Unpublished::Rejected)?;
        // A bus may change the white space between an event's tokens, but nothing else.
        let once = IdempotentRequest::of_bus(entity.as_str(), id, without_space(detail.get()).as_bytes());
        // An event that was published before is not rejected when the bus repeats it.
        if let Err(problem) = self.validator.check_content(&mut content)
            && !self.publisher.has_plan(&once).await.map_err(Unpublished::Table)?
        {
            return Err(Unpublished::Rejected(Rejection::members(&problem)));
        }
        let entity = AuthorizedEntity::by_bus(entity);
        let published = self.publisher.publish_once(&entity, &content, &once, trace, None).await;
        published.map_err(|error| match error {
            PublishError::Table(error) => Unpublished::Table(error),
            error @ PublishError::TooLarge(_) => Unpublished::Rejected(Rejection::whole(&error.into(), &data())),
            error @ PublishError::KeyConflict => {
                let message = "was already used with another detail; give each event its own identifier";
                let violations = vec![Violation::body("id", Rule::Duplicate, message)];
                Unpublished::Rejected(Rejection { reason: Problem::from(error).kind.slug(), violations })
            }
        })
    }
}

/// The data in a bus event.
fn data() -> Pointer {
    Pointer::from(rejected::DETAIL).member("data")
}

impl<'a> Detail<'a> {
    fn read(detail: &'a RawValue, longest: Duration) -> Result<Self, Rejection> {
        let members = JsonBody::read(detail.get().as_bytes());
        let mut members = members.map_err(|problem| Rejection::whole(&problem, &rejected::DETAIL.into()))?;
        let entity = members.required::<String>("managingEntityIdentifier", "a managing entity's identifier");
        let entity = entity.and_then(|entity| {
            let entity = EntityId::parse(&entity);
            members.violations.note("managingEntityIdentifier", Rule::InvalidFormat, entity)
        });
        let listed_for = entity.as_ref().map_or("{managingEntityIdentifier}", EntityId::as_str);
        let kind = take_type(&mut members, listed_for);
        let data = take_data(&mut members);
        let subject = subject::take(&mut members);
        let retention_days = retention::take(&mut members, longest);
        members.finish().map_err(|problem| Rejection::members(&problem))?;
        match (entity, kind, data) {
            (Some(entity), Some(kind), Some(data)) => {
                Ok(Self { entity, content: Content { kind, subject, data, retention_days, warnings: Vec::new() } })
            }
            _ => Err(Rejection::invalid(rejected::DETAIL, Rule::Required, "lacks a value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONGEST: Duration = Duration::from_secs(90 * 24 * 60 * 60);

    fn read(detail: &str) -> Result<(String, String), (String, Vec<String>)> {
        let detail = RawValue::from_string(detail.to_owned()).expect("JSON");
        match Detail::read(&detail, LONGEST) {
            Ok(detail) => Ok((detail.entity.to_string(), detail.content.data.get().to_owned())),
            Err(Rejection { reason, violations }) => {
                Err((reason.to_owned(), violations.iter().map(Violation::name).collect()))
            }
        }
    }

    #[test]
    fn the_data_of_a_detail_are_taken_as_they_came() {
        let data = r#"{ "b" : 1e400,"a":-0 , "u":"\ud83d\ude00\u0000é" }"#;
        let detail =
            format!(r#"{{ "data" : {data}, "managingEntityIdentifier":"demo-hotel","type":"booking.created"}}"#);
        assert_eq!(read(&detail), Ok(("demo-hotel".into(), data.into())));
    }

    #[test]
    fn every_violation_of_a_detail_is_listed_with_its_path() {
        let invalid = |fields: &[&str]| {
            Err(("invalid-request".to_owned(), fields.iter().map(|field| (*field).to_owned()).collect()))
        };
        for (detail, fields) in [
            ("[]", &["detail"][..]),
            (r#""text""#, &["detail"]),
            ("null", &["detail"]),
            ("{}", &["detail.managingEntityIdentifier", "detail.type", "detail.data"]),
            (
                r#"{"type":"nothing.happened","managingEntityIdentifier":"a/b","data":[],"body":1}"#,
                &["detail.managingEntityIdentifier", "detail.type", "detail.data", "detail.body"],
            ),
            (r#"{"type":"booking.created","managingEntityIdentifier":"a","data":{},"data":{}}"#, &["detail.data"]),
            (
                r#"{"type":"booking.created","managingEntityIdentifier":"a","data":{"b":"\ud800"},"subject":"\ud800"}"#,
                &["detail.data.b", "detail.subject"],
            ),
            (
                r#"{"type":"booking.created","managingEntityIdentifier":"a","data":{"$serde_json::private::RawValue":"{}"}}"#,
                &["detail.data.$serde_json::private::RawValue"],
            ),
        ] {
            assert_eq!(read(detail), invalid(fields), "{detail}");
        }
        let deep = format!(
            r#"{{"type":"booking.created","managingEntityIdentifier":"a","data":{}1{}}}"#,
            r#"{"a":"#.repeat(100),
            "}".repeat(100)
        );
        assert_eq!(read(&deep), invalid(&["detail"]));
    }

    #[test]
    fn a_rejection_as_a_whole_has_a_path_and_a_sentence() {
        let problem = Problem::too_large("The event", 262_144);
        let Rejection { reason, violations } = Rejection::whole(&problem, &data());
        assert_eq!((reason, violations[0].pointer.as_str()), ("payload-too-large", "/detail/data"));
        assert!(violations[0].detail.contains("262144"), "{violations:?}");
    }

    proptest! {
        #[test]
        fn no_detail_makes_the_reader_panic(detail in "[\\[\\]{}\":,a0\\\\ ]{0,60}") {
            if let Ok(detail) = RawValue::from_string(detail) {
                let _ = Detail::read(&detail, LONGEST);
            }
        }
    }
}
