//! What the functions of the token issuer are wired of.

use function::Service;
use issuer::oauth::{client_authentication::ClientAuthentication, guesses::GuessSettings};
use storage::secrets::Secrets;

/// The authentication of clients, ready for the first request.
pub async fn client_authentication(service: &Service, secrets: Secrets, limits: GuessSettings) -> ClientAuthentication {
    let issuer = service.settings().auth_url.clone();
    ClientAuthentication::start(service.table(), secrets, limits, issuer, service.clock().clone()).await
}
