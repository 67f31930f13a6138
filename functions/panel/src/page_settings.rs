//! What the page is told of this deployment.

use base::{Environment, FromEnvironment};

/// How people come in: `PANEL_CREDENTIALS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSettings {
    /// Whether the page also takes the identifier and the secret of an application, beside links.
    pub takes_credentials: bool,
}

impl FromEnvironment for PageSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { takes_credentials: environment.parsed("PANEL_CREDENTIALS", false)? })
    }
}
