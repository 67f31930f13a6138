//! DELETE …/panel/link/{linkIdentifier}: removes a panel link, and ends its session.

use function::{Service, StartError, remove_once};
use gate::{EntityCall, Reply, endpoints};
use issuer::panel::links::PanelLinks;
use problem::{Problem, Removed};
use storage::IdempotencyStore;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let links = PanelLinks::new(service.table());
    let answers = IdempotencyStore::new(service.table());
    service.serve(endpoints::REMOVE_PANEL_LINK, (links, answers), remove).await
}

async fn remove((links, answers): &(PanelLinks, IdempotencyStore), call: EntityCall) -> Result<Reply, Problem> {
    const MESSAGE: &str = "The link is removed, and its session's tokens stop working within a minute.";
    let id = call.path("linkIdentifier");
    remove_once(answers, &call, Removed::new(id, MESSAGE), |record| {
        links.remove(&call.entity, id, record, &call.notes, call.now)
    })
    .await
}
