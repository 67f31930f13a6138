//! The PKCE code verifier (RFC 7636), which binds the returned code to this service.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use base::{Random, random};
use storage::SecretText;

/// A code verifier. The provider gets its hash first, and the verifier with the code.
#[derive(Debug, Clone)]
pub struct CodeVerifier(SecretText);

impl CodeVerifier {
    /// A new verifier: 256 random bits in 43 characters (RFC 7636 §4.1).
    pub fn new(random: &dyn Random) -> Self {
        Self(SecretText::new(BASE64_URL_SAFE_NO_PAD.encode(random::bytes::<32>(random))))
    }

    /// A stored verifier.
    pub fn from_stored(text: String) -> Self {
        Self(SecretText::new(text))
    }

    /// The verifier's hash, by the S256 method (RFC 7636 §4.2).
    pub fn challenge(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, self.expose().as_bytes()))
    }

    /// The verifier as a string, for sealing and sending.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::SystemRandom;

    /// RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_that_of_the_rfcs_example() {
        let octets = [
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77, 105, 214, 191,
            240, 91, 88, 5, 88, 83, 132, 141, 121,
        ];
        struct Octets([u8; 32]);
        impl Random for Octets {
            fn fill(&self, buffer: &mut [u8]) {
                buffer.copy_from_slice(&self.0);
            }
        }
        let verifier = CodeVerifier::new(&Octets(octets));
        assert_eq!(verifier.expose(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(CodeVerifier::from_stored(verifier.expose().to_owned()).challenge(), verifier.challenge());
    }

    #[test]
    fn a_verifier_is_new_each_time_and_not_printed() {
        let one = CodeVerifier::new(&SystemRandom);
        let other = CodeVerifier::new(&SystemRandom);
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), 43);
        assert!(!format!("{one:?}").contains(one.expose()));
    }
}
