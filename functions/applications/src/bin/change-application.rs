//! PATCH …/application/{clientId}: renames an application.

use function::{Service, StartError, idempotent_request};
use functions_applications::{Managing, caller, client_id};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::manage::Renaming;
use problem::Problem;
use storage::Once;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::CHANGE_APPLICATION, Managing::of(&service), change).await
}

async fn change(Managing { applications, answers }: &Managing, call: EntityCall) -> Result<Reply, Problem> {
    let renaming = Renaming::read(&call.body, call.entity.id())?;
    let request = idempotent_request(&call)?;
    let once = Once::of(answers, request.as_ref());
    let caller = caller(&call)?;
    let renamed = applications.rename(&caller, client_id(&call), renaming, once, &call.notes, call.now).await?;
    Ok(Reply::ok(&renamed.state.view(call.now, None))?.replayed(renamed.is_repeated))
}
