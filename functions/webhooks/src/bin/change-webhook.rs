//! PATCH …/webhook/{webhookIdentifier}: changes what is given of a webhook.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use outbound::EndpointSettings;
use storage::{sealing::KeyRings, secrets::SecretSettings};
use webhooks::subscriptions::{change::Changing, show::Showing};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, EndpointSettings)>().await?;
    let secrets = service.secrets(secrets);
    let changing = Arc::new(Changing {
        showing: Showing::new(service.table()),
        rules,
        // Read when they are needed: most changes seal nothing.
        rings: KeyRings::new(secrets, service.clock().clone()),
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let changing = changing.clone();
            async move { changing.change(&call).await }
        })
        .await
}
