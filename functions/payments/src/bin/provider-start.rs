//! GET /api/public/{provider}/oauth2/start: a connection's start page, which names the entity and links to the
//! provider.

use function::{Service, StartError};
use functions_payments::{browser, failure_page, provider, redirect, start_page};
use gate::{Call, Reply, endpoints};
use payments::{
    PendingAuthorizations, StateFault,
    panel::PanelSettings,
    start::{Opened, Start, StartQuery},
};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, panel) = Service::start::<PanelSettings>().await?;
    let pending = PendingAuthorizations::new(service.table());
    let start = Start { pending, clock: service.clock(), random: service.random() };
    service.serve(endpoints::PROVIDER_START, (start, panel), open).await
}

async fn open((start, panel): &(Start, PanelSettings), call: Call) -> Result<Reply, Problem> {
    let query = StartQuery::read(|name| call.query(name))?;
    let opened = match provider(&call) {
        Some(provider) => start.open(&provider, &query, browser(&call)).await,
        None => Err(StateFault::NoProvider.into()),
    };
    match opened.map_err(|error| failure_page::of_start(error, &call, panel))? {
        Opened::Page(page) => start_page::reply(&page),
        Opened::Redirect(address) => redirect(&address),
    }
}
