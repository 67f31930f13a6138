//! POST /oauth2/token: the client_credentials grant.

use function::{Service, StartError};
use functions_tokens::{client_authentication, context, posted, uncached};
use gate::{Call, Reply, endpoints};
use issuer::{
    oauth::{
        client_credentials::{ClientCredentials, TokenRequest},
        guesses::GuessSettings,
        signing_keys::SigningKeyCache,
    },
    settings::TokenSettings,
};
use problem::Problem;
use storage::SecretSettings;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, limits, TokenSettings { lifetime })) =
        Service::start::<(SecretSettings, GuessSettings, TokenSettings)>().await?;
    let secrets = service.secrets(secrets);
    let tokens = service.tokens();
    let (clients, issuer) = tokio::join!(
        client_authentication(&service, secrets.clone(), limits),
        SigningKeyCache::start(secrets, tokens.clone(), service.clock()),
    );
    let audience = tokens.audience().clone();
    let random = service.random();
    let grant = ClientCredentials { clients, issuer, audience, lifetime, random };
    service.serve(endpoints::TOKEN, grant, issue).await
}

async fn issue(grant: &ClientCredentials, call: Call) -> Result<Reply, Problem> {
    let wanted = TokenRequest::read(&posted(&call))?;
    Ok(uncached(Reply::ok(&grant.grant(&wanted, &context(&call), call.now).await?)?))
}
