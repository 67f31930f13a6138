//! GET …/webhook/list: all webhooks of a managing entity, the oldest first.

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
            async move { showing.list(&call).await }
        })
        .await
}
