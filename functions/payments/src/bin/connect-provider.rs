//! POST …/payment/provider/{provider}/connection: makes the address at which a person connects an account.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use http::StatusCode;
use payments::{
    ConnectionError, Connections, PendingAuthorizations, Providers,
    connect::{Connecting, NewConnection},
};
use problem::Problem;
use storage::KeyRings;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start().await?;
    let secrets = service.secrets(secrets);
    let connecting = Connecting {
        pending: PendingAuthorizations::new(service.table()),
        connections: Connections::new(service.table()),
        providers: Providers::new(secrets.clone(), rules, service.clock()),
        rings: KeyRings::warm(secrets, service.clock()).await,
        base_url: service.settings().base_url.clone(),
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::CONNECT_PROVIDER, connecting, connect).await
}

async fn connect(connecting: &Connecting, call: EntityCall) -> Result<Reply, Problem> {
    let wanted = NewConnection::read(&call.body)?;
    let provider = functions_payments::provider(&call).ok_or(ConnectionError::ProviderNotFound)?;
    let link = connecting.ask(&call.entity, &provider, wanted).await?;
    Ok(Reply::json(StatusCode::CREATED, &link)?.uncached())
}
