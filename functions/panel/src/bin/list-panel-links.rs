//! GET …/panel/link/list: the links that can be opened, and those with an active session, newest first, page by page.
//! GET …/panel/link/{linkIdentifier}: one of them.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use issuer::panel::{link_list::LinkListRequest, links::PanelLinks};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::LIST_PANEL_LINKS, PanelLinks::new(service.table()), list_or_show).await
}

async fn list_or_show(links: &PanelLinks, call: EntityCall) -> Result<Reply, Problem> {
    if call.path("linkIdentifier").is_empty() { list(links, &call).await } else { show(links, &call).await }
}

async fn list(links: &PanelLinks, call: &EntityCall) -> Result<Reply, Problem> {
    let request = LinkListRequest::read(call.read_query())?;
    Reply::ok(&links.list(&call.entity, &request, call.now).await?.view())
}

async fn show(links: &PanelLinks, call: &EntityCall) -> Result<Reply, Problem> {
    Reply::ok(&links.show(&call.entity, call.path("linkIdentifier"), call.now).await?.view())
}
