//! GET /panel/provider/{provider}: the page that people land on who come back from a provider.

use function::{Service, StartError};
use functions_payments::outcome_page;
use gate::{Call, Endpoint, Reply};
use payments::outcome_page::OutcomePage;
use problem::Problem;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(Endpoint::public(), async |call| show(&call)).await
}

/// Whatever stands in the page's address, it changes nothing.
fn show(call: &Call) -> Result<Reply, Problem> {
    let provider = functions_payments::provider(call).ok_or_else(|| Problem::no_route(call.whole_path()))?;
    let browser = functions_payments::browser(call);
    Ok(outcome_page::reply(&OutcomePage::read(&provider, |name| call.query(name), browser.as_ref())))
}
