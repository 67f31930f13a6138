//! `waypost trigger`: sends a test event with the sample of a type.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::listen::webhook_name;
use crate::{
    failure::Failure,
    machine,
    output::{Output, visible_line},
    service::{Call, Service, segment},
};

const EXAMPLES: &str = "\
Examples:
  waypost trigger booking.created
  waypost trigger booking.cancelled --webhook whk_01m74zy5eva3kj3s4w04zg1hhc

The receiver must not act on a test event: its body has the member `test`. The command waits a few seconds for the first
attempt and prints its result; the exit code is 0 even if that attempt failed.";

/// How long to wait for the first attempt, and the pause between two polls.
const WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Trigger {
    /// The event type, such as booking.created.
    #[arg(value_name = "TYPE", value_parser = segment)]
    kind: String,
    /// The webhook. Defaults to that of the latest `waypost listen` on this machine, or to the only webhook.
    #[arg(long, value_name = "ID", value_parser = segment)]
    webhook: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Webhook {
    id: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    status: String,
    waiting_for: Option<String>,
}

impl Trigger {
    pub async fn run(self, output: Output) -> Result<(), Failure> {
        let service = Service::of_login().await?;
        // The type first: an unknown one is the fault to correct, even if there is no webhook.
        match service.text(Call::get(&["webhook", "event", "type", &self.kind])).await {
            Err(failure) if !failure.is_of_kind("insufficient-scope") => return Err(failure),
            _ => {}
        }
        let (id, name) = match self.webhook {
            Some(id) => (id, None),
            None => {
                let webhooks = service.call(Call::get(&["webhook", "list"])).await?;
                let Webhook { id, name } = chosen(webhooks, &webhook_name())?;
                (id, Some(name))
            }
        };
        let sent: Value = service.call(Call::post(&["webhook", &id, "test"], json!({ "type": self.kind }))).await?;
        let delivery = sent["deliveryIdentifier"].as_str().unwrap_or_default();
        let to = name.map_or_else(|| id.clone(), |name| format!("{id} ({})", visible_line(&name)));
        let after = after_first_attempt(&service, delivery).await;
        let is_read = match &after {
            Some(after) if after.is_unread() => is_read(&service, &id).await,
            _ => false,
        };
        let text = format!(
            "Sent a sample of {} to {to}: {}.\n{}",
            visible_line(&self.kind),
            visible_line(delivery),
            result(delivery, after.as_ref(), is_read)
        );
        let json = json!({
            "deliveryIdentifier": delivery, "webhookIdentifier": id, "type": self.kind, "status": after.map(|after| after.status),
        });
        Ok(output.write(json, text)?)
    }
}

/// The delivery after its first attempt, or after the wait. `None` if it cannot be read, since the application may lack
/// that right.
async fn after_first_attempt(service: &Service, delivery: &str) -> Option<Delivery> {
    let begun = Instant::now();
    loop {
        let current: Delivery = service.call(Call::get(&["webhook", "delivery", delivery])).await.ok()?;
        if current.status != "pending" || begun.elapsed() > WAIT {
            return Some(current);
        }
        machine::pause(PAUSE).await;
    }
}

impl Delivery {
    /// Whether it waits for a reader of its webhook's feed.
    fn is_unread(&self) -> bool {
        self.status == "pending" && self.waiting_for.as_deref() == Some("reader")
    }
}

/// Whether a reader has read the feed of the webhook, as far as known.
async fn is_read(service: &Service, webhook: &str) -> bool {
    let shown: Result<Value, _> = service.call(Call::get(&["webhook", webhook])).await;
    shown.is_ok_and(|webhook| webhook["lastReadDate"].is_string())
}

/// The sentence about the first attempt. `is_read` says whether a reader has read the feed of the webhook.
fn result(id: &str, after: Option<&Delivery>, is_read: bool) -> String {
    let id = visible_line(id);
    let Some(delivery) = after else {
        return format!("`waypost show {id}` shows its attempts.");
    };
    match delivery.status.as_str() {
        "pending" if delivery.is_unread() && is_read => format!(
            "The delivery waits in the feed of this webhook. If its reader is busy, the reader gets the delivery next; \
             `waypost show {id}` shows the result. If the reader has stopped, run `waypost listen` again."
        ),
        "pending" if delivery.is_unread() => {
            "Nothing has read the feed of this webhook yet: run `waypost listen`, or start your reader.".to_owned()
        }
        "pending" => format!("The first attempt has not finished yet: `waypost show {id}` shows it."),
        "delivered" => "It was delivered.".to_owned(),
        status => format!("Its status is `{}`; `waypost show {id}` shows the reason.", visible_line(status)),
    }
}

/// The webhook of the latest `listen` with this name, or the only one.
fn chosen(mut webhooks: Vec<Webhook>, listening: &str) -> Result<Webhook, Failure> {
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
            "there is no webhook: run `waypost listen` in another terminal, or create one".to_owned(),
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

    fn webhooks(names: &[(&str, &str)]) -> Vec<Webhook> {
        names.iter().map(|(id, name)| Webhook { id: (*id).to_owned(), name: (*name).to_owned() }).collect()
    }

    #[test]
    fn an_unread_delivery_is_not_blamed_on_a_reader_that_is_busy() {
        let unread = Delivery { status: "pending".to_owned(), waiting_for: Some("reader".to_owned()) };
        assert!(result("dlv_1", Some(&unread), false).starts_with("Nothing has read the feed"));
        assert!(result("dlv_1", Some(&unread), true).contains("If its reader is busy"));
        let claimed = Delivery { waiting_for: None, ..unread };
        assert!(result("dlv_1", Some(&claimed), true).starts_with("The first attempt has not finished yet"));
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
