//! Deliveries whose first attempt this process began without a claim. A queue may give the same message twice, mostly
//! within moments; the second one is dropped here.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, PoisonError},
};

use super::lease_times::CARRIED;
use base::{DeliveryId, Time};

/// The deliveries of the last seconds; an older message needs a claim anyway.
#[derive(Debug, Default)]
pub(super) struct Taken(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    deliveries: HashSet<DeliveryId>,
    in_order: VecDeque<(Time, DeliveryId)>,
}

impl Taken {
    /// Takes a delivery; false when it was taken before.
    pub(super) fn take(&self, delivery: &DeliveryId, now: Time) -> bool {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while recent.in_order.front().is_some_and(|(taken, _)| *taken + CARRIED <= now) {
            if let Some((_, old)) = recent.in_order.pop_front() {
                recent.deliveries.remove(&old);
            }
        }
        let is_new = recent.deliveries.insert(delivery.clone());
        if is_new {
            recent.in_order.push_back((now, delivery.clone()));
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::item::tests::{NOW, head};

    #[test]
    fn a_message_that_comes_twice_is_taken_once() {
        let (taken, delivery) = (Taken::default(), head().delivery.id);
        assert!(taken.take(&delivery, NOW));
        assert!(!taken.take(&delivery, NOW));
        let later = NOW + CARRIED;
        assert!(taken.take(&delivery, later), "it is forgotten when no message can be fresh any more");
        assert!(!taken.take(&delivery, later));
    }
}
