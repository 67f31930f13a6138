//! A delivery as a row of a table.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::{
    commands::webhooks::{NamedWebhook, named_webhooks},
    output::{colour_of, colour_of_answer, short_time},
    service::Service,
    table::{Cell, Column, Fit},
};

pub const COLUMNS: [Column; 8] = [
    Column { title: "CREATED", fit: Fit::Optional },
    Column { title: "STATUS", fit: Fit::Whole },
    Column { title: "TYPE", fit: Fit::Cut },
    Column { title: "SUBJECT", fit: Fit::Cut },
    Column { title: "WEBHOOK", fit: Fit::Cut },
    Column { title: "ATTEMPTS", fit: Fit::Optional },
    Column { title: "LAST", fit: Fit::Cut },
    Column { title: "ID", fit: Fit::Whole },
];
/// The delivery members that the table shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub id: String,
    pub event_identifier: String,
    #[serde(rename = "type")]
    kind: String,
    subject: Option<String>,
    #[serde(default)]
    test: bool,
    webhook_identifier: String,
    pub status: String,
    pub attempt_count: u64,
    last_http_status: Option<u64>,
    last_error_code: Option<String>,
    pub created_date: Timestamp,
    pub last_update: Timestamp,
}

/// Webhook names by identifier.
#[derive(Default)]
pub struct Names(HashMap<String, String>);

impl Listed {
    /// Whether further attempts may follow.
    pub fn is_open(&self) -> bool {
        ["pending", "retrying"].contains(&self.status.as_str())
    }
}

impl Names {
    /// Reads the names. If that fails, the list is shown without them.
    pub async fn of(service: &Service) -> Self {
        let webhooks = named_webhooks(service).await.unwrap_or_default();
        Self(webhooks.into_iter().map(|NamedWebhook { id, name }| (id, name)).collect())
    }

    /// Reads the names again if they lack a delivery's webhook.
    pub async fn complete(&mut self, service: &Service, mut deliveries: impl Iterator<Item = &Listed>) {
        if deliveries.any(|delivery| !self.0.contains_key(&delivery.webhook_identifier)) {
            self.0.extend(Self::of(service).await.0);
        }
    }

    /// A webhook's name, or else its identifier.
    pub fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.0.get(id).map_or(id, String::as_str)
    }
}

pub fn row(delivery: &Listed, names: &Names) -> [Cell; 8] {
    let last = match (delivery.last_http_status, &delivery.last_error_code) {
        (Some(status), _) => Cell::new(&status.to_string(), colour_of_answer(Some(status))),
        (None, Some(error)) => Cell::new(error, colour_of_answer(None)),
        // Feed readers report no status.
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
        Cell::dim(&short_time(&delivery.created_date.to_string())),
        Cell::new(&delivery.status, colour_of(&delivery.status)),
        Cell::plain(&delivery.kind),
        subject,
        Cell::plain(names.name(&delivery.webhook_identifier)),
        Cell::plain(&delivery.attempt_count.to_string()),
        last,
        Cell::plain(&delivery.id),
    ]
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::table::table;

    const ID: &str = "dlv_01m7w5gmev32p3wwt3y0b8j32h";
    const WEBHOOK: &str = "whk_01m74zy5eva3kj3s4w04zg1hhc";

    fn shown(names: &[(&str, &str)], width: Option<usize>) -> Vec<String> {
        let delivery = |test: bool, status: &str| {
            let listed = format!(
                r#"{{"id":"{ID}","type":"booking.cancelled","subject":"B-20417","status":"{status}","attemptCount":10,
                "webhookIdentifier":"{WEBHOOK}","lastErrorCode":"unconfirmed","createdDate":"2026-11-20T09:45:00.123Z",
                "lastUpdate":"2026-11-20T09:45:10.499Z","eventIdentifier":"evt_1","test":{test}}}"#
            );
            serde_json::from_str::<Listed>(&listed).expect("a delivery")
        };
        let names = Names(names.iter().map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect());
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
