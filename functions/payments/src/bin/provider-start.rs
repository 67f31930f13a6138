//! GET /api/public/{provider}/oauth2/start: the page that names who asks for a connection, and leads to the provider.

use std::sync::Arc;

use function::{Service, StartError};
use functions_payments::start_page;
use gate::{Call, Endpoint, Reply};
use payments::{
    PendingAuthorizations,
    start::{Opened, Start, StartPageError, StartQuery},
};
use problem::Problem;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let start = Arc::new(Start {
        pending: PendingAuthorizations::new(service.table().clone()),
        clock: service.clock().clone(),
        random: service.shared_random(),
    });
    service.serve(Endpoint::public(), move |call| open(start.clone(), call)).await
}

async fn open(start: Arc<Start>, call: Call) -> Result<Reply, Problem> {
    let query = StartQuery::read(|name| call.query(name))?;
    let provider = functions_payments::provider(&call).ok_or(StartPageError::InvalidState)?;
    match start.open(&provider, &query, functions_payments::browser(&call)).await? {
        Opened::Page(page) => start_page::reply(&page),
        Opened::GoOn(address) => functions_payments::redirect(&address),
    }
}
