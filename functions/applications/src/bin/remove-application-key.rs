//! DELETE …/application/{clientId}/key/{kid}: removes an application's public key, and ends the tokens obtained with
//! it.

use function::{Service, StartError};
use functions_applications::{Managing, remove_credential};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::credential_removal::CredentialName;
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::REMOVE_APPLICATION_KEY, Managing::of(&service), remove).await
}

async fn remove(managing: &Managing, call: EntityCall) -> Result<Reply, Problem> {
    remove_credential(managing, &call, CredentialName::Key(call.path("kid"))).await
}
