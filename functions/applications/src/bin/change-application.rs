//! PATCH …/application/{clientId}: renames an application.

use function::{Service, StartError};
use functions_applications::{caller, client_id};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::{Applications, manage::Renaming};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::CHANGE_APPLICATION, Applications::new(service.table()), change).await
}

async fn change(applications: &Applications, call: EntityCall) -> Result<Reply, Problem> {
    let renaming = Renaming::read(&call.body, call.entity.id())?;
    let application = applications.rename(&caller(&call)?, client_id(&call), renaming, &call.notes, call.now).await?;
    Reply::ok(&application.view(call.now, None))
}
