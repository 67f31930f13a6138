//! POST …/application/{clientId}/secret: adds a secret to an application, and shows it once. The status is 200 although
//! a secret is created: published clients of similar platforms accept no other.

use function::{Service, StartError, idempotent_request};
use functions_applications::{caller, client_id, registration};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::register::Registration;
use problem::{Problem, overlap::overlap};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, secrets) = Service::start().await?;
    let registration = registration(&service, secrets).await;
    service.serve(endpoints::ADD_APPLICATION_SECRET, registration, add).await
}

async fn add(registration: &Registration, call: EntityCall) -> Result<Reply, Problem> {
    let overlap = overlap(&call.body)?;
    let caller = caller(&call)?;
    let client_id = client_id(&call);
    let once = idempotent_request(&call)?;
    let added = registration.add_secret_once(&caller, client_id, overlap, once.as_ref(), &call.notes, call.now).await?;
    Ok(Reply::ok(&added)?.uncached().replayed(added.is_repeated()))
}
