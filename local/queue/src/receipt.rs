//! Receipts: each receive of a message has its own.

use std::{fmt, str::FromStr};

use crate::{ready::Number, refusal::Refusal};

/// One receive of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// Drawn for each queue at its creation, so that a receipt of another queue or run deletes nothing.
    pub queue: u64,
    pub number: Number,
    /// Counted from 1.
    pub receive: u32,
}

const LENGTH: usize = 16 + 16 + 8;

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}{:08x}", self.queue, self.number, self.receive)
    }
}

impl FromStr for Receipt {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        if text.len() != LENGTH || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(Refusal::receipt());
        }
        let part = |from, to| u64::from_str_radix(&text[from..to], 16).map_err(|_| Refusal::receipt());
        let receive = u32::try_from(part(32, LENGTH)?).map_err(|_| Refusal::receipt())?;
        Ok(Self { queue: part(0, 16)?, number: part(16, 32)?, receive })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_read_back_and_nothing_else_is_one() {
        let receipt = Receipt { queue: u64::MAX - 1, number: 7, receive: 3 };
        assert_eq!(receipt.to_string().parse(), Ok(receipt));
        for text in ["", "x", &"0".repeat(39), &"g".repeat(40), &"é".repeat(20), &format!("+{}", "0".repeat(39))] {
            assert!(text.parse::<Receipt>().is_err(), "{text}");
        }
    }
}
