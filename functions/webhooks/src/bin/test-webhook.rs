//! POST …/webhook/{webhookIdentifier}/test: sends a test event to one webhook.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{Endpoint, EntityCall, Reply};
use http::StatusCode;
use problem::{Problem, nothing_said};
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
    service.serve(ENDPOINT, move |call| test(testing.clone(), call)).await
}

async fn test(testing: Arc<Testing>, call: EntityCall) -> Result<Reply, Problem> {
    nothing_said(&call.body)?;
    Reply::json(StatusCode::ACCEPTED, &testing.send(&call.entity, &webhook_id(&call)?).await?)
}
