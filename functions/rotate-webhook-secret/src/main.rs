//! POST …/webhook/{webhookIdentifier}/secret: replaces a webhook's signing secret, and shows the new one this once.

use std::sync::Arc;

use shared::{
    Service, StartError,
    auth::scope::Scope,
    http::Endpoint,
    sealing::{KeyRings, RingSource},
    secrets::Secrets,
    settings::SecretSettings,
    webhooks::{Webhooks, rotate::Rotation},
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start::<SecretSettings>().await?;
    let secrets = Secrets::connect(service.aws(), secrets.prefix);
    let rotation = Arc::new(Rotation {
        webhooks: Webhooks::new(service.table().clone()),
        rings: KeyRings::warm(RingSource(secrets), service.clock().clone()).await,
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let rotation = rotation.clone();
            async move { rotation.rotate(&call).await }
        })
        .await
}
