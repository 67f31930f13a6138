//! Requests without a route: a redirect from addresses that clients derive, a preflight, or 404. The gate returns 405
//! if the path supports other methods.

use function::{Service, StartError};
use functions_public::derived;
use gate::{Call, Reply, endpoints};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::FALLBACK, (), refuse).await
}

async fn refuse(_: &(), call: Call) -> Result<Reply, Problem> {
    // The gate handles known paths with unsupported methods. A gateway with different matching rules may still send a
    // request that has a route.
    derived::answer(call.method(), call.whole_path()).ok_or_else(|| Problem::no_route(call.whole_path()))
}
