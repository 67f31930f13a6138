//! Finds a feed's deliveries that can be given to a reader. Unreadable and expired deliveries do not block the ones
//! behind them.

use std::{collections::HashMap, iter, time::Duration};

use futures::{StreamExt, stream};
use tokio::time::Instant;

use crate::{
    deliveries::{
        feed::{DEFAULT_LIMIT, Feeds, PARALLEL},
        outcome::Outcome,
        queries::range::KeyRange,
        state::{head::Head, index::IndexGroup, schedule::Next},
    },
    events::store::StoredEvent,
    subscriptions::Webhook,
};
use auth::AuthorizedEntity;
use base::{DeliveryId, Time, WebhookId, logging, random};
use storage::TableError;

/// How many of a feed's deliveries a look reads, and so how many its readers can hold at once.
const MAX_LOOKED_AT: usize = 1_000;
/// The maximum number of deliveries that one call reads from a feed.
const MAX_PAGE: usize = 200;
/// Time limit for recording the attempt of an earlier reader that did not answer. If it takes longer, a later reader or
/// the dispatcher records the attempt.
const RECORD_LIMIT: Duration = Duration::from_secs(5);
/// The maximum total size of the bodies in one response, in bytes. A quote takes four bytes there, since the body is a
/// JSON string within a response that is itself a JSON string. A function's response may be at most 6 MB.
const MAX_BODIES: usize = 1024 * 1024;
/// How many waiting or held deliveries each look reads again, at half a read unit each: a resend or their reader's
/// answer may have made them due earlier. At two looks a second, a request reads twice this number per second. The
/// number is small because a managing entity may have two hundred waiting requests.
const MAX_READ_AGAIN: usize = 8;

/// The deliveries that a request skips, so that not every look at the feed reads all of them again.
#[derive(Debug, Default)]
pub(super) struct Passed(HashMap<DeliveryId, PassedOver>);

/// A delivery that a request skips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PassedOver {
    /// Until the end of the request.
    ForGood,
    /// Until this time, unless a later look forgets it sooner.
    Until {
        time: Time,
        /// Whether a reader or a worker holds it. If not, it is waiting for its next attempt, which a person may
        /// request.
        is_held: bool,
        /// When its head was read.
        read: Time,
    },
}

impl Passed {
    /// Skips these deliveries until the end of the request.
    pub(super) fn for_good(&mut self, ids: impl IntoIterator<Item = DeliveryId>) {
        self.0.extend(ids.into_iter().map(|id| (id, PassedOver::ForGood)));
    }

    /// Skips a delivery until this time.
    fn until(&mut self, time: Time, head: &Head, read: Time) {
        let passed = PassedOver::Until { time, is_held: head.lease().is_some(), read };
        self.0.insert(head.delivery.id.clone(), passed);
    }

    /// Forgets some deliveries, so that the next look reads their heads again: first the ones without a holder, then
    /// the ones read longest ago.
    fn forget_some(&mut self) {
        let times = self.0.iter().filter_map(|(id, passed)| match *passed {
            PassedOver::ForGood => None,
            PassedOver::Until { is_held, read, .. } => Some((is_held, read, id.clone())),
        });
        let mut times: Vec<_> = times.collect();
        times.sort();
        for (_, _, id) in times.into_iter().take(MAX_READ_AGAIN) {
            self.0.remove(&id);
        }
    }

    fn has(&self, id: &DeliveryId, now: Time) -> bool {
        self.0.get(id).is_some_and(|passed| match passed {
            PassedOver::ForGood => true,
            PassedOver::Until { time, .. } => *time > now,
        })
    }
}

/// Deliveries that can be given to a reader, with their events, and deliveries whose events cannot be read.
pub(super) struct Free {
    pub(super) free: Vec<(Head, StoredEvent)>,
    pub(super) unreadable: Vec<DeliveryId>,
}

/// Whether an item is damaged, so that a retry would fail as well.
fn is_unreadable(error: &TableError) -> bool {
    matches!(error, TableError::Item { .. } | TableError::Missing(_))
}

