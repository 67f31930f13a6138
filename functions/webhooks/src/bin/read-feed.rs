//! POST …/webhook/{webhookIdentifier}/feed/read: a pull webhook's oldest deliveries.

use function::{ClientPresence, Service, StartError, idempotent_request};
use functions_webhooks::{feeds, webhook_id};
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use storage::{KeyRings, SecretSettings};
use webhooks::{
    deliveries::{
        feed::{
            Feeds,
            read::{FeedRequest, Reader},
        },
        state::schedule::ScheduleSettings,
    },
    subscriptions::health::breaker::BreakerSettings,
};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, (secrets, settings, clients)) =
        Service::start::<(SecretSettings, (ScheduleSettings, BreakerSettings), ClientPresence)>().await?;
    let feeds = feeds(&service, settings);
    let rings = KeyRings::warm(service.secrets(secrets), service.clock()).await;
    service.serve(endpoints::READ_FEED, (feeds, rings, clients), read).await
}

/// A request's client.
struct Client<'a> {
    presence: &'a ClientPresence,
    request_id: &'a str,
}

impl Reader for Client<'_> {
    async fn may_wait(&self) -> bool {
        self.presence.may_wait(self.request_id).await
    }
}

async fn read(
    (feeds, rings, presence): &(Feeds, KeyRings, ClientPresence),
    call: EntityCall,
) -> Result<Reply, Problem> {
    let request = FeedRequest::read(&call.body)?;
    let webhook = webhook_id(&call)?;
    let once = idempotent_request(&call)?;
    let client = Client { presence, request_id: &call.request_id };
    let page = feeds.read(rings, &call.entity, &webhook, request, once.as_ref(), &client).await?;
    Ok(Reply::ok(&page)?.uncached().replayed(page.is_repeated))
}
