//! Receipts: proof that a reader holds a delivery.

use std::fmt;

use base::DeliveryId;

/// A receipt: the delivery, and its reader's lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub(super) delivery: DeliveryId,
    pub(super) attempt: u32,
    pub(super) lease: String,
}

/// The maximum length of a lease in a receipt, in bytes: a UUID.
const MAX_LEASE: usize = 36;

impl Receipt {
    /// Reads a receipt; `None` if the string is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let delivery = DeliveryId::parse(parts.next()?)?;
        let attempt = parts.next()?;
        let attempt = attempt.parse().ok().filter(|number: &u32| *number > 0 && number.to_string() == attempt)?;
        let lease = parts.next()?;
        let is_lease = lease.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (is_lease && (1..=MAX_LEASE).contains(&lease.len())).then(|| Self {
            delivery,
            attempt,
            lease: lease.to_owned(),
        })
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.delivery, self.attempt, self.lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{EventId, SystemRandom, Time, random};
    use proptest::prelude::*;

    #[test]
    fn a_receipt_is_read_as_written() {
        let event = EventId::new(Time::from_millis(1_795_167_900_000), &SystemRandom);
        let delivery = DeliveryId::of(&event, 3);
        let receipt = Receipt { delivery, attempt: 12, lease: random::uuid(&SystemRandom) };
        assert_eq!(Receipt::parse(&receipt.to_string()), Some(receipt.clone()));
        for bad in ["", "x", ".1.x", &format!("{}.0.x", receipt.delivery), &format!("{}.01.x", receipt.delivery)] {
            assert_eq!(Receipt::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_of_receipts_panic(text in "\\PC{0,80}") {
            let _ = Receipt::parse(&text);
        }
    }
}
