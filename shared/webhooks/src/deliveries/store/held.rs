//! Held deliveries: an ordered webhook receives the events about a subject one after another. A delivery is held until
//! the preceding one in its subject's line (`events::line`) is final. If that one ended out of turn, the delivery waits
//! for those before it.
//!
//! The worker that holds a delivery first writes the hold, and then checks the preceding delivery again. The worker
//! that ends the preceding delivery then looks for a held one. So at least one of the two sees that the held delivery
//! can be sent. If the worker that ends it dies in between, its message is delivered again, and the dispatcher that
//! finds the delivery final looks for a held one. An erasure does the same for the deliveries that it ends.

use tokio::time::Instant;

use crate::{
    deliveries::{
        queue::message::{AttemptMessage, DeliveryOwner},
        state::{
            Wait,
            delivery::Status,
            head::Head,
            index::{AnnouncedBy, Index},
            times::CLAIM_LIMIT,
        },
        store::{Deliveries, attributes::HeadChange, skip_unreadable},
    },
    subscriptions::Webhook,
};
use base::{DeliveryId, Time, WebhookId, logging};
use storage::table::{TableError, Written};

/// The maximum number of deliveries in a line that are skipped because they ended out of turn.
const LONGEST_WALK: usize = 200;

const WAKING: &str = "waking a held delivery";

/// A delivery that became due because the preceding one is final.
#[derive(Debug)]
pub(crate) enum Woken {
    /// It is due, and the caller announces it with this message.
    Due(AttemptMessage),
    /// It is in its webhook's feed.
    InFeed,
}

/// A delivery that became final, for waking the next one in its line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended<'a> {
    last: &'a Head,
    /// Whether all preceding ones are final as well.
    in_turn: bool,
    announced_by: AnnouncedBy,
}

/// The delivery whose end wakes another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waker<'a> {
    pub(crate) by: &'a DeliveryId,
    /// Whether all deliveries before the woken one are final.
    pub(crate) in_turn: bool,
    /// Who announces the woken delivery's attempt.
    pub(crate) announced_by: AnnouncedBy,
}

impl<'a> Ended<'a> {
    /// A delivery whose last attempt has been made.
    pub(crate) fn attempted(last: &'a Head) -> Self {
        Self { last, in_turn: !last.out_of_turn, announced_by: AnnouncedBy::Message }
    }

    /// A delivery whose last attempt a reader made: readers announce nothing.
    pub(crate) fn read(last: &'a Head) -> Self {
        Self { announced_by: AnnouncedBy::Sweep, ..Self::attempted(last) }
    }

    /// A delivery that was cancelled.
    pub(crate) fn cancelled(last: &'a Head) -> Self {
        Self { last, in_turn: false, announced_by: AnnouncedBy::Message }
    }

    /// A delivery that another worker ended earlier.
    pub(crate) fn before(last: &'a Head) -> Self {
        if last.status() == Status::Cancelled { Self::cancelled(last) } else { Self::attempted(last) }
    }
}

/// A delivery's state, as far as it matters to the next one in its line.
enum StateInLine {
    /// The next one waits for it.
    Open,
    /// It is final or gone, and so are the ones before it.
    EndedInTurn,
    /// It ended before its turn: its owner cancelled it or requested its attempt, or its event was erased. The next one
    /// waits for those before it.
    EndedEarly { before: DeliveryId },
}

/// The outcome of waking a delivery.
#[derive(Debug)]
pub(crate) enum Wake {
    Woken(Woken),
    /// It is not held. If it ended before its turn, the one after it may be held.
    NotHeld {
        ended_early: bool,
    },
}

impl Wake {
    fn not_held(head: Option<&Head>) -> Self {
        Self::NotHeld { ended_early: head.is_some_and(Head::ended_early) }
    }

    pub(crate) fn woken(self) -> Option<Woken> {
        match self {
            Self::Woken(woken) => Some(woken),
            Self::NotHeld { .. } => None,
        }
    }
}

impl Deliveries {
    /// The delivery that the next one in its line is waiting for: `before`, if it is open. If `before` ended out of
    /// turn, an open delivery before it. `None` if the next one may be sent.
    pub(crate) async fn open_before(&self, before: &DeliveryId, now: Time) -> Result<Option<DeliveryId>, TableError> {
        let mut looked_at = before.clone();
        for _ in 0..LONGEST_WALK {
            match self.state_in_line(&looked_at, now).await? {
                StateInLine::Open => return Ok(Some(looked_at)),
                StateInLine::EndedInTurn => return Ok(None),
                StateInLine::EndedEarly { before } => looked_at = before,
            }
        }
        tracing::warn!(deliveryId = %before, "too many deliveries of a line ended out of turn; the next one is sent");
        Ok(None)
    }

    async fn state_in_line(&self, id: &DeliveryId, now: Time) -> Result<StateInLine, TableError> {
        let consequence =
            "a delivery or its event cannot be read; the next delivery for its subject no longer waits for it";
        let Some(head) = skip_unreadable(self.head(id).await, id, consequence)? else {
            return Ok(StateInLine::EndedInTurn);
        };
        match &head {
            Some(head) if !head.is_final() && head.is_kept(now) => return Ok(StateInLine::Open),
            Some(head) if !head.ended_early() => return Ok(StateInLine::EndedInTurn),
            _ => {}
        }
        let event = skip_unreadable(self.events.item(&id.event()).await, id, consequence)?.flatten();
        let Some(event) = event.filter(|event| event.is_kept(now)) else { return Ok(StateInLine::EndedInTurn) };
        if head.is_none() && Head::new(&event, id).is_some_and(|new| !new.is_final()) {
            return Ok(StateInLine::Open);
        }
        let before = event.targets.get(id.ordinal()).and_then(|target| target.after.clone());
        Ok(before.map_or(StateInLine::EndedInTurn, |before| StateInLine::EndedEarly { before }))
    }

