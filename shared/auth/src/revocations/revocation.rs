//! Revocations, and the tokens that they end.

use std::time::Duration;

use crate::token::LONGEST_LIFETIME;
use base::Time;

/// How long the tokens of an application or a credential are revoked: the longest lifetime of a token, and a few
/// minutes for tokens that were being issued. The tokens of a credential that has ended may be valid for just as long.
pub const TOKENS_REVOKED: Duration = Duration::from_secs(LONGEST_LIFETIME as u64 + 5 * 60);
/// The longest time that a revocation applies: warm functions use a revoked signing key for a few more minutes.
pub(super) const LONGEST_LIFE: Duration = Duration::from_secs(LONGEST_LIFETIME as u64 + 10 * 60);
/// How long tokens may still appear to be issued after their application or credential was removed: clocks differ, and
/// some tokens were being issued at that moment. If an application is registered again later, its tokens are valid.
const LAST_ISSUED: Duration = Duration::from_secs(5 * 60);

/// The object that is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One token, by its `jti`.
    Token,
    /// Every token of a removed application, by its client identifier.
    Client,
    /// Every token that a key signed, by the key's name.
    Key,
    /// Every token obtained with a secret or a key of an application, by `credential`.
    Credential,
    /// Every token of an application that was issued up to a given time, by its client identifier.
    Issued,
    /// Every token of a panel session, by the link that opened the session.
    Session,
}

impl Kind {
    pub(super) const ALL: [Self; 6] =
        [Self::Token, Self::Client, Self::Key, Self::Credential, Self::Issued, Self::Session];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Client => "client",
            Self::Key => "key",
            Self::Credential => "credential",
            Self::Issued => "issued",
            Self::Session => "session",
        }
    }
}

/// The identifier of an application's secret or key in the list.
pub fn credential(client_id: &str, credential_id: &str) -> String {
    format!("{client_id}#{credential_id}")
}

/// One revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// The revoked object's kind.
    pub kind: Kind,
    /// The revoked object's identifier.
    pub id: String,
    /// When the revocation was made, by the clock of the process that made it.
    pub made: Time,
    /// The latest issue time of the revoked tokens.
    pub issued_until: Time,
    /// When the revoked tokens would have expired.
    pub until: Time,
}

impl Revocation {
    /// The revocation of one object and all its tokens. The identifier of an application or a credential may be used
    /// again, so these revocations cover only tokens issued up to five minutes after `made`.
    pub fn new(kind: Kind, id: &str, made: Time, until: Time) -> Self {
        let issued_until = match kind {
            Kind::Client | Kind::Credential => made + LAST_ISSUED,
            Kind::Token | Kind::Key | Kind::Issued | Kind::Session => until,
        };
        Self { kind, id: id.to_owned(), made, issued_until, until }
    }
}
