//! The form in which a client sends a token: for introspection (RFC 7662 §2.1) and for revocation (RFC 7009 §2.1).

use super::{client_authentication::AuthenticationError, credentials::Credentials, form::Posted};
use problem::{Problem, ProblemKind};
use storage::TableError;

/// A token that a client sends. Not `Debug`, since it contains a token.
pub struct TokenForm {
    pub(super) credentials: Credentials,
    pub(super) token: String,
}

impl TokenForm {
    /// Parses the form; `purpose` ends the sentence about a missing token. `token_type_hint` is ignored, since there is
    /// only one kind of token.
    pub fn read(posted: &Posted<'_>, purpose: &str) -> Result<Self, Problem> {
        let mut form = posted.form()?;
        let credentials = Credentials::read(&posted.authorization, &mut form)?;
        let missing = format!("The parameter token is missing: send the access token to {purpose}.");
        Ok(Self { credentials, token: form.required("token", &missing)? })
    }
}

/// Why a token was not inspected or not revoked.
#[derive(Debug, thiserror::Error)]
pub enum TokenFormError {
    /// The client was not authenticated.
    #[error(transparent)]
    Client(#[from] AuthenticationError),
    /// The token to revoke was issued to another application.
    #[error("the token was issued to another application")]
    Foreign,
    /// The table could not be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl From<TokenFormError> for Problem {
    fn from(error: TokenFormError) -> Self {
        match error {
            TokenFormError::Client(error) => error.into(),
            TokenFormError::Foreign => {
                let detail =
                    "The token was issued to another application; an application can revoke only its own tokens.";
                Self::new(ProblemKind::ForeignToken, detail)
            }
            TokenFormError::Table(error) => error.into(),
        }
    }
}
