//! GET /problems/{kind}: the page that a Problem's `type` resolves to.

use function::{Service, StartError};
use gate::{Call, Reply, endpoints, page, problem_page};
use problem::{Problem, ProblemKind};

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    service.serve(endpoints::PROBLEM_PAGE, (), show).await
}

async fn show(_: &(), call: Call) -> Result<Reply, Problem> {
    let kind = ProblemKind::of_slug(call.path("kind")).ok_or_else(|| Problem::no_route(call.whole_path()))?;
    Ok(page::reply(problem_page::html(kind)).cacheable(3600))
}
