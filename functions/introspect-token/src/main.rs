//! POST /oauth2/introspect: tells what a token is good for.

use std::sync::Arc;

use shared::{
    Service, StartError,
    audit::Action,
    http::Endpoint,
    oauth::{client_authentication::ClientAuthentication, guesses::GuessSettings, introspect::Introspection},
    settings::SecretSettings,
};

const ENDPOINT: Endpoint = Endpoint::public().with_oauth_errors().audited(Action::IntrospectToken);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, guesses)) = Service::start::<(SecretSettings, GuessSettings)>().await?;
    let (clients, ()) =
        tokio::join!(ClientAuthentication::start(&service, secrets, guesses), service.tokens().warm_up());
    let introspection = Arc::new(Introspection { clients, tokens: service.tokens().clone() });
    service
        .serve(ENDPOINT, move |call| {
            let introspection = introspection.clone();
            async move { introspection.introspect(&call).await }
        })
        .await
}
