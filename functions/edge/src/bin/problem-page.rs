//! GET /problems/{kind}: the page that a Problem's `type` resolves to.

use function::{Service, StartError};
use gate::{Endpoint, page, problem_page};
use problem::{Problem, ProblemKind};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service
        .serve(Endpoint::public(), async |call| match ProblemKind::of_slug(call.path("kind")) {
            Some(kind) => Ok(page::reply(problem_page::html(kind)).cacheable(3600)),
            None => Err(Problem::no_route(call.whole_path())),
        })
        .await
}
