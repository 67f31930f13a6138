//! GET …/webhook/list: all webhooks of a managing entity, the oldest first.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::subscriptions::show::Showing;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::LIST_WEBHOOKS, Showing::new(&service.table()), list).await
}

async fn list(showing: &Showing, call: EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&showing.all(&call.entity, call.now).await?)
}
