//! GET /panel/provider/{provider}: the page for people who return from a provider.

use function::{Service, StartError};
use functions_payments::{browser, outcome_page, provider};
use gate::{Call, Reply, endpoints};
use payments::outcome_address::OutcomePage;
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::PROVIDER_OUTCOME, (), show).await
}

/// Shows the page and changes nothing, since anyone can forge its address.
async fn show(_: &(), call: Call) -> Result<Reply, Problem> {
    let provider = provider(&call).ok_or_else(|| Problem::no_route(call.whole_path()))?;
    let browser = browser(&call);
    Ok(outcome_page::reply(&OutcomePage::read(&provider, |name| call.query(name), browser.as_ref())))
}
