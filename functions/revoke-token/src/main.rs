//! POST /oauth2/revoke: ends a token before its time.

use std::sync::Arc;

use shared::{
    Service, StartError,
    audit::Action,
    http::Endpoint,
    oauth::{client_authentication::ClientAuthentication, guesses::GuessSettings, revoke::Revocation},
    settings::SecretSettings,
};

const ENDPOINT: Endpoint = Endpoint::public().with_oauth_errors().audited(Action::RevokeToken);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, guesses)) = Service::start::<(SecretSettings, GuessSettings)>().await?;
    let (clients, ()) =
        tokio::join!(ClientAuthentication::start(&service, secrets, guesses), service.tokens().warm_up());
    let revocation = Arc::new(Revocation { clients, tokens: service.tokens().clone() });
    service
        .serve(ENDPOINT, move |call| {
            let revocation = revocation.clone();
            async move { revocation.revoke(&call).await }
        })
        .await
}
