//! PATCH …/webhook/{webhookIdentifier}: changes the given members of a webhook.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{Endpoint, EntityCall, Reply};
use outbound::EndpointSettings;
use problem::Problem;
use storage::{sealing::KeyRings, secrets::SecretSettings};
use webhooks::subscriptions::{
    change::{Changing, WebhookChange},
    show::Showing,
};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, EndpointSettings)>().await?;
    let changing = Arc::new(Changing {
        showing: Showing::new(service.table()),
        rules,
        // Reads the keys only when they are needed: most changes seal nothing.
        rings: KeyRings::new(service.secrets(secrets), service.clock().clone()),
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service.serve(ENDPOINT, move |call| change(changing.clone(), call)).await
}

async fn change(changing: Arc<Changing>, call: EntityCall) -> Result<Reply, Problem> {
    let change = WebhookChange::read(&call.body, call.entity.id(), &changing.rules)?;
    Reply::ok(&changing.change(&call.entity, &webhook_id(&call)?, &change).await?)
}
