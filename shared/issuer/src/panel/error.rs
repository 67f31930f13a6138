//! The error of the use cases of the panel: sessions and links.

use std::time::Duration;

use http::header::WWW_AUTHENTICATE;

use auth::{Scopes, token::NotIssued};
use base::PanelLinkId;
use problem::{Problem, ProblemKind};
use storage::{Allowance, IdempotencyError, TableError};

use crate::oauth::signing_keys::SigningKeyError;

/// Why a use case of the panel failed.
#[derive(Debug, thiserror::Error)]
pub enum PanelError {
    /// A session of the panel cannot make or renew a link.
    #[error("a session of the panel asks for a link, or to renew one")]
    BySession,
    /// The link would have scopes that its maker lacks.
    #[error("the link would have scopes that its maker lacks: {0}")]
    ExceedsScopes(Scopes),
    /// The link's session could publish events, and its maker may not.
    #[error("the session of the link could publish events, which its maker may not")]
    ExceedsPublishing,
    /// The allowance of this hour is spent; the next hour begins after this time.
    #[error("the entity's allowance of panel links is spent for {} s", .0.as_secs())]
    AllowanceSpent(Duration),
    /// The entity has no such link. Another entity's link looks the same.
    #[error("there is no panel link `{0}`")]
    NotFound(String),
    /// The link has no session yet that could be renewed.
    #[error("the panel link `{0}` was not opened yet")]
    Unopened(PanelLinkId),
    /// The code is not accepted.
    #[error(transparent)]
    Code(#[from] CodeFault),
    /// There is no session.
    #[error(transparent)]
    Session(#[from] SessionFault),
    /// The idempotency key was used with another request, or its response is not repeated.
    #[error(transparent)]
    Idempotency(#[from] IdempotencyError),
    /// No key can sign.
    #[error(transparent)]
    Issuer(#[from] SigningKeyError),
    /// The token could not be signed.
    #[error(transparent)]
    NotIssued(#[from] NotIssued),
    /// The table could not be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Why a code is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodeFault {
    /// This service did not make it, or its link was removed.
    #[error("the code is unknown")]
    Unknown,
    /// Its link was already opened.
    #[error("the code was used")]
    Used,
    /// It has expired.
    #[error("the code has expired")]
    Expired,
    /// The application or the credential that the link was made with was removed, or the application lost the
    /// link's rights.
    #[error("the application of the link was removed or lost its access")]
    Unbacked,
}

/// Why there is no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionFault {
    /// The browser brought no cookie.
    #[error("the browser brought no cookie")]
    NoCookie,
    /// The cookie belongs to no existing session.
    #[error("the cookie belongs to no session")]
    Unknown,
    /// The session has ended.
    #[error("the session is over")]
    Over,
    /// The cookie holds a key that was replaced more than a minute ago.
    #[error("a key of the session came that was replaced; the session is ended")]
    Replayed,
    /// The application or the credential that the link was made with was removed, or the application lost the
    /// link's rights.
    #[error("the application of the session was removed or lost its access")]
    Unbacked,
}

impl CodeFault {
    fn detail(self) -> &'static str {
        match self {
            Self::Unknown => "This link is not one of the panel's, or it was removed. Ask for a new one.",
            Self::Used => {
                "This link was opened before, and opens the panel once only. Ask for a new one. If it was not you who opened it, \
                 have its session ended: `DELETE …/panel/link/{id}`."
            }
            Self::Expired => "This link could be opened for ten minutes, which are over. Ask for a new one.",
            Self::Unbacked => {
                "The application that made this link was removed or lost scopes of it, or the secret or key that it was made with \
                 was removed. Ask for a new link."
            }
        }
    }
}

impl SessionFault {
    fn detail(self) -> &'static str {
        match self {
            Self::NoCookie => "There is no session of the panel in this browser. Open a link to the panel.",
            Self::Unknown => "The session of the panel was ended. Open a new link to the panel.",
            Self::Over => "The session of the panel has expired. Open a new link to the panel.",
            Self::Replayed => {
                "The session was ended because a browser sent a cookie that was replaced earlier: the cookie may have been \
                 copied. Open a new link to the panel."
            }
            Self::Unbacked => {
                "The application that this session belongs to was removed or lost scopes of it, or the secret or key that its \
                 link was made with was removed. Open a new link to the panel."
            }
        }
    }
}

impl From<PanelError> for Problem {
    fn from(error: PanelError) -> Self {
        match error {
            PanelError::BySession => {
                let detail = "A session of the panel neither creates nor renews links: otherwise it could prolong itself. Use a \
                              token that the application has got from the token endpoint.";
                Self::new(ProblemKind::PanelLinkRefused, detail)
            }
            PanelError::ExceedsScopes(lacking) => {
                let detail = format!(
                    "Your token lacks scopes that the link is to have: {lacking}. A link gives no more than the token that creates \
                     or renews it."
                );
                let challenge = format!(r#"Bearer error="insufficient_scope", scope="{lacking}""#);
                Self::new(ProblemKind::InsufficientScope, detail)
                    .with_header(WWW_AUTHENTICATE, challenge)
                    .with_property("requiredScope", lacking.to_string())
            }
            PanelError::ExceedsPublishing => {
                let detail = "The session of the link could publish events, and your token may not. Use a token with the claim \
                              `may_publish`, or create a link without `mayPublish`.";
                Self::new(ProblemKind::MayNotPublish, detail)
            }
            PanelError::AllowanceSpent(wait) => {
                let seconds = wait.as_secs() + 1;
                let detail = format!(
                    "As many links to the panel were made for this managing entity as may be in an hour; try again in {seconds} \
                     seconds."
                );
                Self::rate_limited(ProblemKind::TooManyPanelLinks, detail, Allowance::PanelLinks.rate_limit(), seconds)
            }
            PanelError::NotFound(_) => {
                let detail = "This managing entity has no panel link with the identifier in the path, or no longer.";
                Self::new(ProblemKind::PanelLinkNotFound, detail)
            }
            PanelError::Unopened(_) => {
                let detail = "The link was not opened yet, so there is no session to renew. Its session begins when it is opened, \
                              and can be renewed from then on.";
                Self::new(ProblemKind::PanelLinkUnopened, detail)
            }
            PanelError::Code(fault) => Self::new(ProblemKind::InvalidPanelCode, fault.detail()).caused_by(fault),
            PanelError::Session(fault) => Self::new(ProblemKind::NoPanelSession, fault.detail()).caused_by(fault),
            PanelError::Idempotency(error) => error.into_problem(|made| {
                format!("the link {made} exists; `DELETE …/panel/link/{made}` removes it, and a new key makes another")
            }),
            PanelError::Issuer(error) => error.into(),
            PanelError::NotIssued(_) => Self::internal(error),
            PanelError::Table(error) => error.into(),
        }
    }
}
