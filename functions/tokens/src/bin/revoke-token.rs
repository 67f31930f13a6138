//! POST /oauth2/revoke: ends a token before its time.

use std::sync::Arc;

use base::{audit::Action, clock::Time};
use function::{Service, StartError};
use functions_tokens::{client_authentication, context, posted, uncached};
use gate::{Call, Endpoint, Reply};
use issuer::oauth::{guesses::GuessSettings, revoke::Revocation, token_question::TokenQuestion};
use problem::Problem;
use storage::secrets::SecretSettings;

const ENDPOINT: Endpoint = Endpoint::public().with_oauth_errors().audited(Action::RevokeToken);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, guesses)) = Service::start::<(SecretSettings, GuessSettings)>().await?;
    let (clients, ()) =
        tokio::join!(client_authentication(&service, service.secrets(secrets), guesses), service.tokens().warm_up());
    let revocation = Arc::new(Revocation { clients, tokens: service.tokens().clone() });
    let clock = service.clock().clone();
    service
        .serve(ENDPOINT, move |call| {
            let (revocation, now) = (revocation.clone(), clock.now());
            async move { revoke(&revocation, &call, now).await }
        })
        .await
}

async fn revoke(revocation: &Revocation, call: &Call, now: Time) -> Result<Reply, Problem> {
    let wanted = TokenQuestion::read(&posted(call), "revoke")?;
    revocation.revoke(&wanted, &context(call), now).await?;
    Ok(uncached(Reply::empty()))
}
