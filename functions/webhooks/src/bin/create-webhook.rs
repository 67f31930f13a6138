//! POST …/webhook: registers a webhook, and shows its signing secret this once.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use outbound::AddressRules;
use problem::Problem;
use storage::KeyRings;
use webhooks::subscriptions::{
    Webhooks,
    register::{NewWebhook, Registration},
};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (secrets, rules)) = Service::start().await?;
    let registration = Registration {
        webhooks: Webhooks::new(service.table()),
        rings: KeyRings::warm(service.secrets(secrets), service.clock()).await,
        clock: service.clock(),
        random: service.random(),
    };
    service.serve(endpoints::CREATE_WEBHOOK, (registration, rules), create).await
}

async fn create((registration, rules): &(Registration, AddressRules), call: EntityCall) -> Result<Reply, Problem> {
    let new = NewWebhook::read(&call.body, call.entity.id(), rules)?;
    let webhook = registration.register(&call.entity, new).await?;
    Reply::created(&webhook, &call.address_of("webhook", &webhook.id))
}
