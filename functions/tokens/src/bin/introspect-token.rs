//! POST /oauth2/introspect: tells what a token is good for.

use std::sync::Arc;

use base::audit::Action;
use function::{Service, StartError};
use functions_tokens::client_authentication;
use gate::Endpoint;
use issuer::oauth::{guesses::GuessSettings, introspect::Introspection};
use storage::secrets::SecretSettings;

const ENDPOINT: Endpoint = Endpoint::public().with_oauth_errors().audited(Action::IntrospectToken);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, guesses)) = Service::start::<(SecretSettings, GuessSettings)>().await?;
    let (clients, ()) =
        tokio::join!(client_authentication(&service, service.secrets(secrets), guesses), service.tokens().warm_up());
    let introspection = Arc::new(Introspection { clients, tokens: service.tokens().clone() });
    service
        .serve(ENDPOINT, move |call| {
            let introspection = introspection.clone();
            async move { introspection.introspect(&call).await }
        })
        .await
}
