//! POST …/panel/link/{linkIdentifier}/renew: extends a panel link's session.

use function::{Service, StartError};
use gate::{EntityCall, Reply, endpoints};
use issuer::panel::{links::PanelLinks, renewal::LinkRenewal};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::RENEW_PANEL_LINK, PanelLinks::new(service.table()), renew).await
}

async fn renew(links: &PanelLinks, call: EntityCall) -> Result<Reply, Problem> {
    let renewal = LinkRenewal::read(&call.body)?;
    let token = call.claims.as_ref();
    let token = token.ok_or_else(|| Problem::internal("the request to renew a panel link has no token"))?;
    let id = call.path("linkIdentifier");
    let renewed = links.renew(&call.entity, token, id, renewal, &call.notes, call.now).await?;
    Reply::ok(&renewed.view())
}
