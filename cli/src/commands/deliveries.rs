//! `waypost deliveries`: lists deliveries, in as many pages as the limit requires.

use std::collections::HashSet;

use anstyle::Style;
use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    failure::Failure,
    output::{BOLD, DIM, Output, colour_of, colour_of_answer, short_time, table, visible_line},
    service::{Call, Service},
};

const EXAMPLES: &str = "\
Examples:
  waypost deliveries --failed
  waypost deliveries --subject B-20417
  waypost deliveries --failed --limit 500 --json | jq -r '.[].id' | xargs -n 1 waypost resend";

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
            output.remark("No delivery matches.");
            return Ok(());
        }
        let rows = found.iter().map(|delivery| serde_json::from_str(delivery.get()).map(|listed| row(&listed)));
        let rows: Vec<_> = rows.collect::<Result<_, _>>().map_err(|_| unexpected(&service))?;
        let titles = ["CREATED", "STATUS", "TYPE", "SUBJECT", "ATTEMPTS", "LAST", "ID"];
        let titles = titles.map(|title| (title.to_owned(), BOLD)).into();
        Ok(output.text(table(&[vec![titles], rows].concat()))?)
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
                let Identified { id } = serde_json::from_str(delivery.get()).map_err(|_| unexpected(service))?;
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

fn row(delivery: &Listed) -> Vec<(String, Style)> {
    let last = match (delivery.last_http_status, &delivery.last_error_code) {
        (Some(status), _) => (status.to_string(), colour_of_answer(Some(status))),
        (None, Some(error)) => (visible_line(error), colour_of_answer(None)),
        // A reader of a feed reports no status.
        (None, None) if delivery.status == "delivered" => ("confirmed".to_owned(), colour_of(&delivery.status)),
        (None, None) => ("-".to_owned(), DIM),
    };
    let plain = |text: &str| (visible_line(text), Style::new());
    vec![
        (short_time(&delivery.created_date), DIM),
        (visible_line(&delivery.status), colour_of(&delivery.status)),
        plain(&delivery.kind),
        plain(delivery.subject.as_deref().unwrap_or("-")),
        plain(&delivery.attempt_count.to_string()),
        last,
        plain(&delivery.id),
    ]
}

fn unexpected(service: &Service) -> Failure {
    Failure::Unexpected { address: service.login.address.clone(), status: 200 }
}
