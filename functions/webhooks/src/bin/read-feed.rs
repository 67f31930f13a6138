//! GET …/webhook/{webhookIdentifier}/feed: the oldest deliveries of a webhook that is pulled.

use function::{Service, StartError};
use functions_webhooks::{feeds, webhook_id};
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::{KeyRings, SecretSettings};
use webhooks::{
    deliveries::{
        dispatch::schedule::ScheduleSettings,
        feed::{Feeds, read::FeedRequest},
    },
    subscriptions::breaker::BreakerSettings,
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, settings)) =
        Service::start::<(SecretSettings, (ScheduleSettings, BreakerSettings))>().await?;
    let feeds = feeds(&service, settings);
    let rings = KeyRings::warm(service.secrets(secrets), service.clock()).await;
    service.serve(endpoints::READ_FEED, (feeds, rings), read).await
}

async fn read((feeds, rings): &(Feeds, KeyRings), call: EntityCall) -> Result<Reply, Problem> {
    let webhook = webhook_id(&call)?;
    let request = FeedRequest::read(call.read_query())?;
    Reply::ok(&feeds.read(rings, &call.entity, &webhook, request).await?)
}
