//! POST …/webhook/event: publishes an event to every webhook that wants it.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::Endpoint;

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, settings) = Service::start().await?;
    let publisher = Arc::new(functions_webhooks::publisher(&service, settings));
    service
        .serve(ENDPOINT, move |call| {
            let publisher = publisher.clone();
            async move { publisher.publish(&call).await }
        })
        .await
}
