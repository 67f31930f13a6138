//! POST …/application: makes an application, and shows its secret this once.

use function::{Service, StartError};
use functions_applications::caller;
use gate::{EntityCall, Reply, endpoints};
use issuer::{
    applications::{Applications, new_application::NewApplication, register::Registration},
    oauth::pepper::{Pepper, PepperSource},
};
use problem::Problem;
use storage::Allowances;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, secrets) = Service::start().await?;
    let registration = Registration {
        applications: Applications::new(service.table()),
        allowances: Allowances::new(service.table()),
        pepper: Pepper::warm(PepperSource(service.secrets(secrets)), service.clock()).await,
        random: service.random(),
    };
    service.serve(endpoints::CREATE_APPLICATION, registration, create).await
}

async fn create(registration: &Registration, call: EntityCall) -> Result<Reply, Problem> {
    let new = NewApplication::read(&call.body, call.entity.id(), call.now)?;
    let created = registration.create(&caller(&call)?, new, &call.notes, call.now).await?;
    Reply::created(&created.view(call.now), &call.address_of("application", &created.application.client_id))
}
