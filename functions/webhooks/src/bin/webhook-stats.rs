//! GET …/webhook/{webhookIdentifier}/stats: a webhook's attempts, successes and response times.

use function::{Service, StartError};
use functions_webhooks::webhook_id;
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::subscriptions::webhook::show::Showing;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::WEBHOOK_STATS, Showing::new(&service.table()), show_stats).await
}

async fn show_stats(showing: &Showing, call: EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&showing.stats(&call.entity, &webhook_id(&call)?, call.now).await?)
}
