//! The server that the official conformance suite of the Model Context Protocol expects. It replaces `mcp`, and offers
//! the suite's tools, resources and prompts through the deployed gate and protocol code.

mod content;
mod prompts;
mod resources;
mod tools;

use function::{Service, StartError};
use functions_agents::{
    caller::Caller,
    protocol::{Refusal, Server, ToolResult, transport},
};
use gate::endpoints;
use serde_json::{Map, Value, json};

/// The tools, resources and prompts that the suite expects.
struct Fixtures {
    base_url: String,
}

fn main() -> Result<(), StartError> {
    function::run(serve())
}

async fn serve() -> Result<(), StartError> {
    let (service, ()) = Service::start().await?;
    let fixtures = Fixtures { base_url: service.settings().base_url.clone() };
    service.serve(endpoints::MCP, fixtures, transport::answer).await
}

impl Server for Fixtures {
    const INSTRUCTIONS: &'static str = "For the conformance suite alone.";

    fn info(&self) -> Value {
        json!({ "name": "fixtures", "version": env!("CARGO_PKG_VERSION") })
    }

    fn base_url(&self) -> &str {
        &self.base_url
    }

    async fn tools(&self, _: &Caller) -> Vec<Value> {
        tools::listed()
    }

    async fn call_tool(&self, _: Caller, name: &str, _: Map<String, Value>) -> Result<ToolResult, Refusal> {
        tools::called(name)
    }

    fn resources(&self, _: &Caller) -> Vec<Value> {
        resources::listed()
    }

    fn resource_templates(&self, _: &Caller) -> Vec<Value> {
        resources::templates()
    }

    async fn read_resource(&self, _: &Caller, uri: &str) -> Result<Value, Refusal> {
        resources::read(uri).ok_or(Refusal::Unknown)
    }

    fn prompts(&self) -> Vec<Value> {
        prompts::listed()
    }

    fn prompt(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value, Refusal> {
        prompts::said(name, arguments)
    }
}
