//! GET …/webhook/list: all of a managing entity's webhooks, oldest first.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use problem::Problem;
use webhooks::subscriptions::webhook::show::Showing;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::LIST_WEBHOOKS, Showing::new(&service.table()), list).await
}

async fn list(showing: &Showing, call: EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&showing.all(&call.entity, call.now).await?)
}
