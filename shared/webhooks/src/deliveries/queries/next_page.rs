//! The start of a list's next page, as its cursor stores it.

use serde::{Deserialize, Serialize};

use crate::deliveries::queries::range::{KeyRange, ListPosition};
use base::Time;

/// The start of a list's next page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextPage {
    /// The page begins before this position.
    pub before: ListPosition,
    /// The new events that earlier pages have postponed.
    pub(super) postponed: Option<Postponed>,
}

/// New events that the pages of a list have postponed to its end ([`super::merge`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Postponed {
    /// The range of the events.
    pub(super) events: KeyRange,
    /// The position before which they begin.
    pub(super) before: ListPosition,
    /// Earlier pages have listed the deliveries that were in an index at this time.
    pub(super) indexed_until: Time,
    /// Whether everything else is listed, so that the next page begins with these events.
    pub(super) is_reached: bool,
}

impl Postponed {
    /// Events that the current page postpones.
    pub(super) fn new(events: KeyRange, before: ListPosition, indexed_until: Time) -> Self {
        Self { events, before, indexed_until, is_reached: false }
    }

    /// These events, once everything else is listed.
    pub(super) fn reached(&self) -> Self {
        Self { is_reached: true, ..self.clone() }
    }
}

impl NextPage {
    /// The page that begins before this position.
    pub fn before(before: ListPosition) -> Self {
        Self { before, postponed: None }
    }

    /// Whether the page consists of postponed events.
    pub(super) fn is_in_postponed(&self) -> bool {
        self.postponed.as_ref().is_some_and(|postponed| postponed.is_reached)
    }

    /// Parses a start; `None` if it is malformed.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match ListPosition::parse(text) {
            Some(before) => Some(Self::before(before)),
            None => serde_json::from_str(text).ok(),
        }
    }

    /// The start as a string: the position alone, unless events are postponed.
    pub(super) fn text(&self) -> String {
        match &self.postponed {
            None => self.before.as_str().to_owned(),
            Some(_) => serde_json::to_string(self).expect("it has texts and times only"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::queries::range::tests::position_at;
    use base::testing::CountingRandom;

    #[test]
    fn a_start_is_read_back_with_and_without_postponed_events() {
        let random = CountingRandom::default();
        let position = position_at(1_795_167_900_123, &random);
        let plain = NextPage::before(position.clone());
        assert_eq!(plain.text(), position.as_str(), "a cursor of the release before is valid");
        let events = KeyRange::since(Time::from_millis(1_000)).before(&position);
        let postponed = Postponed::new(events, position.clone(), Time::from_millis(2_000));
        for postponed in [postponed.reached(), postponed] {
            let start = NextPage { before: position.clone(), postponed: Some(postponed) };
            assert_eq!(NextPage::parse(&start.text()), Some(start.clone()));
            assert_eq!(start.is_in_postponed(), start.postponed.is_some_and(|postponed| postponed.is_reached));
        }
        assert_eq!(NextPage::parse(&plain.text()), Some(plain));
    }

    #[test]
    fn a_malformed_text_is_no_start() {
        for text in ["", "{}", "null", "dlv_", "{\"before\":\"evt_01m7w5gmev32p3wwt3y0b8j32h\",\"postponed\":null}"] {
            assert_eq!(NextPage::parse(text), None, "{text}");
        }
    }
}
