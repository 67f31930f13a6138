//! POST …/webhook/{webhookIdentifier}/secret: replaces a webhook's signing secret, and shows the new one once.

use function::{Service, StartError, idempotent_request};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::{IdempotencyStore, KeyRings};
use webhooks::subscriptions::{
    Webhooks,
    endpoint::rotate::{Rotation, RotationRequest},
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, secrets) = Service::start().await?;
    let rings = KeyRings::warm(service.secrets(secrets), service.clock()).await;
    let rotation = Rotation {
        webhooks: Webhooks::new(service.table()),
        answers: IdempotencyStore::sealed(service.table(), rings.clone(), service.random()),
        rings,
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::ROTATE_WEBHOOK_SECRET, rotation, rotate).await
}

async fn rotate(rotation: &Rotation, call: EntityCall) -> Result<Reply, Problem> {
    let request = RotationRequest::read(&call.body)?;
    let rotated =
        rotation.rotate(&call.entity, &webhook_id(&call)?, request, idempotent_request(&call)?.as_ref()).await?;
    Ok(Reply::ok(&rotated)?.uncached().replayed(rotated.is_repeated()))
}
