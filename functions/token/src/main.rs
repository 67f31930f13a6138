//! POST /oauth2/token: the client_credentials grant.

use std::sync::Arc;

use shared::{
    Service, StartError,
    audit::Action,
    http::Endpoint,
    oauth::{
        client_authentication::ClientAuthentication, client_credentials::ClientCredentials, guesses::GuessSettings,
        issuer::Issuer,
    },
    settings::{SecretSettings, TokenSettings},
};

const ENDPOINT: Endpoint = Endpoint::public().with_oauth_errors().audited(Action::IssueToken);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, limits, tokens)) =
        Service::start::<(SecretSettings, GuessSettings, TokenSettings)>().await?;
    let (clients, issuer) =
        tokio::join!(ClientAuthentication::start(&service, secrets.clone(), limits), Issuer::start(&service, secrets),);
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
