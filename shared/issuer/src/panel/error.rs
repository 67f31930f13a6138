//! The error of the panel use cases: sessions and links.

use std::time::Duration;

use http::header::WWW_AUTHENTICATE;

use auth::{Scopes, token::NotIssued};
use base::PanelLinkId;
use problem::{Problem, ProblemKind};
use storage::{Allowance, IdempotencyError, TableError};

use crate::oauth::signing_keys::SigningKeyError;

/// Why a panel use case failed.
#[derive(Debug, thiserror::Error)]
pub enum PanelError {
    /// A panel session cannot create or renew a link.
    #[error("a panel session cannot create or renew links")]
    BySession,
    /// The link would have scopes that its creator lacks.
    #[error("the link would have scopes that its creator lacks: {0}")]
    ExceedsScopes(Scopes),
    /// The link's session could publish events, but its creator may not.
    #[error("the link's session could publish events, but its creator may not")]
    ExceedsPublishing,
    /// This hour's allowance is used up; the next hour begins after this time.
    #[error("the entity has reached its hourly limit for panel links, which resets in {} s", .0.as_secs())]
    AllowanceSpent(Duration),
    /// The entity has no such link. Another entity's link looks the same.
    #[error("there is no panel link `{0}`")]
    NotFound(String),
    /// The link has no session yet that could be renewed.
    #[error("the panel link `{0}` has not been opened yet")]
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
    /// This service did not create the code, or the link was removed.
    #[error("the code is unknown")]
    Unknown,
    /// The link has already been opened.
    #[error("the code was used")]
    Used,
    /// The code has expired.
    #[error("the code has expired")]
    Expired,
    /// The application or credential that created the link was removed, or the application lost the link's rights.
    #[error("the link's application was removed or lost its access")]
    Unbacked,
}

/// Why there is no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionFault {
    /// The browser sent no cookie.
    #[error("the browser sent no cookie")]
    NoCookie,
    /// The cookie belongs to no existing session.
    #[error("the cookie belongs to no session")]
    Unknown,
    /// The session has ended.
    #[error("the session has ended")]
    Over,
    /// The cookie contains a key that was replaced more than a minute ago.
    #[error("a browser sent an outdated session key, so the session was ended")]
    Replayed,
    /// The application or credential that created the link was removed, or the application lost the link's rights.
    #[error("the session's application was removed or lost its access")]
    Unbacked,
}

impl CodeFault {
    fn detail(self) -> &'static str {
        match self {
            Self::Unknown => "This link is invalid or was removed. Ask for a new one.",
            Self::Used => {
                "This link has already been used and works only once. Ask for a new one. If it was not you who used \
                 it, ask for its session to be ended: `DELETE …/panel/link/{id}`."
            }
            Self::Expired => "This link was valid for ten minutes and has expired. Ask for a new one.",
            Self::Unbacked => {
                "This link's application lost its access: the application or its credential was removed, or it lost a \
                 scope that the link grants. Ask for a new link."
            }
        }
    }
}

impl SessionFault {
    fn detail(self) -> &'static str {
        match self {
            Self::NoCookie => "This browser has no panel session. Open a panel link.",
            Self::Unknown => "The panel session was ended. Ask for a new panel link.",
            Self::Over => "The panel session has expired. Open a new panel link.",
            Self::Replayed => {
                "The session was ended: a browser sent an outdated cookie, which may have been copied. Open a new \
                 panel link."
            }
            Self::Unbacked => {
                "This session's application lost its access: the application or its credential was removed, or it lost \
                 one of the session's scopes. Open a new panel link."
            }
        }
    }
}

impl From<PanelError> for Problem {
    fn from(error: PanelError) -> Self {
        match error {
            PanelError::BySession => {
                let detail = "A panel session cannot create or renew links: it could then outlast its expiry. \
                    Use a token from the token endpoint.";
                Self::new(ProblemKind::PanelLinkRefused, detail)
            }
            PanelError::ExceedsScopes(lacking) => {
                let detail = format!(
                    "Your token lacks these scopes of the link: {lacking}. A link cannot grant more than the token \
                     that creates or renews it."
                );
                let challenge = format!(r#"Bearer error="insufficient_scope", scope="{lacking}""#);
                Self::new(ProblemKind::InsufficientScope, detail)
                    .with_header(WWW_AUTHENTICATE, challenge)
                    .with_property("requiredScope", lacking.to_string())
            }
            PanelError::ExceedsPublishing => {
                let detail = "The link's session could publish events, but your token may not. Use a token with the \
                              claim `may_publish`, or create a link without `mayPublish`.";
                Self::new(ProblemKind::MayNotPublish, detail)
            }
            PanelError::AllowanceSpent(wait) => {
                let seconds = wait.as_secs() + 1;
                let detail = format!(
                    "The managing entity has reached its hourly limit for panel links; try again in {seconds} seconds."
                );
                Self::rate_limited(ProblemKind::TooManyPanelLinks, detail, Allowance::PanelLinks.rate_limit(), seconds)
            }
            PanelError::NotFound(_) => {
                let detail = "There is no such panel link; it may have been removed.";
                Self::new(ProblemKind::PanelLinkNotFound, detail)
            }
            PanelError::Unopened(_) => {
                let detail = "The link has not been opened yet, so it has no session to renew. Open the link first.";
                Self::new(ProblemKind::PanelLinkUnopened, detail)
            }
            PanelError::Code(fault) => Self::new(ProblemKind::InvalidPanelCode, fault.detail()).caused_by(fault),
            PanelError::Session(fault) => Self::new(ProblemKind::NoPanelSession, fault.detail()).caused_by(fault),
            PanelError::Idempotency(error) => error.into_problem(|made| {
                format!(
                    "the link {made} exists; remove it with `DELETE …/panel/link/{made}`, or create another with a \
                    new key"
                )
            }),
            PanelError::Issuer(error) => error.into(),
            PanelError::NotIssued(_) => Self::internal(error),
            PanelError::Table(error) => error.into(),
        }
    }
}
