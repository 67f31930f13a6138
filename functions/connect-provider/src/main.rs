//! POST …/payment/provider/{provider}/connection: the address at which a person connects an account.

use std::sync::Arc;

use shared::{
    Service, StartError,
    auth::scope::Scope,
    http::Endpoint,
    payments::{Connections, PendingAuthorizations, Providers, connect::Connecting},
    sealing::{KeyRings, RingSource},
    secrets::Secrets,
    settings::{EndpointSettings, SecretSettings},
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::PaymentWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, EndpointSettings)>().await?;
    let (secrets, clock) = (Secrets::connect(service.aws(), secrets.prefix), service.clock().clone());
    let connecting = Arc::new(Connecting {
        pending: PendingAuthorizations::new(service.table().clone()),
        connections: Connections::new(service.table().clone()),
        providers: Providers::new(secrets.clone(), rules, clock.clone()),
        rings: KeyRings::warm(RingSource(secrets), clock.clone()).await,
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
