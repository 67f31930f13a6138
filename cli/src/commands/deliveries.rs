//! `waypost deliveries`: lists deliveries, in as many pages as the limit requires.

use std::collections::{HashMap, HashSet};

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::webhooks::{NamedWebhook, named_webhooks};
use crate::{
    failure::Failure,
    machine,
    output::{Output, colour_of, colour_of_answer, short_time},
    service::{Call, Service},
    table::{Cell, Column, Fit, table},
};

const EXAMPLES: &str = "\
Examples:
  waypost deliveries --failed
  waypost deliveries --subject B-20417
  waypost deliveries --failed --limit 500 --json | jq -r '.[].id' | xargs -n 1 waypost resend";

const COLUMNS: [Column; 8] = [
    Column { title: "CREATED", fit: Fit::Optional },
    Column { title: "STATUS", fit: Fit::Whole },
    Column { title: "TYPE", fit: Fit::Cut },
    Column { title: "SUBJECT", fit: Fit::Cut },
    Column { title: "WEBHOOK", fit: Fit::Cut },
    Column { title: "ATTEMPTS", fit: Fit::Optional },
    Column { title: "LAST", fit: Fit::Cut },
    Column { title: "ID", fit: Fit::Whole },
];
/// The maximum number of deliveries on a page.
const PAGE: u16 = 100;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Deliveries {
    /// Only deliveries with failed attempts, whether they are being retried or have failed permanently.
    #[arg(long)]
    failed: bool,
    /// Only deliveries of events with this subject, such as a booking number.
    #[arg(long)]
    subject: Option<String>,
    /// Only deliveries to this webhook.
    #[arg(long, value_name = "ID")]
    webhook: Option<String>,
    /// The maximum number of deliveries.
    #[arg(long, value_name = "NUMBER", default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..))]
    limit: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Identified {
    id: String,
}

/// The members of a delivery that the table shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    subject: Option<String>,
    #[serde(default)]
    test: bool,
    webhook_identifier: String,
    status: String,
    attempt_count: u64,
    last_http_status: Option<u64>,
    last_error_code: Option<String>,
    created_date: String,
}

impl Deliveries {
    pub async fn run(self, output: Output) -> Result<(), Failure> {
        let service = Service::of_login().await?;
        let found = self.pages(&service).await?;
        if output.json {
            return Ok(output.write(&found, "")?);
        }
        if found.is_empty() {
            output.remark(self.hint());
            return Ok(());
        }
        let names = names_of_webhooks(&service).await;
        let rows = found.iter().map(|delivery| service.read(delivery.get()).map(|listed| row(&listed, &names)));
        let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
        Ok(output.text(table(COLUMNS, &rows, machine::columns()))?)
    }

    /// The reason for an empty list, and the next step.
    fn hint(&self) -> &'static str {
        if self.failed || self.subject.is_some() || self.webhook.is_some() {
            "No delivery matches. Try fewer filters; `waypost webhooks` shows to which types each webhook subscribes."
        } else {
            "There is no delivery yet. `waypost webhooks` lists the webhooks; `waypost trigger TYPE` sends a test event."
        }
    }

    async fn pages(&self, service: &Service) -> Result<Vec<Box<RawValue>>, Failure> {
        let mut found = Vec::new();
        // A later page may repeat a delivery of the last minutes.
        let mut known = HashSet::new();
        let mut cursor: Option<String> = None;
        let mut has_begun_again = false;
        loop {
            let missing = usize::from(self.limit) - found.len();
            let mut query = vec![("limit", missing.min(PAGE.into()).to_string())];
            if self.failed {
                query.push(("status", "failed,retrying".to_owned()));
            }
            query.extend(self.subject.clone().map(|subject| ("subject", subject)));
            query.extend(self.webhook.clone().map(|webhook| ("webhookIdentifier", webhook)));
            query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let page = service.call(Call { query: &query, ..Call::get(&["webhook", "delivery", "list"]) }).await;
            let page: Page = match page {
                // The operator has replaced the keys of cursors.
                Err(Failure::Refused(problem)) if problem.kind == "invalid-cursor" && !has_begun_again => {
                    has_begun_again = true;
                    continue;
                }
                page => page?,
            };
            for delivery in page.items {
                let Identified { id } = service.read(delivery.get())?;
                if known.insert(id) {
                    found.push(delivery);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() || found.len() >= usize::from(self.limit) {
                return Ok(found);
            }
        }
    }
}

/// The names by identifier. A list without them is better than none.
async fn names_of_webhooks(service: &Service) -> HashMap<String, String> {
    let webhooks = named_webhooks(service).await.unwrap_or_default();
    webhooks.into_iter().map(|NamedWebhook { id, name }| (id, name)).collect()
}

fn row(delivery: &Listed, names: &HashMap<String, String>) -> [Cell; 8] {
    let last = match (delivery.last_http_status, &delivery.last_error_code) {
        (Some(status), _) => Cell::new(&status.to_string(), colour_of_answer(Some(status))),
        (None, Some(error)) => Cell::new(error, colour_of_answer(None)),
        // A reader of a feed reports no status.
        (None, None) if delivery.status == "delivered" => Cell::new("confirmed", colour_of(&delivery.status)),
        (None, None) => Cell::dim("-"),
    };
    // A test event has no subject.
    let subject = match &delivery.subject {
        _ if delivery.test => Cell::dim("(test)"),
        Some(subject) => Cell::plain(subject),
        None => Cell::dim("-"),
    };
    [
        Cell::dim(&short_time(&delivery.created_date)),
        Cell::new(&delivery.status, colour_of(&delivery.status)),
        Cell::plain(&delivery.kind),
        subject,
        Cell::plain(names.get(&delivery.webhook_identifier).unwrap_or(&delivery.webhook_identifier)),
        Cell::plain(&delivery.attempt_count.to_string()),
        last,
        Cell::plain(&delivery.id),
    ]
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    const ID: &str = "dlv_01m7w5gmev32p3wwt3y0b8j32h";
    const WEBHOOK: &str = "whk_01m74zy5eva3kj3s4w04zg1hhc";

    fn shown(names: &[(&str, &str)], width: Option<usize>) -> Vec<String> {
        let delivery = |test: bool, status: &str| {
            let listed = format!(
                r#"{{"id":"{ID}","type":"booking.cancelled","subject":"B-20417","status":"{status}","attemptCount":10,
                "webhookIdentifier":"{WEBHOOK}","lastErrorCode":"unconfirmed","createdDate":"2026-11-20T09:45:00.123Z","test":{test}}}"#
            );
            serde_json::from_str::<Listed>(&listed).expect("a delivery")
        };
        let names = names.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect();
        let rows = [delivery(false, "cancelled"), delivery(true, "failed")].map(|listed| row(&listed, &names));
        strip_str(&table(COLUMNS, &rows, width)).to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_delivery_is_listed_with_the_name_of_its_webhook_and_a_test_is_marked() {
        let lines = shown(&[(WEBHOOK, "Booking sync")], None);
        let first = format!(
            "2026-11-20 09:45:00Z  cancelled  booking.cancelled  B-20417  Booking sync  10        unconfirmed  {ID}"
        );
        assert_eq!(lines[1], first);
        assert!(lines[2].contains("  (test)   Booking sync  "), "{lines:?}");
        assert!(shown(&[], None)[1].contains(WEBHOOK));
    }

    #[test]
    fn a_narrow_list_fits_80_columns_with_complete_identifiers() {
        for line in shown(&[], Some(80)) {
            assert!(line.chars().count() <= 80 && (line.ends_with(ID) || line.ends_with("ID")), "{line}");
        }
    }
}
