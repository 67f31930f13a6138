//! The settings of the panel's page.

use base::{Environment, FromEnvironment};

/// The ways to sign in: `PANEL_CREDENTIALS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSettings {
    /// Whether the page accepts the identifier and the secret of an application, in addition to links.
    pub takes_credentials: bool,
}

impl FromEnvironment for PageSettings {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        Some(Self { takes_credentials: environment.parsed("PANEL_CREDENTIALS", false)? })
    }
}
