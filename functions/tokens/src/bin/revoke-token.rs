//! POST /oauth2/revoke: ends a token before its time.

use function::{Service, StartError};
use functions_tokens::{clients_and_tokens, context, posted, uncached};
use gate::{Call, Reply, endpoints};
use issuer::oauth::{revoke::Revocation, token_form::TokenForm};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, guesses)) = Service::start().await?;
    let (clients, tokens) = clients_and_tokens(&service, secrets, guesses).await;
    service.serve(endpoints::REVOKE_TOKEN, Revocation { clients, tokens }, revoke).await
}

async fn revoke(revocation: &Revocation, call: Call) -> Result<Reply, Problem> {
    let wanted = TokenForm::read(&posted(&call), "revoke")?;
    revocation.revoke(&wanted, &context(&call), call.now).await?;
    Ok(uncached(Reply::empty()))
}
