//! GET …/panel/link/list: the links that can be opened, and those with an active session, the newest first.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use issuer::panel::{PanelLink, links::PanelLinks};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::LIST_PANEL_LINKS, PanelLinks::new(service.table()), list).await
}

async fn list(links: &PanelLinks, call: EntityCall) -> Result<Reply, Problem> {
    let found = links.list(&call.entity, call.now).await?;
    Reply::ok(&found.iter().map(PanelLink::view).collect::<Vec<_>>())
}
