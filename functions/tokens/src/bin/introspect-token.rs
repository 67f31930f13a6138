//! POST /oauth2/introspect: says what a token is good for.

use std::sync::Arc;

use base::{audit::Action, clock::Time};
use function::{Service, StartError};
use functions_tokens::{client_authentication, context, posted, uncached};
use gate::{Call, Endpoint, Reply};
use issuer::oauth::{guesses::GuessSettings, introspect::Introspection, token_question::TokenQuestion};
use problem::Problem;
use storage::secrets::SecretSettings;

const ENDPOINT: Endpoint = Endpoint::public().with_oauth_errors().audited(Action::IntrospectToken);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, guesses)) = Service::start::<(SecretSettings, GuessSettings)>().await?;
    let (clients, ()) =
        tokio::join!(client_authentication(&service, service.secrets(secrets), guesses), service.tokens().warm_up());
    let introspection = Arc::new(Introspection { clients, tokens: service.tokens().clone() });
    let clock = service.clock().clone();
    service
        .serve(ENDPOINT, move |call| {
            let (introspection, now) = (introspection.clone(), clock.now());
            async move { introspect(&introspection, &call, now).await }
        })
        .await
}

async fn introspect(introspection: &Introspection, call: &Call, now: Time) -> Result<Reply, Problem> {
    let question = TokenQuestion::read(&posted(call), "look at")?;
    Ok(uncached(Reply::ok(&introspection.introspect(&question, &context(call), now).await?)?))
}
