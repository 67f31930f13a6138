//! POST …/application/{clientId}/secret: gives an application a further secret, and shows the secret this once.

use function::{Service, StartError};
use functions_applications::{caller, client_id};
use gate::{EntityCall, Reply, endpoints};
use issuer::{
    applications::{
        Applications,
        secrets::{self, SecretAddition},
    },
    oauth::pepper::{Pepper, PepperSource},
};
use problem::Problem;
use storage::Allowances;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start().await?;
    let addition = SecretAddition {
        applications: Applications::new(service.table()),
        allowances: Allowances::new(service.table()),
        pepper: Pepper::warm(PepperSource(service.secrets(secrets)), service.clock()).await,
        random: service.random(),
    };
    service.serve(endpoints::ADD_APPLICATION_SECRET, addition, add).await
}

async fn add(addition: &SecretAddition, call: EntityCall) -> Result<Reply, Problem> {
    let overlap = secrets::overlap(&call.body)?;
    let added = addition.add(&caller(&call)?, client_id(&call), overlap, &call.notes, call.now).await?;
    Ok(Reply::ok(&added)?.uncached())
}
