//! POST /oauth2/introspect: describes a token.

use function::{Service, StartError};
use functions_tokens::{clients_and_tokens, context, posted, uncached};
use gate::{Call, Reply, endpoints};
use issuer::oauth::{introspect::Introspection, token_form::TokenForm};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, guesses)) = Service::start().await?;
    let (clients, tokens) = clients_and_tokens(&service, secrets, guesses).await;
    service.serve(endpoints::INTROSPECT_TOKEN, Introspection { clients, tokens }, introspect).await
}

async fn introspect(introspection: &Introspection, call: Call) -> Result<Reply, Problem> {
    let question = TokenForm::read(&posted(&call), "introspect")?;
    Ok(uncached(Reply::ok(&introspection.introspect(&question, &context(&call), call.now).await?)?))
}
