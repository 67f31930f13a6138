//! POST …/application: creates an application, and shows its secret once.

use function::{Service, StartError, idempotent_request};
use functions_applications::{caller, registration};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::{new_application::NewApplication, register::Registration};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, secrets) = Service::start().await?;
    let registration = registration(&service, secrets).await;
    service.serve(endpoints::CREATE_APPLICATION, registration, create).await
}

async fn create(registration: &Registration, call: EntityCall) -> Result<Reply, Problem> {
    let caller = caller(&call)?;
    let once = idempotent_request(&call)?;
    let new = NewApplication::read(&call.body, call.entity.id(), caller.scopes(), call.now)?;
    let created = registration.create_once(&caller, new, once.as_ref(), &call.notes, call.now).await?;
    let address = call.address_of("application", &created.id(|created| created.application.client_id.clone()));
    Ok(Reply::created(&created, &address)?.replayed(created.is_repeated()))
}
