//! GET …/application/{clientId}: one application, without its secrets.

use function::{Service, StartError};
use functions_applications::{caller, client_id};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::Applications;
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::SHOW_APPLICATION, Applications::new(service.table()), show).await
}

async fn show(applications: &Applications, call: EntityCall) -> Result<Reply, Problem> {
    let application = applications.show(&caller(&call)?, client_id(&call), &call.notes).await?;
    Reply::ok(&application.view(call.now, None))
}
