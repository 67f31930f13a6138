//! A webhook's filter: the members of an event's data that must match, in the syntax of EventBridge's event patterns.
//! It is stored as its owner's JSON, so that numbers keep their digits. It is parsed only when an event is published:
//! the dispatcher reads the same item, but needs no pattern. No maintained crate implements the syntax; AWS's
//! implementation is in Java.

pub mod data;
pub mod decimal;
pub mod matching;
pub mod outcomes;
pub mod pattern;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::{
    data::EventData,
    matching::{FilterOutcome, Steps, TooManySteps},
    pattern::{Fault, Pattern},
};
use crate::events::json_text::without_space;
use problem::{Pointer, Rule, Violations};

/// The maximum size of a filter, in bytes of JSON without white space: publishing reads the filters of all of an
/// entity's webhooks.
pub const MAX_BYTES: usize = 4 * 1024;

/// A filter, as JSON without white space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventFilter(String);

impl EventFilter {
    /// Reads a filter from the JSON of a request.
    ///
    /// # Errors
    /// All faults that were found.
    pub fn read(json: &str) -> Result<Self, Vec<Fault>> {
        let text = without_space(json);
        let whole = |rule, detail| vec![Fault { pointer: Pointer::default(), rule, detail }];
        if text.len() > MAX_BYTES {
            let detail = format!("must have at most {MAX_BYTES} bytes as JSON without white space");
            return Err(whole(Rule::TooLong, detail));
        }
        let raw: &RawValue = serde_json::from_str(&text)
            .map_err(|_| whole(Rule::InvalidFormat, "must be well-formed JSON".to_owned()))?;
        Pattern::read(raw)?;
        Ok(Self(text))
    }

    /// Takes the filter from the member of this name. Its faults become violations.
    pub(crate) fn take(name: &str, json: &str, violations: &mut Violations) -> Option<Self> {
        if violations.note_surrogates(name, json) {
            return None;
        }
        let noted = |faults: Vec<Fault>| {
            for Fault { pointer, rule, detail } in faults {
                violations.add(Pointer::from(name).within(&pointer), rule, detail);
            }
        };
        Self::read(json).map_err(noted).ok()
    }

    /// The filter as JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The filter as JSON for a response; `None` if the stored text is damaged.
    pub(crate) fn shown(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.0.clone()).ok()
    }

    /// Compares an event's data with the filter. A filter that cannot be read, such as one from a newer release, lets
    /// every event pass, like one that takes too many steps.
    pub fn compare(&self, data: &EventData<'_>, steps: &mut Steps) -> FilterOutcome {
        let raw = serde_json::from_str::<&RawValue>(&self.0).ok();
        let Some(pattern) = raw.and_then(|raw| Pattern::read(raw).ok()) else {
            tracing::error!("a webhook's filter cannot be read; the event is delivered");
            return FilterOutcome::Matches;
        };
        match pattern.matches(data, steps) {
            Ok(true) => FilterOutcome::Matches,
            Ok(false) => FilterOutcome::Differs,
            Err(TooManySteps) => FilterOutcome::TooManySteps,
        }
    }
}
