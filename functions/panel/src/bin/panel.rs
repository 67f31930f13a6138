//! GET /panel and every page below it: the one page, which reads its address itself. Below /panel/assets are its files.

use function::{Service, StartError};
use functions_panel::{files, page_settings::PageSettings};
use gate::{Call, Reply, endpoints};
use problem::Problem;

fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, settings) = Service::start().await?;
    service.serve(endpoints::PANEL, settings, show).await
}

async fn show(settings: &PageSettings, call: Call) -> Result<Reply, Problem> {
    match call.path("page").strip_prefix("assets/") {
        Some(path) => {
            let file = files::asset(path).ok_or_else(|| Problem::no_route(call.whole_path()))?;
            file.as_asset(call.headers())
        }
        None => files::page(*settings).as_page(call.headers()),
    }
}
