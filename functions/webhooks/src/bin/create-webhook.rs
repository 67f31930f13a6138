//! POST …/webhook: registers a webhook, and shows its signing secret this once.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall, Reply};
use http::{
    StatusCode,
    header::{CACHE_CONTROL, LOCATION},
};
use outbound::{EndpointSettings, addresses::AddressRules};
use problem::Problem;
use storage::{sealing::KeyRings, secrets::SecretSettings};
use webhooks::subscriptions::{
    Webhooks,
    register::{NewWebhook, Registration},
};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start::<(SecretSettings, EndpointSettings)>().await?;
    let secrets = service.secrets(secrets);
    let registration = Registration {
        webhooks: Webhooks::new(service.table().clone()),
        rings: KeyRings::warm(secrets, service.clock().clone()).await,
        clock: service.clock().clone(),
        random: service.shared_random(),
    };
    let door = Arc::new((registration, rules, service.settings().base_url.clone()));
    service.serve(ENDPOINT, move |call| create(door.clone(), call)).await
}

async fn create(door: Arc<(Registration, AddressRules, String)>, call: EntityCall) -> Result<Reply, Problem> {
    let (registration, rules, base_url) = &*door;
    let new = NewWebhook::read(&call.body, call.entity.id(), rules)?;
    let webhook = registration.register(&call.entity, new).await?;
    let location = format!("{base_url}/api/managing-entity/{}/webhook/{}", call.entity.id(), webhook.id);
    Reply::json(StatusCode::CREATED, &webhook)?
        .with_header(CACHE_CONTROL, "no-store")
        .with_computed_header(LOCATION, &location)
}
