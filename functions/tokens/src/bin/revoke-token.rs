//! POST /oauth2/revoke: ends a token before its time.

use std::sync::Arc;

use base::audit::Action;
use function::{Service, StartError};
use functions_tokens::client_authentication;
use gate::Endpoint;
use issuer::oauth::{guesses::GuessSettings, revoke::Revocation};
use storage::secrets::SecretSettings;

const ENDPOINT: Endpoint = Endpoint::public().with_oauth_errors().audited(Action::RevokeToken);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, guesses)) = Service::start::<(SecretSettings, GuessSettings)>().await?;
    let (clients, ()) =
        tokio::join!(client_authentication(&service, service.secrets(secrets), guesses), service.tokens().warm_up());
    let revocation = Arc::new(Revocation { clients, tokens: service.tokens().clone() });
    service
        .serve(ENDPOINT, move |call| {
            let revocation = revocation.clone();
            async move { revocation.revoke(&call).await }
        })
        .await
}
