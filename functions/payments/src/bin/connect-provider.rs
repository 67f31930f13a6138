//! POST …/payment/provider/{provider}/connection: the address at which a person connects an account.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall, Reply};
use http::{StatusCode, header::CACHE_CONTROL};
use outbound::EndpointSettings;
use payments::{
    Connections, PendingAuthorizations, Providers,
    connect::{ConnectError, Connecting, NewConnection},
};
use problem::Problem;
use storage::{sealing::KeyRings, secrets::SecretSettings};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::PaymentWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, EndpointSettings)>().await?;
    let (secrets, clock) = (service.secrets(secrets), service.clock().clone());
    let connecting = Arc::new(Connecting {
        pending: PendingAuthorizations::new(service.table().clone()),
        connections: Connections::new(service.table().clone()),
        providers: Providers::new(secrets.clone(), rules, clock.clone()),
        rings: KeyRings::warm(secrets, clock.clone()).await,
        base_url: service.settings().base_url.clone(),
        clock,
        random: service.shared_random(),
    });
    service.serve(ENDPOINT, move |call| connect(connecting.clone(), call)).await
}

async fn connect(connecting: Arc<Connecting>, call: EntityCall) -> Result<Reply, Problem> {
    let wanted = NewConnection::read(&call.body)?;
    let provider = functions_payments::provider(&call).ok_or(ConnectError::ProviderNotFound)?;
    let link = connecting.ask(&call.entity, &provider, wanted).await?;
    Ok(Reply::json(StatusCode::CREATED, &link)?.with_header(CACHE_CONTROL, "no-store"))
}
