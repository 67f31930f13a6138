//! POST …/webhook/event: publishes an event to every webhook that wants it.

use std::sync::Arc;

use shared::{
    Service, StartError,
    auth::scope::Scope,
    events::{
        publish::Publisher,
        share::{PublishingShare, ShareSettings},
    },
    http::Endpoint,
    settings::{QueueSettings, ScheduleSettings},
};

const ENDPOINT: Endpoint = Endpoint::needs(Scope::IntegrationsWrite).taking_json();

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, (queue, schedule, share)) =
        Service::start::<(QueueSettings, ScheduleSettings, ShareSettings)>().await?;
    let publisher = Arc::new(Publisher::start(&service, (queue, schedule)));
    let share = Arc::new(PublishingShare::start(&service, share));
    service
        .serve(ENDPOINT, move |call| {
            let (publisher, share) = (publisher.clone(), share.clone());
            async move { share.within(call.entity(), publisher.publish(&call)).await }
        })
        .await
}