/// Leaves out the deliveries that failed, since the reader already holds the others and must see them. If nothing else
/// is left, returns the first error. An unreadable item is not an error, since it stays unreadable.
pub(super) fn without_failed<T>(all: Vec<Result<Option<T>, TableError>>) -> Result<Vec<T>, TableError> {
    let (mut left, mut failed) = (Vec::new(), None);
    for one in all {
        match one {
            Ok(one) => left.extend(one),
            Err(error) if is_unreadable(&error) => tracing::error!(
                error = %logging::chain(&error),
                "skipped a feed delivery because it cannot be read"
            ),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    match failed {
        Some(error) if left.is_empty() => Err(error),
        Some(error) => {
            tracing::warn!(
                error = %logging::chain(&error),
                "left a feed delivery to the next reader because the table did not answer"
            );
            Ok(left)
        }
        None => Ok(left),
    }
}

/// Page sizes for a look at a feed. They grow because readers may hold the oldest deliveries: a look then skips many,
/// and each call costs at least half a read unit.
fn pages(limit: usize) -> impl Iterator<Item = usize> {
    iter::successors(Some(limit.max(DEFAULT_LIMIT)), |size| Some((size * 2).min(MAX_PAGE)))
}

impl Feeds {
    /// Whether this entity's readers may receive a delivery of this event.
    pub(super) fn is_readable(entity: &AuthorizedEntity, head: &Head, event: &StoredEvent) -> bool {
        head.delivery.owner_identifier == *entity.id() && event.item.erased_date.is_none()
    }

    /// The oldest deliveries that no reader holds, possibly more than `limit`. Adds held, waiting and expired ones to
    /// `passed`, and reads again some that an earlier look added.
    pub(super) async fn readable(
        &self,
        webhook: &WebhookId,
        limit: usize,
        passed: &mut Passed,
    ) -> Result<Vec<Head>, TableError> {
        passed.forget_some();
        let mut range = KeyRange::since(Time::from_millis(0));
        let (mut found, mut expired) = (Vec::new(), Vec::new());
        let mut looked_at = 0;
        let mut pages = pages(limit);
        while found.len() < limit && looked_at < MAX_LOOKED_AT {
            let page_size = pages.next().unwrap_or(MAX_PAGE);
            let most = i32::try_from(page_size).unwrap_or(i32::MAX);
            let page = self.deliveries.of_group(webhook, IndexGroup::Unread, &range, most).await?;
            looked_at += page.looked_at;
            let now = self.clock.now();
            let ids: Vec<_> = page.found.into_iter().filter(|id| !passed.has(id, now)).collect();
            let heads = self.deliveries.heads(ids.iter().map(|id| (id, None)).collect()).await?;
            for head in heads.into_iter().flatten().filter(|head| head.delivery.webhook_identifier == *webhook) {
                if !head.is_kept(now) {
                    passed.for_good([head.delivery.id.clone()]);
                    expired.push(head);
                    continue;
                }
                match head.claimable_at() {
                    // The dispatcher will cancel it.
                    _ if head.is_erased() => {}
                    Some(from) if from <= now => found.push(head),
                    Some(from) => passed.until(from, &head, now),
                    // The delivery is final: the index lags behind.
                    None => {}
                }
            }
            let Some(end) = page.end else { break };
            range = range.after(&end);
        }
        // A feed that has not been read for a long time begins with expired deliveries, which the table removes only
        // days later.
        let now = self.clock.now();
        let aside = expired.into_iter().map(|head| async move { self.deliveries.set_aside(&head, now).await });
        let aside: Vec<_> = stream::iter(aside).buffer_unordered(PARALLEL).collect().await;
        if let Some(error) = aside.iter().find_map(|done| done.as_ref().err()) {
            tracing::warn!(
                error = %logging::chain(error),
                webhookId = %webhook,
                "expired deliveries remain in a feed; the next reader will skip them"
            );
        }
        Ok(found)
    }

    /// The deliveries that can be given to a reader, in order and with their events, within the limits of the request
    /// and the response. Records the attempts of earlier readers that did not answer in time.
    pub(super) async fn free(
        &self,
        entity: &AuthorizedEntity,
        webhook: &Webhook,
        found: Vec<Head>,
        limit: usize,
    ) -> Result<Free, TableError> {
        let events = stream::iter(found).map(async |head| {
            let event = self.deliveries.events.find(&head.event()).await;
            (head, event)
        });
        let mut events = events.buffered(PARALLEL);
        let (mut chosen, mut count, mut bytes, mut unreadable) = (Vec::new(), 0, 0, Vec::new());
        while let Some((head, event)) = events.next().await {
            let event = match event {
                // Without its event, the delivery waits: a late publication opens its deliveries before it writes the
                // event.
                Ok(event) => event.filter(|event| Self::is_readable(entity, &head, event)),
                Err(error) => {
                    if is_unreadable(&error) {
                        unreadable.push(head.delivery.id);
                    }
                    chosen.push(Err(error));
                    continue;
                }
            };
            let Some(event) = event else { continue };
            bytes += event.body.len();
            if count == limit || (bytes > MAX_BODIES && count > 0) {
                break;
            }
            count += 1;
            chosen.push(Ok(Some((head, event))));
        }
        drop(events);
        let free = without_failed(chosen)?.into_iter().map(|(head, event)| async move {
            let head = self.without_former_reader(webhook, head).await?;
            Ok::<_, TableError>(head.map(|head| (head, event)))
        });
        let free = without_failed(stream::iter(free).buffered(PARALLEL).collect().await)?;
        Ok(Free { free, unreadable })
    }

    /// Records the attempt of an earlier reader that did not answer in time, or of a worker that died before the
    /// webhook became a pull webhook. Returns `None` if nothing is left to read, or another reader is about to receive
    /// the delivery.
    async fn without_former_reader(&self, webhook: &Webhook, head: Head) -> Result<Option<Head>, TableError> {
        if !head.has_attempt_to_record() {
            return Ok(Some(head));
        }
        let id = &head.delivery.id;
        let now = self.clock.now();
        let attempt = head.next_attempt();
        let until = Instant::now() + RECORD_LIMIT;
        let claim = self.deliveries.claim(id, attempt, random::uuid(&*self.random), now).await?;
        let Some(claimed) = claim.done().map(|claimed| claimed.until(until)) else { return Ok(None) };
        if claimed.unknown().is_none() {
            // The delivery's worker has put it back into the feed in the meantime.
            self.deliveries.release(&claimed).await?;
            return Ok(None);
        }
        let outcome = Outcome::Unknown { in_feed: true, webhook_ended: false };
        let Some((counted, next)) = self.recorder(webhook).record(&claimed, &outcome, now).await? else {
            return Ok(None);
        };
        self.count(vec![(claimed.delivery().clone(), counted)]).await;
        if next.retry_at().is_none() {
            self.wake_next(claimed.head(), webhook, now).await;
        }
        if next == Next::ReadFrom(now) { self.deliveries.head(id).await } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::state::head::tests::{LATER, NOW, head};
    use base::{EventId, SystemRandom};

    /// A delivery that is waiting, or that a reader holds.
    fn waiting(lease: Option<&str>) -> Head {
        let mut head = if lease.is_some() { head().leased(LATER) } else { head() };
        head.delivery.id = DeliveryId::of(&EventId::new(NOW, &SystemRandom), 0);
        head
    }

    /// The deliveries that are no longer skipped once the next look has forgotten some.
    fn forgotten(passed: &mut Passed, heads: &[Head]) -> Vec<usize> {
        passed.forget_some();
        let is_forgotten = |position: &usize| !passed.has(&heads[*position].delivery.id, NOW);
        (0..heads.len()).filter(is_forgotten).collect()
    }

    #[test]
    fn every_look_reads_a_few_passed_deliveries_again() {
        let few: Vec<_> = [None, Some("reader")].map(waiting).into();
        let mut passed = Passed::default();
        few.iter().for_each(|head| passed.until(LATER, head, NOW));
        let unreadable = waiting(None);
        passed.for_good([unreadable.delivery.id.clone()]);
        assert!(few.iter().all(|head| passed.has(&head.delivery.id, NOW) && !passed.has(&head.delivery.id, LATER)));
        assert_eq!(forgotten(&mut passed, &few), [0, 1]);
        assert!(passed.has(&unreadable.delivery.id, LATER));
    }

    #[test]
    fn looks_take_turns_and_begin_with_deliveries_that_no_reader_holds() {
        let held = (0..3 * MAX_READ_AGAIN).map(|_| waiting(Some("reader")));
        let heads: Vec<_> = held.chain([waiting(None)]).collect();
        let mut passed = Passed::default();
        for (head, milliseconds) in heads.iter().zip(0..) {
            passed.until(LATER, head, NOW + Duration::from_millis(milliseconds));
        }
        let unheld = heads.len() - 1;
        let mut read_again = Vec::new();
        for look in 1..=4 {
            let some = forgotten(&mut passed, &heads);
            assert!(some.len() == MAX_READ_AGAIN && some.contains(&unheld), "{some:?}");
            for position in &some {
                passed.until(LATER, &heads[*position], NOW + Duration::from_secs(look));
            }
            read_again.extend(some);
        }
        read_again.sort_unstable();
        read_again.dedup();
        assert_eq!(read_again.len(), heads.len(), "each in its turn");
    }

    #[test]
    fn a_thousand_held_deliveries_are_passed_over_in_few_calls() {
        for (limit, calls) in [(1, 9), (10, 9), (100, 6)] {
            let mut looked_at = 0;
            let until_done = pages(limit).take_while(|size| {
                let is_needed = looked_at < MAX_LOOKED_AT;
                looked_at += size;
                is_needed
            });
            assert_eq!(until_done.count(), calls, "{limit}");
        }
    }

    #[test]
    fn one_failed_delivery_keeps_no_other_from_the_reader() {
        let throttled = || Err(TableError::code("claiming an attempt", "ThrottlingException"));
        let unreadable = || Err(TableError::Missing("an event's body"));
        assert_eq!(
            without_failed(vec![Ok(Some(1)), throttled(), unreadable(), Ok(None), Ok(Some(2))]).ok(),
            Some(vec![1, 2])
        );
        assert_eq!(without_failed::<i32>(vec![unreadable(), Ok(None)]).ok(), Some(Vec::new()));
        let error = without_failed::<i32>(vec![Ok(None), unreadable(), throttled()]).expect_err("nothing is left");
        assert!(matches!(error, TableError::Unavailable { .. }), "{error}");
    }
}
