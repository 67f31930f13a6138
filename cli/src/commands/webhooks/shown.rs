//! A webhook for people: a row of the list, and all members.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::waiting::Waiting;
use crate::{
    commands::settings::PublicKey,
    output::{colour_of, short_time, visible_line, with_short_times},
    table::{Cell, Column, Fit, members},
};

pub const COLUMNS: [Column; 4] = [
    Column { title: "NAME", fit: Fit::Cut },
    Column { title: "ID", fit: Fit::Whole },
    Column { title: "STATE", fit: Fit::Whole },
    Column { title: "ADDRESS", fit: Fit::Cut },
];

/// The webhook members that are shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub id: String,
    name: String,
    pub delivery_state: String,
    /// Absent if the webhook has a feed.
    event_url: Option<String>,
    event_list: Vec<String>,
    event_filter: Option<Box<RawValue>>,
    order: String,
    payload: String,
    signature: String,
    max_attempts_per_second: Option<u64>,
    /// Absent if the webhook has a feed.
    retries: Option<String>,
    /// Absent if the webhook has a feed.
    timeout_seconds: Option<u64>,
    headers: BTreeMap<String, String>,
    metadata: Option<Box<RawValue>>,
    created_date: String,
    last_read_date: Option<String>,
    failing_since: Option<String>,
    failures_in_row: Option<u64>,
    last_http_status: Option<u64>,
    last_error_detail: Option<String>,
    paused_by: Option<String>,
    paused_since: Option<String>,
    paused_until: Option<String>,
    disabled_date: Option<String>,
    disabled_reason: Option<String>,
    previous_secret_expires_date: Option<String>,
    #[serde(default)]
    public_keys: Vec<PublicKey>,
}

impl Webhook {
    fn address(&self) -> Cell {
        self.event_url.as_deref().map_or_else(|| Cell::dim("feed"), Cell::plain)
    }

    fn state(&self) -> Cell {
        Cell::new(&self.delivery_state, colour_of(&self.delivery_state))
    }

    /// The state in a list. The list marks the owner's pauses, since these do not end when the endpoint responds.
    fn listed_state(&self) -> Cell {
        let is_by_owner = self.delivery_state == "paused" && self.paused_by.as_deref() == Some("owner");
        let state = if is_by_owner { "paused by its owner" } else { &self.delivery_state };
        Cell::new(state, colour_of(&self.delivery_state))
    }

    /// Who paused the webhook, since when and until when.
    fn paused(&self) -> Option<Cell> {
        let by = match self.paused_by.as_deref()? {
            "owner" => "its owner",
            "service" => "the service",
            other => other,
        };
        let since = self.paused_since.as_deref().map(|since| format!(" since {}", short_time(since)));
        let until = match (self.paused_by.as_deref(), self.paused_until.as_deref()) {
            // The pause ends only if the endpoint responds to this check.
            (Some("service"), Some(until)) => {
                format!(" until the endpoint responds; the next check is at {}", short_time(until))
            }
            (_, Some(until)) => format!(" until {}", short_time(until)),
            (_, None) => ", until you resume it".to_owned(),
        };
        Some(Cell::plain(&format!("by {by}{}{until}", since.unwrap_or_default())))
    }

    /// The end of its pause, after "until".
    pub fn pause_end(&self) -> String {
        self.paused_until.as_deref().map_or_else(|| "you resume it".to_owned(), short_time)
    }

    /// The failures since the last success, with the reason for the last one.
    fn failures(&self) -> Option<Cell> {
        let since = short_time(self.failing_since.as_deref()?);
        let count = self.failures_in_row.unwrap_or_default();
        let status = self.last_http_status.map(|status| format!("HTTP {status}"));
        let reason = self.last_error_detail.clone().or(status).map(|reason| format!(": {reason}"));
        Some(Cell::plain(&format!("{count} in a row since {since}{}", reason.unwrap_or_default())))
    }

    fn disabled(&self) -> Option<Cell> {
        let since = short_time(self.disabled_date.as_deref()?);
        let reason = self.disabled_reason.as_deref().map(|reason| format!(": {}", with_short_times(reason)));
        Some(Cell::plain(&format!("since {since}{}", reason.unwrap_or_default())))
    }

    /// The next step, if the webhook does not get its events in this state.
    fn next_step(&self) -> Option<String> {
        let id = visible_line(&self.id);
        match self.delivery_state.as_str() {
            "failing" => Some(format!("`waypost deliveries --failed --webhook {id}` lists its failed deliveries.")),
            "paused" => Some(format!("When the endpoint is ready, `waypost webhooks resume {id}` ends the pause.")),
            "disabled" => Some(format!("`waypost webhooks change {id} --enable` enables it.")),
            _ => None,
        }
    }
}

pub fn row(webhook: &Webhook) -> [Cell; 4] {
    [Cell::plain(&webhook.name), Cell::plain(&webhook.id), webhook.listed_state(), webhook.address()]
}

