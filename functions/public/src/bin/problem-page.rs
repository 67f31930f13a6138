//! GET /problems/{kind} and GET /problems: the page at a Problem's `type`, and the list of these pages.

use function::{Service, StartError};
use functions_public::problem_page;
use gate::{Call, Reply, endpoints, page};
use problem::{Problem, ProblemKind};

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let pages = Pages { base_url: service.settings().base_url.clone() };
    service.serve(endpoints::PROBLEM_PAGE, pages, show).await
}

/// The pages about kinds of Problems.
struct Pages {
    /// The API's address, for links.
    base_url: String,
}

async fn show(pages: &Pages, call: Call) -> Result<Reply, Problem> {
    let base_url = &pages.base_url;
    let html = match call.path("kind") {
        "" => problem_page::list(base_url),
        slug => {
            let kind = ProblemKind::of_slug(slug).ok_or_else(|| Problem::no_route(call.whole_path()))?;
            problem_page::of_kind(kind, base_url)
        }
    };
    Ok(page::reply(html).cacheable(3600))
}
