//! POST …/application/{clientId}/key: adds a public key to an application.

use function::{Service, StartError, idempotent_request};
use functions_applications::{caller, client_id};
use gate::{EntityCall, Reply, endpoints};
use http::StatusCode;
use issuer::applications::{
    Applications,
    keys::{self, KeyAddition},
};
use problem::Problem;
use storage::{Allowances, IdempotencyStore};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let addition = KeyAddition {
        applications: Applications::new(service.table()),
        allowances: Allowances::new(service.table()),
        answers: IdempotencyStore::new(service.table()),
    };
    service.serve(endpoints::ADD_APPLICATION_KEY, addition, add).await
}

async fn add(addition: &KeyAddition, call: EntityCall) -> Result<Reply, Problem> {
    let key = keys::read(&call.body, call.now)?;
    let caller = caller(&call)?;
    let once = idempotent_request(&call)?;
    let added = addition.add(&caller, client_id(&call), key, once.as_ref(), &call.notes, call.now).await?;
    Ok(Reply::json(StatusCode::CREATED, &added)?.replayed(added.is_repeated()))
}
