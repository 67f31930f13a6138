//! Requests that no route takes: 404, or 405 with the verbs that the path does take.

use function::{Service, StartError};
use gate::{Call, Reply, endpoints, routes};
use problem::Problem;

fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::FALLBACK, (), refuse).await
}

async fn refuse(_: &(), call: Call) -> Result<Reply, Problem> {
    let allowed = routes::verbs_of(call.whole_path());
    // A gateway that matches other spellings than ours may send a path whose route takes the verb after all.
    if allowed.is_empty() || allowed.contains(&call.method().as_str()) {
        return Err(Problem::no_route(call.whole_path()));
    }
    Err(Problem::wrong_verb(call.method(), &allowed))
}
