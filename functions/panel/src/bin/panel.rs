//! GET /panel and every address below it: the page, whose script reads the address. /panel/assets contains its files.

use function::{Service, StartError};
use functions_panel::{
    files,
    page::{Page, PageSettings},
};
use gate::{Call, Reply, endpoints};
use problem::Problem;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, settings) = Service::start::<PageSettings>().await?;
    service.serve(endpoints::PANEL, Page::new(&settings), show).await
}

async fn show(page_of_deployment: &Page, call: Call) -> Result<Reply, Problem> {
    let page = call.path("page");
    let nothing = || Problem::no_route(call.whole_path());
    match page.strip_prefix("assets/") {
        Some(path) => files::asset(path).ok_or_else(nothing)?.as_asset(call.headers()),
        // As everywhere in the service, an address has no trailing slash.
        None if page.ends_with('/') => Err(nothing()),
        None => page_of_deployment.reply(call.headers()),
    }
}
