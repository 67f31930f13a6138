//! POST …/webhook/{webhookIdentifier}/secret: replaces a webhook's signing secret, and shows the new
//! one this once.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{Endpoint, EntityCall, Reply};
use http::header::CACHE_CONTROL;
use problem::{Problem, nothing_said};
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
    service.serve(ENDPOINT, move |call| rotate(rotation.clone(), call)).await
}

async fn rotate(rotation: Arc<Rotation>, call: EntityCall) -> Result<Reply, Problem> {
    nothing_said(&call.body)?;
    let rotated = rotation.rotate(&call.entity, &webhook_id(&call)?).await?;
    Ok(Reply::ok(&rotated)?.with_header(CACHE_CONTROL, "no-store"))
}
