//! All commands' failures, each with its exit code.

use std::{io, process::ExitCode};

use base::logging;
use operator::{
    DeploymentError, applications::ApplicationError, data_keys::DataKeysError, deliveries::DeliveryError,
    geo_ip_databases::GeoIpError, panel_links::PanelLinkError, provision::ProvisionError,
    signing_keys::SigningKeysError,
};
use storage::TableError;

use crate::{invocation::InvocationError, stack::StackError};

/// The exit code for a failure. clap's exit code for wrong arguments is 2.
const FAILED: u8 = 1;
/// The exit code for a refusal: nothing was done, and a retry would fail again.
const REFUSED: u8 = 3;

/// Why a command did not complete.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments conflict, or one is missing.
    #[error("{0}")]
    Usage(clap::Error),
    #[error(transparent)]
    Stack(#[from] StackError),
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    #[error(transparent)]
    Application(#[from] ApplicationError),
    #[error(transparent)]
    SigningKeys(#[from] SigningKeysError),
    #[error(transparent)]
    DataKeys(#[from] DataKeysError),
    /// No key opens some sealed values.
    #[error(
        "{0} items, listed above, contain a value that no key in the ring can decrypt, so no key was removed. Restore \
         the missing key from an earlier version of the secret `data-keys`"
    )]
    Unreadable(u64),
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    #[error(transparent)]
    PanelLink(#[from] PanelLinkError),
    #[error(transparent)]
    GeoIp(#[from] GeoIpError),
    /// The deployment was not provisioned, or was only partly provisioned.
    #[error("the deployment is not fully provisioned; run this command again")]
    Provision(#[from] ProvisionError),
    /// Failing webhooks could not be listed.
    #[error("the table could not be read; nothing was changed")]
    Webhooks(#[source] TableError),
    /// Not all failed attempts were cleared.
    #[error("some failed attempts may still count; run this again")]
    Guesses(#[source] TableError),
    /// One of the deployment's functions was not invoked, or failed.
    #[error(transparent)]
    Invocation(#[from] InvocationError),
    /// Databases were not updated, for the reasons in the result.
    #[error("the geo-IP databases are not up to date; the result says why")]
    NotUpToDate,
    #[error("the result cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// Standard output is closed or full.
    #[error("the result cannot be written to standard output")]
    Output(#[source] io::Error),
}

impl Failure {
    /// Writes the reason to standard error, and returns the exit code.
    pub fn report(self) -> ExitCode {
        if let Self::Usage(error) = self {
            error.exit();
        }
        eprintln!("error: {}", logging::chain(&self));
        ExitCode::from(if self.is_refusal() { REFUSED } else { FAILED })
    }

    fn is_refusal(&self) -> bool {
        match self {
            Self::Deployment(error) | Self::Provision(ProvisionError::Deployment(error)) => error.is_refusal(),
            Self::Stack(error) => matches!(error, StackError::NoStack { .. }),
            Self::Application(error) => error.is_refusal(),
            Self::SigningKeys(error) => error.is_refusal(),
            Self::DataKeys(error) => error.is_refusal(),
            Self::Delivery(error) => error.is_refusal(),
            Self::PanelLink(error) => error.is_refusal(),
            Self::GeoIp(error) => error.is_refusal(),
            Self::Invocation(error) => error.is_refusal(),
            Self::Usage(_)
            | Self::Unreadable(_)
            | Self::Provision(_)
            | Self::Webhooks(_)
            | Self::Guesses(_)
            | Self::NotUpToDate
            | Self::Json(_)
            | Self::Output(_) => false,
        }
    }
}