    /// Wakes the delivery held by another that has ended. Returns `None` if none is held, since the next one's attempt
    /// will find it final. Costs nothing for a webhook that is not ordered.
    pub(crate) async fn wake_next(
        &self,
        ended: Ended<'_>,
        webhook: &Webhook,
        now: Time,
    ) -> Result<Option<Woken>, TableError> {
        let last = &ended.last.delivery;
        // An erased delivery no longer has a subject.
        let may_have_next = !last.test && (last.subject.is_some() || last.erased_date.is_some());
        if !webhook.is_ordered() || !may_have_next {
            return Ok(None);
        }
        let mut passed = last.id.clone();
        for _ in 0..LONGEST_WALK {
            let Some(next) = self.events.next_in_line(&passed).await? else { return Ok(None) };
            let waker = Waker { by: &last.id, in_turn: ended.in_turn, announced_by: ended.announced_by };
            match self.wake(&next, waker, webhook, now).await? {
                Wake::Woken(woken) => return Ok(Some(woken)),
                Wake::NotHeld { ended_early: true } => passed = next,
                Wake::NotHeld { ended_early: false } => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Makes the delivery `held` due, or puts it into the feed if `by` held it and ended in turn. Any other held
    /// delivery becomes due, and its attempt holds it again if necessary.
    pub(crate) async fn wake(
        &self,
        held: &DeliveryId,
        Waker { by, in_turn, announced_by }: Waker<'_>,
        webhook: &Webhook,
        now: Time,
    ) -> Result<Wake, TableError> {
        if in_turn && webhook.is_pulled() && webhook.enabled {
            let in_feed = Index::in_feed(held.time(), now);
            let change = HeadChange::waking(held, &Wait::Reader, in_feed, &webhook.id, now).if_held_by(by);
            match self.write_woken(change, held, by, now).await? {
                Written::Done(_) => return Ok(Wake::Woken(Woken::InFeed)),
                Written::Lost(Some(head)) if head.is_held() => {}
                Written::Lost(head) => return Ok(Wake::not_held(head.as_ref())),
            }
        }
        match self.write_woken(due_now(held, &webhook.id, announced_by, now), held, by, now).await? {
            Written::Done(head) => {
                let message =
                    AttemptMessage::new(held.clone(), head.next_attempt(), DeliveryOwner::of(head.delivery()));
                Ok(Wake::Woken(Woken::Due(message.since(webhook.last_update).waiting())))
            }
            Written::Lost(head) => Ok(Wake::not_held(head.as_ref())),
        }
    }

    async fn write_woken(
        &self,
        change: HeadChange,
        held: &DeliveryId,
        by: &DeliveryId,
        now: Time,
    ) -> Result<Written<Head>, TableError> {
        let change = change.if_held().if_open().if_not_erased().if_unleased();
        let table = self.table.until(Instant::now() + CLAIM_LIMIT);
        let written: Written<Head> = table.write_together_and_read(change.into(), WAKING).await?;
        let is_own = |head: &Head| !head.is_held() && head.delivery.last_update == now && !head.is_final();
        let written = written.or_own(is_own);
        if written.is_done() {
            tracing::info!(
                deliveryId = %held,
                before = %by,
                "woken: the previous delivery for the same subject is final"
            );
        }
        Ok(written)
    }

    /// Makes the delivery held by `erased` due. The sweep announces it, since an erasure has neither the webhook nor
    /// the queue. If `erased` is not final yet, the attempt holds the delivery again.
    pub(crate) async fn wake_next_by_sweep(
        &self,
        erased: &DeliveryId,
        webhook: &WebhookId,
        now: Time,
    ) -> Result<(), TableError> {
        let mut ended = erased.clone();
        for _ in 0..LONGEST_WALK {
            let Some(next) = self.events.next_in_line(&ended).await? else { return Ok(()) };
            let change = due_now(&next, webhook, AnnouncedBy::Sweep, now);
            match self.write_woken(change, &next, erased, now).await? {
                Written::Lost(Some(head)) if head.ended_early() => ended = next,
                Written::Done(_) | Written::Lost(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Wakes the next delivery like [`Self::wake_next`], but only logs an error, since the dispatcher checks held
    /// deliveries from time to time.
    pub(crate) async fn wake_next_or_log(&self, ended: Ended<'_>, webhook: &Webhook, now: Time) -> Option<Woken> {
        match self.wake_next(ended, webhook, now).await {
            Ok(woken) => woken,
            Err(error) => {
                tracing::warn!(
                    error = %logging::chain(&error),
                    deliveryId = %ended.last.delivery.id,
                    "the next delivery for a subject was not woken; the dispatcher will send it when it checks again"
                );
                None
            }
        }
    }
}

/// The change that releases a held delivery for sending.
fn due_now(held: &DeliveryId, webhook: &WebhookId, announced_by: AnnouncedBy, now: Time) -> HeadChange {
    HeadChange::waking(held, &Wait::Schedule, Index::due_now(announced_by, now), webhook, now)
}
