//! Requests that no route takes: 404; the gate before it answers 405 where the path takes other verbs.

use function::{Service, StartError};
use gate::{Call, Reply, endpoints};
use problem::Problem;

pub fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::FALLBACK, (), refuse).await
}

async fn refuse(_: &(), call: Call) -> Result<Reply, Problem> {
    // The gate has answered where the path is a route's and the verb is not. A gateway that matches other spellings than
    // ours may send a path whose route takes the verb after all.
    Err(Problem::no_route(call.whole_path()))
}
