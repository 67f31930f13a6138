//! POST …/webhook/{webhookIdentifier}/secret: replaces a webhook's signing secret, and shows the new one this once.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use storage::{sealing::KeyRings, secrets::SecretSettings};
use webhooks::subscriptions::{Webhooks, rotate::Rotation};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start::<SecretSettings>().await?;
    let secrets = service.secrets(secrets);
    let rotation = Arc::new(Rotation {
        webhooks: Webhooks::new(service.table().clone()),
        rings: KeyRings::warm(secrets, service.clock().clone()).await,
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
