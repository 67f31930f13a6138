//! `waypost trigger`: sends a test event with its type's sample, or with the caller's data.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{
    event_data::{Warning, event_data, warning_lines},
    first_attempt::{FirstAttempt, first_attempt},
    listen::webhook_name,
    types::list_types,
    webhooks::{NamedWebhook, named_webhooks},
};
use crate::{
    failure::Failure,
    output::{Output, visible_line},
    service::{Call, Service, segment},
};

const EXAMPLES: &str = "\
Examples:
  waypost trigger --list
  waypost trigger booking.created
  waypost trigger booking.cancelled --webhook whk_01m74zy5eva3kj3s4w04zg1hhc
  waypost trigger booking.created --data @booking.json
  waypost trigger booking.created --data '{\"bookingIdentifier\": \"B-1001\"}'

Receivers must not act on test events, whose bodies have the member `test`. The service checks your data against the
type's schema, as for published events; `webhook.test` takes no data. The command waits a few seconds for the first
attempt and prints its result; the exit code is 0 even if the attempt failed.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Trigger {
    /// The event type, such as booking.created.
    #[arg(value_name = "TYPE", value_parser = segment, required_unless_present = "list")]
    kind: Option<String>,
    /// The webhook. Defaults to the one from the latest `waypost listen` on this machine, or to the only webhook.
    #[arg(long, value_name = "ID", value_parser = segment)]
    webhook: Option<String>,
    /// Your data instead of the sample, sent unchanged: a JSON object, `@FILE` for the content of a file, or `-` for
    /// standard input.
    #[arg(long, value_name = "DATA")]
    data: Option<String>,
    /// Lists the types, as `waypost types` does, and sends nothing.
    #[arg(long, conflicts_with_all = ["kind", "webhook", "data"])]
    list: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
}

impl Trigger {
    pub async fn run(self, service: &Service, output: Output) -> Result<(), Failure> {
        let Some(kind) = self.kind else {
            return list_types(service, "", output).await;
        };
        let data = self.data.as_deref().map(event_data).transpose()?;
        // Check the type first: an unknown one must be corrected even if there is no webhook.
        match service.text(Call::get(&["webhook", "event", "type", &kind])).await {
            Err(failure) if !failure.is_of_kind("insufficient-scope") => return Err(failure),
            _ => {}
        }
        let (id, name) = match self.webhook {
            Some(id) => (id, None),
            None => {
                let NamedWebhook { id, name } = chosen(named_webhooks(service).await?, &webhook_name())?;
                (id, Some(name))
            }
        };
        let body = Body { kind: &kind, data: data.as_deref() };
        let sent: Value = service.call(Call::post(&["webhook", &id, "test"], &body)).await?;
        let delivery = sent["deliveryIdentifier"].as_str().unwrap_or_default();
        let to = name.map_or_else(|| id.clone(), |name| format!("{id} ({})", visible_line(&name)));
        let FirstAttempt { status, sentence } = first_attempt(service, &id, delivery).await;
        let warnings = Vec::<Warning>::deserialize(&sent["warnings"]).unwrap_or_default();
        let content = if data.is_some() { "your data as" } else { "a sample of" };
        let text = format!(
            "Sent {content} {} to {to}: {}.{}\n{sentence}",
            visible_line(&kind),
            visible_line(delivery),
            warning_lines(&warnings)
        );
        let mut json = json!({
            "deliveryIdentifier": delivery, "webhookIdentifier": id, "type": kind, "status": status,
        });
        if let Some(warnings) = sent.get("warnings") {
            json["warnings"] = warnings.clone();
        }
        Ok(output.write(json, text)?)
    }
}

/// The webhook of the latest `listen` with this name, or the only one.
fn chosen(mut webhooks: Vec<NamedWebhook>, listening: &str) -> Result<NamedWebhook, Failure> {
    // Identifiers sort by time.
    webhooks.sort_by(|one, other| one.id.cmp(&other.id));
    let latest = webhooks.iter().rfind(|webhook| webhook.name == listening).cloned();
    if let Some(webhook) = latest {
        return Ok(webhook);
    }
    if webhooks.len() == 1 {
        return Ok(webhooks.remove(0));
    }
    if webhooks.is_empty() {
        return Err(Failure::Usage(
            "there is no webhook: run `waypost listen` in another terminal, or `waypost webhooks create`".to_owned(),
        ));
    }
    let names = webhooks.iter().map(|webhook| format!("  {}  {}", webhook.id, visible_line(&webhook.name)));
    let names = names.collect::<Vec<_>>().join("\n");
    Err(Failure::Usage(format!(
        "choose a webhook with --webhook, or run `waypost listen` in another terminal:\n{names}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhooks(names: &[(&str, &str)]) -> Vec<NamedWebhook> {
        names.iter().map(|(id, name)| NamedWebhook { id: (*id).to_owned(), name: (*name).to_owned() }).collect()
    }

    #[test]
    fn the_latest_listen_comes_before_other_webhooks() {
        let all = webhooks(&[("whk_2", "listening"), ("whk_9", "Booking sync"), ("whk_3", "listening")]);
        assert_eq!(chosen(all, "listening").expect("one").id, "whk_3");
    }

    #[test]
    fn the_only_webhook_needs_no_name_and_several_are_listed() {
        assert_eq!(chosen(webhooks(&[("whk_1", "Sync")]), "listening").expect("one").id, "whk_1");
        let failure = chosen(webhooks(&[("whk_1", "Sync"), ("whk_2", "Audit")]), "listening").expect_err("two");
        assert!(failure.to_string().contains("whk_1  Sync\n  whk_2  Audit"), "{failure}");
        let none = chosen(Vec::new(), "listening").expect_err("none");
        assert!(none.to_string().contains("waypost listen"), "{none}");
    }
}
