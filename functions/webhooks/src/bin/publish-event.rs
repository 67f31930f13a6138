//! POST …/webhook/event: publishes an event to every webhook that wants it.

use std::sync::Arc;

use auth::scope::Scope;
use function::{Service, StartError};
use gate::{Endpoint, EntityCall, Reply};
use http::{HeaderValue, StatusCode};
use problem::Problem;
use webhooks::{
    deliveries::{queue::QueueSettings, schedule::ScheduleSettings},
    events::{
        NewEvent,
        publish::Publisher,
        share::{PublishingShare, ShareSettings},
    },
};

const ENDPOINT: Endpoint<EntityCall> = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (queue, schedule, share)) =
        Service::start::<(QueueSettings, ScheduleSettings, ShareSettings)>().await?;
    let publisher = Arc::new(functions_webhooks::publisher(&service, (queue, schedule)));
    let share = Arc::new(PublishingShare::new(service.table().clone(), service.clock().clone(), share));
    service
        .serve(ENDPOINT, move |call| {
            let (publisher, share) = (publisher.clone(), share.clone());
            async move { share.within(&call.entity, publish(&publisher, &call)).await }
        })
        .await
}

async fn publish(publisher: &Publisher, call: &EntityCall) -> Result<Reply, Problem> {
    let keys = call.headers().get_all("idempotency-key").iter().map(HeaderValue::as_bytes);
    let event = NewEvent::read(&call.body, keys)?;
    Reply::json(StatusCode::ACCEPTED, &publisher.publish(&call.entity, event).await?)
}
