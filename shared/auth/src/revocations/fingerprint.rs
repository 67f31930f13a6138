//! What a revocation ends, as 64 bits under a salt: little memory, and little to read at a start.

use aws_lc_rs::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::revocation::Kind;
use base::{Random, random};

/// Salts fingerprints, so that an attacker cannot search for a token that is taken for a revoked one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Salt(#[serde(with = "serde_bytes")] [u8; 16]);

impl Salt {
    pub(super) fn fresh(random: &dyn Random) -> Self {
        Self(random::bytes(random))
    }

    /// The salt as a number, for a key of the table.
    pub(super) fn number(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// The fingerprint of a target. It is stored in snapshots, so that its making must never change.
    pub(super) fn fingerprint(&self, target: &Target<'_>) -> u64 {
        let (kind, id) = match target {
            Target::One(kind, id) => (kind.name(), id),
            Target::AnyCredential(client_id) => ("credentials", client_id),
        };
        let mut context = Context::new(&SHA256);
        for part in [&self.0, kind.as_bytes(), b"#", id.as_bytes()] {
            context.update(part);
        }
        let digest = context.finish();
        let (first, _) = digest.as_ref().split_first_chunk().expect("a digest of SHA-256 has 32 bytes");
        u64::from_be_bytes(*first)
    }
}

/// The thing that an entry revokes. A token that does not name its credential may have been got with
/// any credential of its application.
pub(super) enum Target<'a> {
    One(Kind, &'a str),
    AnyCredential(&'a str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_as_snapshots_have_it_and_another_under_another_salt_or_of_another_kind() {
        let salt = Salt([7; 16]);
        let of = |salt: &Salt, kind, id| salt.fingerprint(&Target::One(kind, id));
        // printf '\7%.0s' {1..16} and then "token#t", through sha256sum.
        assert_eq!(of(&salt, Kind::Token, "t"), FIXED);
        assert_ne!(of(&Salt([8; 16]), Kind::Token, "t"), FIXED);
        assert_ne!(of(&salt, Kind::Client, "t"), FIXED);
        assert_ne!(of(&salt, Kind::Credential, "t"), salt.fingerprint(&Target::AnyCredential("t")));
    }

    const FIXED: u64 = 0xab3c3a523f06d79b;
}
