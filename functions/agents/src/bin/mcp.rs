//! POST /mcp: the Model Context Protocol, for AI agents.

use function::{Service, StartError};
use functions_agents::{protocol::transport, use_cases::UseCases};
use gate::endpoints;

pub(crate) fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, settings) = Service::start().await?;
    service.serve(endpoints::MCP, UseCases::new(&service, settings), transport::answer).await
}
