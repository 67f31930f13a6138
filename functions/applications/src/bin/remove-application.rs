//! DELETE …/application/{clientId}: removes an application and revokes its tokens.

use function::{Service, StartError};
use functions_applications::{caller, client_id};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::{Applications, caller::confirmed};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::REMOVE_APPLICATION, Applications::new(service.table()), remove).await
}

async fn remove(applications: &Applications, call: EntityCall) -> Result<Reply, Problem> {
    let confirmed = confirmed(call.read_query())?;
    applications.remove(&caller(&call)?, client_id(&call), confirmed, &call.notes, call.now).await?;
    let message = "The application is removed; it gets no more tokens, and those that it has end within a minute.";
    Reply::removed(&client_id(&call), message)
}
