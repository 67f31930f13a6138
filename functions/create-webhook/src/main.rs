//! POST …/webhook: makes a webhook, and shows its signing secret this once.

use std::sync::Arc;

use shared::{
    Service, StartError,
    auth::scope::Scope,
    http::Endpoint,
    sealing::{KeyRings, RingSource},
    secrets::Secrets,
    settings::{EndpointSettings, SecretSettings},
    webhooks::{Webhooks, register::Registration},
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, EndpointSettings)>().await?;
    let secrets = Secrets::connect(service.aws(), secrets.prefix);
    let registration = Arc::new(Registration {
        webhooks: Webhooks::new(service.table().clone()),
        rules,
        rings: KeyRings::warm(RingSource(secrets), service.clock().clone()).await,
        base_url: service.settings().base_url.clone(),
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let registration = registration.clone();
            async move { registration.create(&call).await }
        })
        .await
}