/// All members, with the number of waiting deliveries if it was read.
pub fn shown(webhook: &Webhook, waiting: Option<&Waiting>) -> String {
    let types = if webhook.event_list.is_empty() { "every type".to_owned() } else { webhook.event_list.join(", ") };
    let headers = webhook.headers.keys().cloned().collect::<Vec<_>>().join(", ");
    let keys = webhook.public_keys.iter().map(|public| public.key.clone()).collect::<Vec<_>>().join(", ");
    let unless_empty = |text: &str| (!text.is_empty()).then(|| Cell::plain(text));
    let metadata = webhook.metadata.as_deref().map(RawValue::get).filter(|metadata| *metadata != "{}");
    let date = |date: &Option<String>| date.as_deref().map(|date| Cell::plain(&short_time(date)));
    let rate = webhook.max_attempts_per_second.map(|rate| Cell::plain(&format!("{rate} attempts per second")));
    let timeout = webhook.timeout_seconds.map(|seconds| Cell::plain(&format!("{seconds} s")));
    let members = members([
        ("name", Some(Cell::plain(&webhook.name))),
        ("webhook", Some(Cell::plain(&webhook.id))),
        ("state", Some(webhook.state())),
        ("address", Some(webhook.address())),
        ("types", Some(Cell::plain(&types))),
        ("filter", webhook.event_filter.as_deref().map(|filter| Cell::plain(filter.get()))),
        ("order", Some(Cell::plain(&webhook.order))),
        ("payload", Some(Cell::plain(&webhook.payload))),
        ("limit", rate),
        ("timeout", timeout),
        ("retries", webhook.retries.as_deref().map(Cell::plain)),
        ("headers", unless_empty(&headers)),
        ("metadata", metadata.map(Cell::plain)),
        ("signature", Some(Cell::plain(&webhook.signature))),
        ("public keys", unless_empty(&keys)),
        ("old secret until", date(&webhook.previous_secret_expires_date)),
        ("created", Some(Cell::plain(&short_time(&webhook.created_date)))),
        ("feed read", date(&webhook.last_read_date)),
        ("failures", webhook.failures()),
        ("paused", webhook.paused()),
        ("disabled", webhook.disabled()),
        ("waiting", waiting.map(|waiting| Cell::plain(&waiting.text()))),
    ]);
    match webhook.next_step() {
        Some(next) => format!("{members}\n\n{next}"),
        None => members,
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::table::table;

    fn webhook(further: &str) -> Webhook {
        let webhook = format!(
            r#"{{"id":"whk_01m74zy5eva3kj3s4w04zg1hhc","name":"Synchronisation of the bookings of all properties",
            "eventList":[],"order":"none","payload":"full","signature":"hmac","headers":{{"X-Tenant":"***"}},
            "createdDate":"2026-11-11T09:45:00.123Z"{further}}}"#
        );
        serde_json::from_str(&webhook).expect("a webhook")
    }

    #[test]
    fn the_list_of_webhooks_fits_80_columns_with_complete_identifiers() {
        let push =
            webhook(r#","deliveryState":"disabled","eventUrl":"https://hooks.example.com/a/long/path/of/an/endpoint""#);
        let pull = webhook(r#","deliveryState":"active""#);
        let shown = strip_str(&table(COLUMNS, &[row(&push), row(&pull)], Some(80))).to_string();
        for line in shown.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(
            shown.contains("  whk_01m74zy5eva3kj3s4w04zg1hhc  disabled  https://hooks.e") && shown.ends_with("feed"),
            "{shown}"
        );
    }

    #[test]
    fn a_webhook_that_fails_is_shown_with_the_reason_and_the_next_step() {
        let paused = webhook(
            r#","deliveryState":"paused","eventFilter":{"total":[1.10]},"failingSince":"2026-11-19T16:58:20.114Z",
            "failuresInRow":23,"timeoutSeconds":5,"retries":"short","metadata":{"system":"pms-7"},
            "lastErrorDetail":"the endpoint refused\u001b","pausedBy":"service","pausedUntil":"2026-11-20T09:50:00.000Z""#,
        );
        let text = strip_str(&shown(&paused, None)).to_string();
        for line in [
            "state      paused",
            "address    feed",
            "types      every type",
            r#"filter     {"total":[1.10]}"#,
            "timeout    5 s",
            "retries    short",
            "headers    X-Tenant",
            r#"metadata   {"system":"pms-7"}"#,
            "failures   23 in a row since 2026-11-19 16:58:20Z: the endpoint refused\u{fffd}",
            "paused     by the service until the endpoint responds; the next check is at 2026-11-20 09:50:00Z",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line:?} in {text}");
        }
        assert!(text.ends_with("`waypost webhooks resume whk_01m74zy5eva3kj3s4w04zg1hhc` ends the pause."), "{text}");
    }

    #[test]
    fn a_disabled_webhook_is_shown_with_all_times_in_one_form() {
        let disabled = webhook(
            r#","deliveryState":"disabled","disabledDate":"2026-11-20T09:45:00.123Z",
            "disabledReason":"Every attempt has failed since 2026-11-15T09:44:00.463Z.""#,
        );
        let text = strip_str(&shown(&disabled, None)).to_string();
        let line = "since 2026-11-20 09:45:00Z: Every attempt has failed since 2026-11-15 09:44:00Z.";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_pause_by_the_owner_is_marked_in_lists_and_shown_with_its_times() {
        let paused = r#","deliveryState":"paused","eventUrl":"https://hooks.example.com/waypost","metadata":{},
            "pausedBy":"owner","pausedSince":"2026-11-20T09:45:00.123Z""#;
        let open = webhook(paused);
        let listed = strip_str(&table(COLUMNS, &[row(&open)], Some(80))).to_string();
        assert!(listed.contains("  paused by its owner  https://"), "{listed}");
        assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
        let text = strip_str(&shown(&open, None)).to_string();
        assert!(text.contains("by its owner since 2026-11-20 09:45:00Z, until you resume it"), "{text}");
        assert!(!text.contains("metadata"), "{text}");
        let ending = webhook(&format!(r#"{paused},"pausedUntil":"2026-11-21T06:00:00.000Z""#));
        let text = strip_str(&shown(&ending, None)).to_string();
        assert!(text.contains("by its owner since 2026-11-20 09:45:00Z until 2026-11-21 06:00:00Z"), "{text}");
    }
}
