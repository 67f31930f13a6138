//! Clears failed authentication attempts, so that clients at a blocked address are accepted again at once. The audit
//! trail records the change.

use std::net::IpAddr;

use crate::{Deployment, deployment};
use base::audit::{Action, Notes};
use issuer::oauth::guesses::{GuessSettings, Guesses};
use storage::TableError;

/// Clears the failed attempts from an address, for all clients or for one. Returns how many clients' attempts from
/// there were counted separately.
pub async fn forget(deployment: &Deployment, address: IpAddr, client_id: Option<&str>) -> Result<usize, TableError> {
    let guesses = Guesses::new(deployment.table.clone(), GuessSettings::default());
    let forgotten = guesses.forget(address, client_id).await?;
    let notes = Notes::default();
    notes.subject(&address.to_string());
    if let Some(client_id) = client_id {
        notes.client(client_id);
    }
    deployment::audit(&deployment.environment, Action::ForgetGuesses, &notes);
    Ok(forgotten)
}
