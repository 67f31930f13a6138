//! POST …/webhook/{webhookIdentifier}/feed/ack: records the outcomes that a feed reader reports. POST
//! …/webhook/{webhookIdentifier}/feed/extend: extends the leases of the reader's deliveries.

use function::{Service, StartError};
use functions_webhooks::{feeds, webhook_id};
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::{
    deliveries::{
        feed::{Feeds, acknowledge::Acknowledgement, extend::Extension},
        state::schedule::ScheduleSettings,
    },
    subscriptions::health::breaker::BreakerSettings,
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, settings) = Service::start::<(ScheduleSettings, BreakerSettings)>().await?;
    let feeds = feeds(&service, settings);
    service.serve(endpoints::ACKNOWLEDGE_FEED, feeds, answer).await
}

async fn answer(feeds: &Feeds, call: EntityCall) -> Result<Reply, Problem> {
    if call.route().ends_with("/extend") {
        let extension = Extension::read(&call.body)?;
        return Reply::ok(&feeds.extend(&call.entity, &webhook_id(&call)?, extension).await?);
    }
    let answers = Acknowledgement::read(&call.body)?;
    Reply::ok(&feeds.acknowledge(&call.entity, &webhook_id(&call)?, answers).await?)
}
