//! GET …/payment/provider/list: a managing entity's connections to payment providers.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use payments::{Connection, Connections};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::LIST_CONNECTIONS, Connections::new(service.table()), list).await
}

async fn list(connections: &Connections, call: EntityCall) -> Result<Reply, Problem> {
    let found = connections.of(&call.entity).await?;
    Reply::ok(&found.iter().map(Connection::view).collect::<Vec<_>>())
}
