//! The only source of randomness.

use std::sync::Arc;

use aws_lc_rs::rand;

/// A source of random bytes. Use cases take it as an argument, so that tests are repeatable.
pub trait Random: Send + Sync {
    /// Fills the whole buffer with unpredictable bytes.
    fn fill(&self, buffer: &mut [u8]);
}

/// A source that can be shared between tasks.
pub type SharedRandom = Arc<dyn Random>;

/// The operating system's generator, through the cryptographic library.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that draws")]
        rand::fill(buffer).expect("without the system's generator no secret may be issued");
    }
}

/// An array of random bytes.
pub fn bytes<const N: usize>(random: &dyn Random) -> [u8; N] {
    let mut bytes = [0; N];
    random.fill(&mut bytes);
    bytes
}

/// A number in [0, 1), for jitter.
pub fn unit(random: &dyn Random) -> f64 {
    f64::from(u32::from_le_bytes(bytes(random))) / (f64::from(u32::MAX) + 1.0)
}

/// A string of `length` characters, each equally likely one of A–Z, a–z, 0–9 (about 5.95 bits a character).
pub fn alphanumeric(random: &dyn Random, length: usize) -> String {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut text = String::with_capacity(length);
    while text.len() < length {
        // Bytes of 248 (4 × 62) and more are dropped, so that all characters are equally likely.
        let picked = bytes::<64>(random).into_iter().filter(|byte| *byte < 248);
        text.extend(picked.map(|byte| char::from(ALPHABET[usize::from(byte % 62)])).take(length - text.len()));
    }
    text
}

/// A random UUID (RFC 9562 §5.4).
pub fn uuid(random: &dyn Random) -> String {
    let number = u128::from_be_bytes(bytes(random));
    let number = number & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{number:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_text_has_the_requested_length_and_alphabet() {
        for length in [0, 1, 22, 43, 200] {
            let text = alphanumeric(&SystemRandom, length);
            assert_eq!(text.len(), length);
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
        assert_ne!(alphanumeric(&SystemRandom, 43), alphanumeric(&SystemRandom, 43));
    }

    #[test]
    fn a_random_unit_is_at_least_0_and_below_1() {
        struct Fixed(u8);
        impl Random for Fixed {
            fn fill(&self, buffer: &mut [u8]) {
                buffer.fill(self.0);
            }
        }
        assert_eq!(unit(&Fixed(0)), 0.0);
        assert!(unit(&Fixed(255)) < 1.0);
    }
}
