//! POST …/payment/provider/{provider}/connection: the address at which a person connects an account.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use outbound::EndpointSettings;
use payments::{Connections, PendingAuthorizations, Providers, connect::Connecting};
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
    service
        .serve(ENDPOINT, move |call| {
            let connecting = connecting.clone();
            async move { connecting.ask(&call).await }
        })
        .await
}
