//! Failed attempts to authenticate, as the operator of a deployment forgets them: clients at an address that was turned away
//! get in again at once. The audit trail shows it.

use std::net::IpAddr;

use crate::{Deployment, deployment};
use base::audit::{Action, Notes};
use issuer::oauth::guesses::{GuessSettings, Guesses};
use storage::TableError;

/// Forgets the failed attempts from an address, or those as one client from it. Returns how many clients' attempts were
/// counted there, those of all clients together left out.
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
