//! GET …/webhook/{webhookIdentifier}: one webhook, with its health and without its secret.

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
    service.serve(endpoints::SHOW_WEBHOOK, Showing::new(&service.table()), show).await
}

async fn show(showing: &Showing, call: EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&showing.one(&call.entity, &webhook_id(&call)?, call.now).await?)
}
