//! POST /oauth2/token: the client_credentials grant.

use std::sync::Arc;

use base::{audit::Action, clock::Time};
use function::{Service, StartError};
use functions_tokens::{client_authentication, context, posted, uncached};
use gate::{Call, Endpoint, Reply};
use issuer::{
    oauth::{
        client_credentials::{ClientCredentials, TokenRequest},
        guesses::GuessSettings,
        issuer::Issuer,
    },
    settings::TokenSettings,
};
use problem::Problem;
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
        random: service.shared_random(),
    });
    let clock = service.clock().clone();
    service
        .serve(ENDPOINT, move |call| {
            let (grant, now) = (grant.clone(), clock.now());
            async move { answer(&grant, &call, now).await }
        })
        .await
}

async fn answer(grant: &ClientCredentials, call: &Call, now: Time) -> Result<Reply, Problem> {
    let wanted = TokenRequest::read(&posted(call))?;
    Ok(uncached(Reply::ok(&grant.grant(&wanted, &context(call), now).await?)?))
}
