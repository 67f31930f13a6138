//! Positions in the order of creation, and ranges of positions.
//!
//! Identifiers sort by creation, and the sort key of every index is the identifier. A range holds identifiers without
//! their prefixes, so that it applies to both events and deliveries: an event sorts at its first delivery.

use serde::{Deserialize, Serialize};

use base::{DeliveryId, Time, ids::body_at};
use problem::{JsonBody, Rule};
use storage::table::Query;

/// The position of a delivery in the order of creation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListPosition(DeliveryId);

impl ListPosition {
    /// This delivery's position.
    pub fn of(delivery: &DeliveryId) -> Self {
        Self(delivery.clone())
    }

    /// Reads a position; `None` if the string is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        DeliveryId::parse(text).map(Self)
    }

    /// The position as a string.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The delivery.
    pub fn delivery(&self) -> &DeliveryId {
        &self.0
    }

    /// The bound directly after this position.
    fn just_after(&self) -> String {
        format!("{}!", self.0.body())
    }

    /// The bound directly before this position.
    fn just_before(&self) -> String {
        let mut bound = self.0.body().to_owned();
        let last = bound.pop().and_then(|last| u8::try_from(last).ok()).unwrap_or_default();
        bound.push(char::from(last.saturating_sub(1)));
        bound + "~"
    }
}

/// A range in order of creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    from: String,
    to: String,
}

impl Default for KeyRange {
    /// No deliveries.
    fn default() -> Self {
        Self::nothing()
    }
}

impl KeyRange {
    /// Created at or after `from` and before `to`.
    pub fn between(from: Time, to: Time) -> Self {
        // A key is longer than its time and sorts after it, so the first bound is inclusive and the second exclusive.
        Self { from: body_at(from), to: body_at(to) }
    }

    /// Created at or after `from`.
    pub fn since(from: Time) -> Self {
        Self { from: body_at(from), to: "~".to_owned() }
    }

    /// Created after the event whose identifier has this body; an empty body means everything.
    pub(crate) fn after_body(body: &str) -> Self {
        Self { from: format!("{body}!"), to: "~".to_owned() }
    }

    /// No deliveries.
    pub fn nothing() -> Self {
        Self { from: "~".to_owned(), to: "~".to_owned() }
    }

    /// The range with another end: before `to`.
    pub fn until(self, to: Time) -> Self {
        Self { to: body_at(to), ..self }
    }

    /// The part after a position.
    pub fn after(self, position: &ListPosition) -> Self {
        Self { from: self.from.max(position.just_after()), ..self }
    }

    /// The part after the end of another range.
    pub(crate) fn after_end_of(self, other: &Self) -> Self {
        Self { from: self.from.max(other.to.clone()), ..self }
    }

    /// The part before a position.
    pub fn before(self, position: &ListPosition) -> Self {
        Self { to: self.to.min(position.just_before()), ..self }
    }

    /// The intersection with another range.
    pub fn within(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), to: self.to.min(other.to) }
    }

    /// Narrows a query for identifiers with this prefix to the range.
    pub(crate) fn narrow(&self, query: Query, prefix: &str) -> Query {
        query.between("sk", format!("{prefix}{}", self.from), format!("{prefix}{}", self.to))
    }

    /// Whether the range contains this delivery.
    pub fn holds(&self, delivery: &DeliveryId) -> bool {
        (self.from.as_str()..=self.to.as_str()).contains(&delivery.body())
    }

    /// Whether the range contains no keys.
    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }
}

/// Takes `createdUntil` from a request's body. A range that ends before it begins is a violation, as is one that begins
/// in the future and has no end.
pub(crate) fn take_until(body: &mut JsonBody<'_>, since: Option<Time>, now: Time) -> Option<Time> {
    let has_until = body.has("createdUntil");
    let until = body.optional_time("createdUntil");
    match (since, until) {
        (Some(since), Some(until)) if since >= until => {
            body.violations.add("createdUntil", Rule::Inconsistent, "must be after createdFrom")
        }
        (Some(since), None) if !has_until && since >= now => {
            body.violations.add("createdFrom", Rule::OutOfRange, "must be in the past")
        }
        _ => {}
    }
    until
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::{EventId, testing::CountingRandom};
    use proptest::prelude::*;

    pub fn position_at(millis: i64, random: &CountingRandom) -> ListPosition {
        ListPosition::of(&DeliveryId::of(&EventId::new(Time::from_millis(millis), random), 0))
    }

    #[test]
    fn a_range_begins_with_its_first_moment_and_ends_before_its_last() {
        let random = CountingRandom::default();
        let range = KeyRange::between(Time::from_millis(1_000), Time::from_millis(2_000));
        for (millis, inside) in [(999, false), (1_000, true), (1_999, true), (2_000, false)] {
            assert_eq!(range.holds(&position_at(millis, &random).0), inside, "{millis}");
        }
        assert!(KeyRange::between(Time::from_millis(5), Time::from_millis(5)).is_empty());
        assert!(KeyRange::since(Time::from_millis(1_000)).holds(&position_at(4_000_000_000_000, &random).0));
    }

    #[test]
    fn a_position_is_read_back_and_any_other_text_is_refused() {
        let position = position_at(1_795_167_900_123, &CountingRandom::default());
        assert_eq!(ListPosition::parse(position.as_str()), Some(position.clone()));
        for text in ["", "#", "dlv_", "evt_01m7w5gmev32p3wwt3y0b8j32h"] {
            assert_eq!(ListPosition::parse(text), None, "{text}");
        }
        assert_eq!(ListPosition::parse(&format!("{}!", position.as_str())), None);
    }

    #[test]
    fn an_event_is_in_the_range_before_its_deliveries_until_the_first_is_passed() {
        let event = EventId::new(Time::from_millis(1_795_167_900_123), &CountingRandom::default());
        let holds = |ordinal| {
            let range = KeyRange::since(Time::from_millis(0));
            let range = range.before(&ListPosition::of(&DeliveryId::of(&event, ordinal)));
            (range.from.as_str()..=range.to.as_str()).contains(&event.body())
        };
        assert!(holds(1) && holds(40) && !holds(0));
    }

    proptest! {
        #[test]
        fn a_position_is_outside_the_ranges_before_and_after_it(
            millis in proptest::collection::vec(0i64..3, 2..12),
            start in any::<u8>(),
        ) {
            let random = CountingRandom::default();
            for _ in 0..start { position_at(0, &random); }
            let mut positions: Vec<_> = millis.into_iter().map(|millis| position_at(millis, &random)).collect();
            positions.sort();
            positions.dedup();
            let whole = KeyRange::since(Time::from_millis(0));
            for (index, position) in positions.iter().enumerate() {
                let after = whole.clone().after(position);
                let before = whole.clone().before(position);
                for (other_index, other) in positions.iter().enumerate() {
                    prop_assert_eq!(after.holds(&other.0), other_index > index);
                    prop_assert_eq!(before.holds(&other.0), other_index < index);
                }
            }
        }
    }
}
