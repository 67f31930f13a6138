//! POST …/application/{clientId}/secret: gives an application a further secret, and shows the secret this once.

use function::{Service, StartError};
use functions_applications::{caller, client_id, registration};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::register::Registration;
use problem::{Problem, overlap::overlap};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start().await?;
    let registration = registration(&service, secrets).await;
    service.serve(endpoints::ADD_APPLICATION_SECRET, registration, add).await
}

async fn add(registration: &Registration, call: EntityCall) -> Result<Reply, Problem> {
    let overlap = overlap(&call.body)?;
    let added = registration.add_secret(&caller(&call)?, client_id(&call), overlap, &call.notes, call.now).await?;
    Ok(Reply::ok(&added)?.uncached())
}
