//! POST …/payment/provider/{provider}/connection: creates the address at which a person connects an account.

use function::{Service, StartError, idempotent_request};
use gate::{EntityCall, Reply, endpoints};
use http::StatusCode;
use payments::{
    ConnectionError, Connections, PendingAuthorizations, Providers,
    connect::{Connecting, NewConnection},
};
use problem::Problem;
use storage::{IdempotencyStore, KeyRings};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start().await?;
    let secrets = service.secrets(secrets);
    let rings = KeyRings::warm(secrets.clone(), service.clock()).await;
    let connecting = Connecting {
        pending: PendingAuthorizations::new(service.table()),
        connections: Connections::new(service.table()),
        providers: Providers::new(secrets, rules, service.clock()),
        answers: IdempotencyStore::sealed(service.table(), rings.clone(), service.random()),
        rings,
        base_url: service.settings().base_url.clone(),
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::CONNECT_PROVIDER, connecting, connect).await
}

async fn connect(connecting: &Connecting, call: EntityCall) -> Result<Reply, Problem> {
    let wanted = NewConnection::read(&call.body)?;
    let provider = functions_payments::provider(&call)
        .ok_or_else(|| ConnectionError::ProviderNotFound { given: call.path("provider").to_owned() })?;
    let link = connecting.ask(&call.entity, &provider, wanted, idempotent_request(&call)?.as_ref()).await?;
    Ok(Reply::json(StatusCode::CREATED, &link)?.uncached().replayed(link.is_repeated()))
}
