//! POST /oauth2/token: the client_credentials grant.

use std::sync::Arc;

use shared::{
    Service, StartError,
    applications::Applications,
    http::Endpoint,
    oauth::{
        client_credentials::ClientCredentials,
        issuer::{Issuer, IssuerSource},
    },
    secrets::Secrets,
    settings::{SecretSettings, TokenSettings},
};

const ENDPOINT: Endpoint = Endpoint::public().with_oauth_errors();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, tokens)) = Service::start::<(SecretSettings, TokenSettings)>().await?;
    let secrets = Secrets::connect(service.aws(), secrets.prefix);
    let grant = Arc::new(ClientCredentials {
        applications: Applications::new(service.table().clone()),
        issuer: Issuer::warm(IssuerSource(secrets), service.clock().clone()).await,
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
