//! Validation of an event's data by its type's schema. A process compiles a type's schema at the first event of that
//! type.
//!
//! Warnings, metrics and the log contain types, members and rules, but never a value: the data may be about people.

use std::{
    collections::BTreeMap,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use serde_json::{Value, value::RawValue};

use super::{
    catalogue::EventType,
    data_warning::{MAX_WARNINGS, warning},
    new_event::{Content, NewEvent},
    type_details,
};
use base::metric::{Metrics, Name, Number};
use base::{Environment, FromEnvironment, SharedClock};
use problem::{Pointer, Problem, Rule, Violation};

/// What happens to data that does not conform to its type's schema: `EVENT_VALIDATION`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventValidation {
    /// Data is not validated.
    Off,
    /// The event is published, and its publisher gets warnings.
    #[default]
    Warn,
    /// The event is refused.
    Strict,
}

impl FromStr for EventValidation {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "warn" => Ok(Self::Warn),
            "strict" => Ok(Self::Strict),
            _ => Err("not one of off, warn and strict"),
        }
    }
}

impl FromEnvironment for EventValidation {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        environment.parsed("EVENT_VALIDATION", Self::default())
    }
}

/// The maximum size of data whose errors are all listed.
const MAX_LISTED_BYTES: usize = 16 * 1024;

/// Validates the data of events.
pub struct DataValidator {
    mode: EventValidation,
    /// This deployment's name, for the metric.
    environment: String,
    clock: SharedClock,
    compiled: Mutex<BTreeMap<&'static str, Arc<Validator>>>,
}

impl DataValidator {
    /// A validator for this deployment.
    pub fn new(mode: EventValidation, environment: impl Into<String>, clock: SharedClock) -> Self {
        Self { mode, environment: environment.into(), clock, compiled: Mutex::default() }
    }

    /// Checks the data of a request to publish and adds the warnings to it.
    ///
    /// # Errors
    /// If the deployment is strict, a violation for each value that does not conform. A repeat of an accepted request
    /// must not be refused: see [`super::publish::Publisher::has_accepted`].
    pub fn check(&self, event: &mut NewEvent<'_>) -> Result<(), Problem> {
        self.check_content(&mut event.content)
    }

    /// Checks an event's data, as [`Self::check`] does.
    pub(super) fn check_content(&self, content: &mut Content<'_>) -> Result<(), Problem> {
        let warnings = self.warnings(content.kind, content.data);
        if !warnings.is_empty() {
            self.report(content.kind, &warnings);
        }
        content.warnings = self.permitted(warnings).map_err(Problem::invalid)?;
        Ok(())
    }

    /// Checks the data of a test event and returns the warnings. The log and the metric do not count the event, since
    /// it does not come from a publisher.
    ///
    /// # Errors
    /// If the deployment is strict, a violation for each value that does not conform.
    pub(crate) fn check_test(
        &self,
        kind: &'static EventType,
        data: &RawValue,
    ) -> Result<Vec<Violation>, Vec<Violation>> {
        self.permitted(self.warnings(kind, data))
    }

    /// The warnings, or in a strict deployment the violations.
    fn permitted(&self, warnings: Vec<Violation>) -> Result<Vec<Violation>, Vec<Violation>> {
        if warnings.is_empty() || self.mode != EventValidation::Strict {
            return Ok(warnings);
        }
        let data = Pointer::from("data");
        let violation = |Violation { pointer, rule, detail, .. }| Violation::body(data.within(&pointer), rule, detail);
        Err(warnings.into_iter().map(violation).collect())
    }

    fn warnings(&self, kind: &'static EventType, data: &RawValue) -> Vec<Violation> {
        if self.mode == EventValidation::Off {
            return Vec::new();
        }
        let text = data.get();
        let Ok(data) = serde_json::from_str::<Value>(text) else {
            // RFC 8259 allows such JSON, and subscribers receive it unchanged.
            let detail = "cannot be validated: many programs cannot read a number or a string in it";
            return vec![warning(Pointer::default(), Rule::InvalidFormat, detail)];
        };
        let validator = self.validator(kind);
        // The crate collects all errors, which can take a hundred times the memory of the data. So only the first error
        // of a large event is listed.
        if text.len() > MAX_LISTED_BYTES {
            return listed(validator.validate(&data).err().into_iter());
        }
        if validator.is_valid(&data) { Vec::new() } else { listed(validator.iter_errors(&data)) }
    }

    fn validator(&self, kind: &'static EventType) -> Arc<Validator> {
        // No code panics while holding the lock.
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(compiled.entry(kind.value).or_insert_with(|| Arc::new(compile(kind))))
    }

    fn report(&self, kind: &EventType, warnings: &[Violation]) {
        let pointers: Vec<_> = warnings.iter().map(|warning| format!("data{}", warning.pointer.as_str())).collect();
        tracing::info!(
            r#type = kind.value,
            pointers = pointers.join(" "),
            "an event's data does not conform to its type's schema"
        );
        let numbers = &[Number::count(Name::EventsNonconforming, 1)];
        Metrics { environment: &self.environment, by: &[], numbers, at: self.clock.now() }.publish();
    }
}

fn compile(kind: &EventType) -> Validator {
    let schema: Value = serde_json::from_str(&type_details::schema(kind)).expect("the build composes it of JSON");
    let options = jsonschema::draft202012::options().should_validate_formats(true);
    options.build(&schema).expect("the build compiles the schema of every type")
}

