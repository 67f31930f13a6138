//! PATCH …/application/{clientId}: changes an application's name, scopes and metadata.

use function::{Service, StartError, idempotent_request};
use functions_applications::{Managing, caller, client_id};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::{caller::confirmed, change::ApplicationChange};
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
    let confirmed = confirmed(call.read_query())?;
    let change = ApplicationChange::read(&call.body, call.entity.id())?;
    let request = idempotent_request(&call)?;
    let once = Once::of(answers, request.as_ref());
    let caller = caller(&call)?;
    let changed =
        applications.change(&caller, client_id(&call), change, (confirmed, once), &call.notes, call.now).await?;
    Ok(Reply::ok(&changed.state.view(call.now, None))?.replayed(changed.is_repeated))
}
