//! Cancelling: the deliveries that wait for a webhook that was removed end. Those whose next attempt is due soon are left to
//! that attempt, which finds that there is no webhook.
//!
//! Not all that wait show at once: the index lags behind a little, and one whose attempt is being made is left to its worker,
//! which may find that it has to wait. So it is looked again, until a look that began a minute after the removal
//! finds nothing.

use std::time::Duration;

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use super::{CHANGES_AT_ONCE, JobItem, PAGE, Piece, Work, Worker};
use crate::deliveries::{
    by_entity::{Place, Stretch},
    by_webhook::Group,
};
use base::clock::Time;
use storage::table::TableError;

/// How long after the removal something may still begin to wait: an attempt, or a request that publishes.
const SETTLED: Duration = Duration::from_secs(60);
/// The pause before the next look for deliveries whose attempt was under way.
const PAUSE: Duration = Duration::from_secs(20);

/// How far the waiting deliveries of a webhook are cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cancellation {
    removed: Time,
    /// When the present look began.
    began: Time,
    /// What is left of it.
    left: Stretch,
    /// Whether it has found anything that waits.
    found: bool,
}

impl Cancellation {
    pub(super) fn new(now: Time) -> Self {
        Self { removed: now, began: now, left: Stretch::since(Time::from_millis(0)), found: false }
    }

    pub(super) fn is_done(&self) -> bool {
        self.left.is_empty() && !self.found && self.began >= self.removed + SETTLED
    }

    /// What is to be looked through: when a look is over, another begins.
    fn looking(&self, now: Time) -> Self {
        if self.left.is_empty() { Self { removed: self.removed, ..Self::new(now) } } else { self.clone() }
    }

    /// The time of the next look: soon when this one found deliveries, since their attempts may have been under way; otherwise
    /// once everything has settled.
    fn next(&self, now: Time) -> Time {
        let pause = now + PAUSE;
        if self.found { pause } else { pause.max(self.removed + SETTLED) }
    }

    fn looked(self, found: bool, end: Option<&Place>) -> Self {
        let left = match end {
            Some(place) => self.left.after(place),
            None => Stretch::nothing(),
        };
        Self { left, found: self.found || found, ..self }
    }
}

impl Worker {
    /// Works through a page.
    pub(super) async fn cancel_page(&self, job: &JobItem, cancellation: &Cancellation) -> Result<Piece, TableError> {
        let now = self.clock.now();
        let looking = cancellation.looking(now);
        let page = self.deliveries.of_group(&job.webhook, Group::Waiting, &looking.left, PAGE).await?;
        let waiting = page.found.len();
        let endings = stream::iter(page.found)
            .map(|id| async move { self.deliveries.cancel_waiting(&id, &job.webhook, now).await });
        let outcomes: Vec<_> = endings.buffer_unordered(CHANGES_AT_ONCE).collect().await;
        let mut cancelled = 0;
        for outcome in outcomes {
            cancelled += usize::from(outcome?);
        }
        tracing::info!(webhookId = %job.webhook, cancelled, waiting, "cancelled a page");
        let looked = looking.looked(waiting > 0, page.end.as_ref());
        let over = looked.left.is_empty() && !looked.is_done();
        // Nobody adds to it, so that it can be replaced.
        let next = looked.next(now);
        let change = Box::new(move |work: &mut Work| *work = Work::Cancel(looked.clone()));
        Ok(if over { Piece::Wait(change, next) } else { Piece::Next(change) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOVED: Time = Time::from_millis(1_795_167_900_000);

    #[test]
    fn it_is_over_when_a_late_look_has_found_nothing() {
        let job = Cancellation::new(REMOVED);
        assert!(!job.is_done());
        let first = job.looking(REMOVED).looked(true, None);
        assert!(!first.is_done());
        let second = first.looking(REMOVED + PAUSE).looked(false, None);
        assert!(!second.is_done(), "something may still come to light");
        let third = second.looking(REMOVED + SETTLED).looked(true, None);
        assert!(!third.is_done(), "something did");
        assert!(third.looking(REMOVED + SETTLED + PAUSE).looked(false, None).is_done());
    }

    #[test]
    fn after_a_look_that_found_nothing_the_next_one_is_the_last() {
        let first = Cancellation::new(REMOVED).looked(false, None);
        assert_eq!(first.next(REMOVED), REMOVED + SETTLED);
        assert!(first.looking(REMOVED + SETTLED).looked(false, None).is_done());
        assert_eq!(Cancellation::new(REMOVED).looked(true, None).next(REMOVED), REMOVED + PAUSE);
    }

    #[test]
    fn a_look_that_is_under_way_goes_on_where_it_was() {
        let place = Place::parse("2026-11-20T09:45:00.123Z#dlv_01m7w5gmev32p3wwt3y0b8j32h").expect("a place");
        let begun = Cancellation::new(REMOVED).looked(true, Some(&place));
        let later = begun.looking(REMOVED + SETTLED);
        assert_eq!(later, begun);
        assert!(later.looked(false, None).found, "what an earlier page has found counts");
    }
}
