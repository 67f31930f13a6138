//! GET /: the public contract for people, and GET /receiving: the guide for endpoint authors. The build generates them
//! from `openapi.yaml` and the files of `docs` in `reference::GUIDE_FILES`.

use function::{Service, StartError};
use functions_public::{RECEIVING, RECEIVING_TITLE, REFERENCE, with_addresses};
use gate::{Call, Reply, endpoints, page};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let back = "<p><a href=\"/\">API reference</a></p>\n";
    let pages = Pages {
        reference: page::html("Waypost API", &with_addresses(REFERENCE, service.settings())),
        receiving: page::html(RECEIVING_TITLE, &format!("{back}{RECEIVING}{back}")),
    };
    service.serve(endpoints::REFERENCE, pages, show).await
}

struct Pages {
    reference: String,
    receiving: String,
}

async fn show(pages: &Pages, call: Call) -> Result<Reply, Problem> {
    let html = if call.whole_path() == "/" { &pages.reference } else { &pages.receiving };
    Ok(page::reply(html.as_str()).cacheable(300))
}
