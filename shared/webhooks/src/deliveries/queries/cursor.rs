//! Cursors: where the next page of a list begins, as an opaque string that clients send back. A cursor is sealed for
//! one entity and its list's filters: no client can forge or change it, or use it for another list. It contains the
//! position of a delivery or an event, so that new ones do not shift the pages, and identifies the postponed events.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::deliveries::queries::{filters::Filters, next_page::NextPage};
use auth::EntityId;
use base::Random;
use problem::{Problem, Query};
use storage::{KeyRing, sealing::is_sealed};

/// An upper bound for the length of a cursor.
const MAX_LENGTH: usize = 1024;

/// The string is not a cursor of this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the string is not a cursor for this list with these filters")]
pub struct NotACursor;

impl From<NotACursor> for Problem {
    fn from(error: NotACursor) -> Self {
        Self::invalid_cursor().caused_by(error)
    }
}

/// The lists that have cursors. Each list refuses the cursors of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Deliveries.
    Deliveries,
    /// Events.
    Events,
}

/// A page's cursor.
pub fn write(
    list: List,
    next: &NextPage,
    ring: &KeyRing,
    random: &dyn Random,
    entity: &EntityId,
    filters: &Filters,
) -> String {
    let sealed = ring.seal(random, &context(list, entity, filters), next.text().as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(sealed)
}

/// A string in the form of a cursor. Only opening it shows whether it belongs to this list.
#[derive(Debug)]
pub struct Cursor(String);

impl Cursor {
    /// Takes the cursor from the query, and finishes the query, whose violations are reported first.
    pub fn take_last(mut query: Query<'_>) -> Result<Option<Self>, Problem> {
        let text = query.optional("cursor", "a single string", Some);
        query.finish()?;
        text.map(|text| Self::parse(text).ok_or_else(|| NotACursor.into())).transpose()
    }

    /// `None` if the string is malformed.
    fn parse(text: &str) -> Option<Self> {
        let sealed = (text.len() <= MAX_LENGTH).then(|| BASE64_URL_SAFE_NO_PAD.decode(text).ok())??;
        String::from_utf8(sealed).ok().filter(|sealed| is_sealed(sealed)).map(Self)
    }

    /// The sealed text, which names the key that opens it.
    pub fn sealed(&self) -> &str {
        &self.0
    }

    /// Opens the cursor and returns the start of its page.
    pub fn open(
        &self,
        list: List,
        ring: &KeyRing,
        entity: &EntityId,
        filters: &Filters,
    ) -> Result<NextPage, NotACursor> {
        let start = ring.open(&context(list, entity, filters), &self.0).map_err(|_| NotACursor)?;
        std::str::from_utf8(start.expose()).ok().and_then(NextPage::parse).ok_or(NotACursor)
    }
}

fn context(list: List, entity: &EntityId, filters: &Filters) -> String {
    let list = match list {
        List::Deliveries => "delivery-cursor",
        List::Events => "event-cursor",
    };
    format!("{list}/{entity}/{filters}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::{queries::range::tests::position_at, state::delivery::Status};
    use base::{SystemRandom, testing::CountingRandom};
    use proptest::prelude::*;
    use storage::sealing::ring;

    fn hotel() -> EntityId {
        EntityId::parse("hotel").expect("an entity")
    }

    fn failed() -> Filters {
        Filters { statuses: vec![Status::Failed], ..Filters::default() }
    }

    fn start() -> NextPage {
        NextPage::before(position_at(1_795_167_900_123, &CountingRandom::default()))
    }

    fn read(text: &str, ring: &KeyRing, entity: &EntityId, filters: &Filters) -> Result<NextPage, NotACursor> {
        Cursor::parse(text).ok_or(NotACursor)?.open(List::Deliveries, ring, entity, filters)
    }

    fn cursor() -> String {
        write(List::Deliveries, &start(), &ring("a"), &SystemRandom, &hotel(), &failed())
    }

    #[test]
    fn a_cursor_is_read_back_by_its_own_list_alone() {
        let cursor = cursor();
        assert_eq!(read(&cursor, &ring("a"), &hotel(), &failed()), Ok(start()));
        assert_eq!(read(&cursor, &ring("b"), &hotel(), &failed()), Ok(start()), "a newer key is current");
        let other = EntityId::parse("other").expect("an entity");
        assert_eq!(read(&cursor, &ring("a"), &other, &failed()), Err(NotACursor));
        assert_eq!(read(&cursor, &ring("a"), &hotel(), &Filters::default()), Err(NotACursor));
        let cursor = Cursor::parse(&cursor).expect("it has the form of one");
        assert_eq!(cursor.open(List::Events, &ring("a"), &hotel(), &failed()), Err(NotACursor));
    }

    #[test]
    fn two_cursors_of_one_position_differ_and_reveal_nothing() {
        assert_ne!(cursor(), cursor());
        let cursor = Cursor::parse(&cursor()).expect("it has the form of one");
        assert!(!cursor.sealed().contains("dlv_") && !cursor.sealed().contains("2026"));
    }

    #[test]
    fn a_changed_or_cut_cursor_is_refused() {
        let cursor = cursor();
        for position in 0..cursor.len() {
            let mut changed = cursor.clone().into_bytes();
            changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("ASCII");
            assert_eq!(read(&changed, &ring("a"), &hotel(), &failed()), Err(NotACursor), "at {position}");
            assert_eq!(read(&cursor[..position], &ring("a"), &hotel(), &failed()), Err(NotACursor), "cut");
        }
        for longer in [format!("{cursor}A"), format!("{cursor}="), format!(" {cursor}"), cursor.repeat(2)] {
            assert_eq!(read(&longer, &ring("a"), &hotel(), &failed()), Err(NotACursor), "{longer}");
        }
    }

    #[test]
    fn texts_sealed_for_another_purpose_are_no_cursors() {
        let elsewhere = ring("a").seal(&SystemRandom, "webhook/hotel/1", start().text().as_bytes());
        let cursor = BASE64_URL_SAFE_NO_PAD.encode(elsewhere);
        assert_eq!(read(&cursor, &ring("a"), &hotel(), &failed()), Err(NotACursor));
        let context = context(List::Deliveries, &hotel(), &failed());
        let no_position = ring("a").seal(&SystemRandom, &context, b"anything");
        let cursor = BASE64_URL_SAFE_NO_PAD.encode(no_position);
        assert_eq!(read(&cursor, &ring("a"), &hotel(), &failed()), Err(NotACursor));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic_or_is_accepted(text in "\\PC{0,200}") {
            prop_assert_eq!(read(&text, &ring("a"), &hotel(), &failed()), Err(NotACursor));
        }

        #[test]
        fn no_base_64_is_accepted_or_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let text = BASE64_URL_SAFE_NO_PAD.encode(bytes);
            prop_assert_eq!(read(&text, &ring("a"), &hotel(), &failed()), Err(NotACursor));
        }
    }
}
