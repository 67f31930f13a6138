//! DELETE …/panel/link/{linkIdentifier}: removes a panel link, and ends its session.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use issuer::panel::links::PanelLinks;
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::REMOVE_PANEL_LINK, PanelLinks::new(service.table()), remove).await
}

async fn remove(links: &PanelLinks, call: EntityCall) -> Result<Reply, Problem> {
    let id = call.path("linkIdentifier");
    links.remove(&call.entity, id, &call.notes, call.now).await?;
    Reply::removed(&id, "The link opens nothing any more, and the tokens of its session end within a minute.")
}
