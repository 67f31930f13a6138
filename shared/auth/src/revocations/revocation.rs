//! One revocation, and the tokens that it ends.

use std::time::Duration;

use crate::token::LONGEST_LIFETIME;
use base::Time;

/// How long the tokens of an application or of a credential are revoked: the longest that a token
/// may live, and some minutes for those that were being issued. For as long, a credential that has
/// ended has tokens that may still be good.
pub const TOKENS_REVOKED: Duration = Duration::from_secs(LONGEST_LIFETIME as u64 + 5 * 60);
/// The longest for which a revocation may count after it was made: for a key that signs for some minutes more.
pub(super) const LONGEST_LIFE: Duration = Duration::from_secs(LONGEST_LIFETIME as u64 + 10 * 60);
/// How long after the removal of an application or of a credential its tokens may seem to be
/// issued: for clocks, and for tokens that were being issued. An application that is registered
/// again later has good tokens.
const LAST_ISSUED: Duration = Duration::from_secs(5 * 60);

/// The thing that is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One token, by its `jti`.
    Token,
    /// Every token of an application that was removed, by its client identifier.
    Client,
    /// Every token that a key signed, by the key's name.
    Key,
    /// Every token that was got with a secret or a key of an application, by `credential`.
    Credential,
    /// Every token of an application that was issued up to some time, by its client identifier.
    Issued,
    /// Every token of a session of the panel, by the link that opened it.
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

/// How the list names a secret or a key of an application.
pub fn credential(client_id: &str, credential_id: &str) -> String {
    format!("{client_id}#{credential_id}")
}

/// One revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// The kind of thing that is revoked.
    pub kind: Kind,
    /// Its identifier.
    pub id: String,
    /// When it was made, by its maker's clock.
    pub made: Time,
    /// Tokens that were issued later are not revoked.
    pub issued_until: Time,
    /// When the revoked tokens are over anyway.
    pub until: Time,
}

impl Revocation {
    /// The revocation of one thing, whenever its tokens were issued; of an application or a
    /// credential, whose identifier may come to be used again, up to a little later than now.
    pub fn new(kind: Kind, id: &str, made: Time, until: Time) -> Self {
        let issued_until = match kind {
            Kind::Client | Kind::Credential => made + LAST_ISSUED,
            Kind::Token | Kind::Key | Kind::Issued | Kind::Session => until,
        };
        Self { kind, id: id.to_owned(), made, issued_until, until }
    }
}
