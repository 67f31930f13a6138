//! POST /oauth2/token: the client_credentials grant.

use std::sync::Arc;

use base::audit::Action;
use function::{Service, StartError};
use functions_tokens::client_authentication;
use gate::Endpoint;
use issuer::{
    oauth::{client_credentials::ClientCredentials, guesses::GuessSettings, issuer::Issuer},
    settings::TokenSettings,
};
use storage::secrets::SecretSettings;

const ENDPOINT: Endpoint = Endpoint::public().with_oauth_errors().audited(Action::IssueToken);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, limits, tokens)) =
        Service::start::<(SecretSettings, GuessSettings, TokenSettings)>().await?;
    let secrets = service.secrets(secrets);
    let (clients, issuer) = tokio::join!(
        client_authentication(&service, secrets.clone(), limits),
        Issuer::start(secrets, service.tokens().clone(), service.clock().clone()),
    );
    let grant = Arc::new(ClientCredentials {
        clients,
        issuer,
        audience: service.audience().clone(),
        lifetime: tokens.lifetime,
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let grant = grant.clone();
            async move { grant.grant(&call).await }
        })
        .await
}
