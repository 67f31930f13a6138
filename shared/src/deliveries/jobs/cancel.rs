//! Cancelling: the open deliveries of a webhook that was removed end.
//!
//! Not all of them show at once: the index lags behind a little, a publication that had read the webhook before goes on, and
//! one whose attempt is being made is left to its worker. So it is looked again, until a look that began a minute after
//! the removal finds nothing open.

use std::time::Duration;

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use super::{CHANGES_AT_ONCE, JobItem, PAGE, Piece, Work, Worker};
use crate::{
    clock::Time,
    deliveries::{
        Status,
        by_entity::{Order, Place, Stretch, Wanted},
    },
    table::TableError,
};

/// How long after the removal something open may still come to light: a request that publishes, a lease, the index.
const SETTLED: Duration = Duration::from_secs(60);
/// The pause before it is looked again.
const PAUSE: Duration = Duration::from_secs(20);

/// How far the open deliveries of a webhook are cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cancellation {
    removed: Time,
    /// When the present look began.
    began: Time,
    /// What is left of it.
    left: Stretch,
    /// Whether it has found anything open.
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
        let statuses = &[Status::Pending, Status::Retrying];
        let open = Wanted { statuses, webhook: Some(&job.webhook), ..Wanted::default() };
        let page = self.deliveries.look(&job.entity, &looking.left, open, Order::Forward, PAGE).await?;
        let open = page.found.len();
        let endings = stream::iter(page.found)
            .map(|delivery| async move { self.deliveries.cancel_unclaimed(&delivery, now).await });
        let outcomes: Vec<_> = endings.buffer_unordered(CHANGES_AT_ONCE).collect().await;
        let mut cancelled = 0;
        for outcome in outcomes {
            cancelled += usize::from(outcome?);
        }
        tracing::info!(webhookId = %job.webhook, cancelled, open, "cancelled a page");
        let looked = looking.looked(open > 0, page.end.as_ref());
        let over = looked.left.is_empty() && !looked.is_done();
        // Nobody adds to it, so that it can be replaced.
        let change = Box::new(move |work: &mut Work| *work = Work::Cancel(looked.clone()));
        Ok(if over { Piece::Wait(change, now + PAUSE) } else { Piece::Next(change) })
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
    fn a_look_that_is_under_way_goes_on_where_it_was() {
        let place = Place::parse("2026-11-20T09:45:00.123Z#dlv_01m7w5gmev32p3wwt3y0b8j32h").expect("a place");
        let begun = Cancellation::new(REMOVED).looked(true, Some(&place));
        let later = begun.looking(REMOVED + SETTLED);
        assert_eq!(later, begun);
        assert!(later.looked(false, None).found, "what an earlier page has found counts");
    }
}
