//! POST …/webhook/{webhookIdentifier}/secret: replaces a webhook's signing secret, and shows the new one this once.

use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::{Problem, overlap::overlap};
use storage::KeyRings;
use webhooks::subscriptions::{Webhooks, rotate::Rotation};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start().await?;
    let rotation = Rotation {
        webhooks: Webhooks::new(service.table()),
        rings: KeyRings::warm(service.secrets(secrets), service.clock()).await,
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::ROTATE_WEBHOOK_SECRET, rotation, rotate).await
}

async fn rotate(rotation: &Rotation, call: EntityCall) -> Result<Reply, Problem> {
    let overlap = overlap(&call.body)?;
    Ok(Reply::ok(&rotation.rotate(&call.entity, &webhook_id(&call)?, overlap).await?)?.uncached())
}
