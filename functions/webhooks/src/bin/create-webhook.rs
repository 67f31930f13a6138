//! POST …/webhook: makes a webhook, and shows its signing secret this once.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use outbound::EndpointSettings;
use storage::{sealing::KeyRings, secrets::SecretSettings};
use webhooks::subscriptions::{Webhooks, register::Registration};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, EndpointSettings)>().await?;
    let secrets = service.secrets(secrets);
    let registration = Arc::new(Registration {
        webhooks: Webhooks::new(service.table().clone()),
        rules,
        rings: KeyRings::warm(secrets, service.clock().clone()).await,
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
