//! GET …/webhook/{webhookIdentifier}: one webhook, with its health and without its secret.

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use webhooks::subscriptions::show::Showing;

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsRead);

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let showing = Showing::new(service.table());
    service
        .serve(ENDPOINT, move |call| {
            let showing = showing.clone();
            async move { showing.show(&call).await }
        })
        .await
}
