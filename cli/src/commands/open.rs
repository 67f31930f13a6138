//! `waypost open`: opens the panel through a new link.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use crate::{
    failure::Failure,
    machine,
    output::{Output, visible_line},
    service::{Call, Service, segment},
};

const EXAMPLES: &str = "\
Examples:
  waypost open
  waypost open dlv_01m7w5gmev32p3wwt3y0b8j32h
  waypost open --print

The command creates a link that can be opened once, within ten minutes. The session lasts an hour and has your
application's rights, except the right to publish. Without a browser, it prints the link.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Open {
    /// A delivery or a webhook to show. Defaults to the first page.
    #[arg(value_name = "ID", value_parser = segment)]
    id: Option<String>,
    /// Prints the link instead of opening it.
    #[arg(long)]
    print: bool,
}

#[derive(Deserialize)]
struct Link {
    url: String,
}

impl Open {
    /// Opens the panel. With JSON output, prints the service's exact response without opening the panel.
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let body = match self.id.as_deref() {
            Some(id) => json!({ "place": page_of(id)?, "name": "waypost open" }),
            None => json!({ "name": "waypost open" }),
        };
        let text = service.text(Call::post(&["panel", "link"], body)).await?;
        if output.json {
            return Ok(output.raw(text.trim_end())?);
        }
        let Link { url } = service.read(&text)?;
        let is_address = url.starts_with("https://") || url.starts_with("http://");
        if !self.print && is_address && machine::open_in_browser(&url).await {
            output.remark("The panel is open in your browser.");
            return Ok(());
        }
        Ok(output.text(visible_line(&url))?)
    }
}

/// The panel's page for an object.
fn page_of(id: &str) -> Result<String, Failure> {
    let folder = match id.split_once('_') {
        Some(("dlv", _)) => "deliveries",
        Some(("whk", _)) => "webhooks",
        _ => {
            return Err(Failure::Usage(format!(
                "`{id}` is neither a delivery (dlv_…) nor a webhook (whk_…): leave it out for the first page"
            )));
        }
    };
    Ok(format!("/panel/{folder}/{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_and_webhooks_have_a_page() {
        assert_eq!(page_of("dlv_1").ok().as_deref(), Some("/panel/deliveries/dlv_1"));
        assert_eq!(page_of("whk_1").ok().as_deref(), Some("/panel/webhooks/whk_1"));
        assert!(page_of("evt_1").is_err() && page_of("B-1001").is_err());
    }
}
