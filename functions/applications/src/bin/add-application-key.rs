//! POST …/application/{clientId}/key: gives an application a further public key.

use function::{Service, StartError};
use functions_applications::{caller, client_id};
use gate::{EntityCall, Reply, endpoints};
use http::StatusCode;
use issuer::applications::{
    Applications,
    keys::{self, KeyAddition},
};
use problem::Problem;
use storage::Allowances;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let (applications, allowances) = (Applications::new(service.table()), Allowances::new(service.table()));
    service.serve(endpoints::ADD_APPLICATION_KEY, KeyAddition { applications, allowances }, add).await
}

async fn add(addition: &KeyAddition, call: EntityCall) -> Result<Reply, Problem> {
    let key = keys::read(&call.body, call.now)?;
    let application = addition.add(&caller(&call)?, client_id(&call), key, &call.notes, call.now).await?;
    Reply::json(StatusCode::CREATED, &application.view(call.now, None))
}
