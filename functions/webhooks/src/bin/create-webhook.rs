//! POST …/webhook: registers a webhook, and shows its signing secret once.

use function::{Service, StartError, idempotent_request};
use gate::{EntityCall, Reply, endpoints};
use outbound::AddressRules;
use problem::Problem;
use storage::{IdempotencyStore, KeyRings};
use webhooks::subscriptions::{
    Webhooks,
    webhook::register::{NewWebhook, Registration},
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start().await?;
    let rings = KeyRings::warm(service.secrets(secrets), service.clock()).await;
    let registration = Registration {
        webhooks: Webhooks::new(service.table()),
        answers: IdempotencyStore::sealed(service.table(), rings.clone(), service.random()),
        rings,
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::CREATE_WEBHOOK, (registration, rules), create).await
}

async fn create((registration, rules): &(Registration, AddressRules), call: EntityCall) -> Result<Reply, Problem> {
    let new = NewWebhook::read(&call.body, call.entity.id(), rules)?;
    let webhook = registration.register(&call.entity, new, idempotent_request(&call)?.as_ref()).await?;
    let address = call.address_of("webhook", &webhook.id(|made| made.id.to_string()));
    Ok(Reply::created(&webhook, &address)?.replayed(webhook.is_repeated()))
}
