//! GET …/application/list: all of a managing entity's applications, newest first.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::Applications;
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::LIST_APPLICATIONS, Applications::new(service.table()), list).await
}

async fn list(applications: &Applications, call: EntityCall) -> Result<Reply, Problem> {
    let found = applications.of(call.entity.id()).await?;
    Reply::ok(&found.iter().map(|application| application.view(call.now, None)).collect::<Vec<_>>())
}
