//! DELETE …/application/{clientId}: removes an application and revokes its tokens.

use function::{Service, StartError, remove_once};
use functions_applications::{Managing, caller, client_id};
use gate::{EntityCall, Reply, endpoints};
use issuer::applications::caller::confirmed;
use problem::{Problem, Removed};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::REMOVE_APPLICATION, Managing::of(&service), remove).await
}

async fn remove(Managing { applications, answers }: &Managing, call: EntityCall) -> Result<Reply, Problem> {
    const MESSAGE: &str =
        "The application is removed. It gets no new tokens, and its existing tokens stop working within a minute.";
    let confirmed = confirmed(call.read_query())?;
    let caller = caller(&call)?;
    let id = client_id(&call);
    let notes = &call.notes;
    let now = call.now;
    remove_once(answers, &call, Removed::with_success(id, MESSAGE), |record| async move {
        applications.remove(&caller, id, confirmed, record, notes, now).await.map(drop)
    })
    .await
}
