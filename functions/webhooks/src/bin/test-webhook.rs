//! POST …/webhook/{webhookIdentifier}/test: sends a test event to one webhook.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall};
use webhooks::subscriptions::{Webhooks, test_event::Testing};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, settings) = Service::start().await?;
    let testing = Arc::new(Testing {
        webhooks: Webhooks::new(service.table().clone()),
        publisher: functions_webhooks::publisher(&service, settings),
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service
        .serve(ENDPOINT, move |call| {
            let testing = testing.clone();
            async move { testing.send(&call).await }
        })
        .await
}