/// The first errors as warnings.
fn listed<'a>(errors: impl Iterator<Item = ValidationError<'a>>) -> Vec<Violation> {
    errors.take(MAX_WARNINGS).map(|error| of_error(&error)).collect()
}

fn of_error(error: &ValidationError<'_>) -> Violation {
    let value = Pointer::of_text(error.instance_path().as_str());
    let rule = match error.kind() {
        // A missing member has the pointer that it would have if present, as in a request.
        ValidationErrorKind::Required { property } => {
            let member = value.member(property.as_str().unwrap_or_default());
            return warning(member, Rule::Required, "is missing");
        }
        ValidationErrorKind::Type { .. } => Rule::InvalidType,
        ValidationErrorKind::Format { .. } | ValidationErrorKind::Pattern { .. } => Rule::InvalidFormat,
        ValidationErrorKind::Enum { .. } | ValidationErrorKind::Constant { .. } => Rule::UnknownValue,
        ValidationErrorKind::Minimum { .. }
        | ValidationErrorKind::Maximum { .. }
        | ValidationErrorKind::ExclusiveMinimum { .. }
        | ValidationErrorKind::ExclusiveMaximum { .. } => Rule::OutOfRange,
        ValidationErrorKind::MaxLength { .. }
        | ValidationErrorKind::MaxItems { .. }
        | ValidationErrorKind::MaxProperties { .. } => Rule::TooLong,
        _ => Rule::Invalid,
    };
    warning(value, rule, &error.masked().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::catalogue;
    use base::{Time, testing::FixedClock};

    fn validator(mode: EventValidation) -> DataValidator {
        DataValidator::new(mode, "test", Arc::new(FixedClock::at(Time::from_millis(0))))
    }

    fn warnings(kind: &str, data: &str) -> Vec<Violation> {
        let kind = catalogue::find(kind).expect("it exists");
        let data = RawValue::from_string(data.to_owned()).expect("JSON");
        validator(EventValidation::Warn).warnings(kind, &data)
    }

    #[test]
    fn every_sample_conforms_to_the_schema_of_its_type() {
        let validator = validator(EventValidation::Strict);
        for kind in catalogue::all() {
            for sample in type_details::samples(kind) {
                assert_eq!(validator.warnings(kind, sample), [], "{}", kind.value);
            }
        }
    }

    #[test]
    fn a_warning_names_member_and_rule_and_never_a_value() {
        let kind = "managing_entity.brand.removed";
        let missing = |name: &str| warning(name.into(), Rule::Required, "is missing");
        assert_eq!(warnings(kind, "{}"), ["brandIdentifier", "removedAt"].map(missing));
        let found = warnings(kind, r#"{"brandIdentifier":4711,"removedAt":"4711","more":4711}"#);
        let rules: Vec<_> = found.iter().map(|warning| (warning.pointer.as_str(), warning.rule)).collect();
        assert_eq!(rules, [("/brandIdentifier", Rule::InvalidType), ("/removedAt", Rule::InvalidFormat)], "{found:?}");
        assert!(!format!("{found:?}").contains("4711"), "{found:?}");
        assert!(found[0].detail.contains("string") && found[1].detail.contains("date-time"), "{found:?}");
    }

    #[test]
    fn an_event_has_at_most_ten_warnings() {
        let lines = vec!["{}"; 1_000].join(",");
        let data = format!(r#"{{"booking":{{"price":{{"lines":[{lines}]}}}}}}"#);
        assert_eq!(warnings("booking.created", &data).len(), MAX_WARNINGS);
    }

    #[test]
    fn data_that_many_parsers_refuse_get_a_warning() {
        for data in [r#"{"a":1e400}"#, r#"{"a":"\ud800"}"#] {
            assert!(warnings("booking.created", data)[0].detail.starts_with("cannot be validated"), "{data}");
        }
    }

    #[test]
    fn only_a_strict_deployment_refuses_and_only_off_ignores() {
        let kind = catalogue::find("managing_entity.brand.removed").expect("it exists");
        let data = RawValue::from_string("{}".to_owned()).expect("JSON");
        let checked = |mode| {
            let mut content = Content { kind, subject: None, data: &data, retention_days: None, warnings: Vec::new() };
            let checked = validator(mode).check_content(&mut content);
            checked.map(|()| content.warnings.len())
        };
        assert_eq!(checked(EventValidation::Off).expect("accepted"), 0);
        assert_eq!(checked(EventValidation::Warn).expect("accepted"), 2);
        let problem = checked(EventValidation::Strict).expect_err("refused");
        let names: Vec<_> = problem.violations().iter().map(Violation::name).collect();
        assert_eq!(names, ["data.brandIdentifier", "data.removedAt"]);
        let tested = |mode| validator(mode).check_test(kind, &data).map(|warnings| warnings.len());
        assert_eq!((tested(EventValidation::Off), tested(EventValidation::Warn)), (Ok(0), Ok(2)));
        assert_eq!(tested(EventValidation::Strict), Err(problem.violations()));
    }

    #[test]
    fn the_setting_is_off_warn_or_strict() {
        for (text, mode) in [("off", EventValidation::Off), ("strict", EventValidation::Strict)] {
            assert_eq!(text.parse(), Ok(mode));
        }
        assert!("Strict".parse::<EventValidation>().is_err() && "".parse::<EventValidation>().is_err());
        assert_eq!(EventValidation::default(), EventValidation::Warn);
    }
}
