//! The first attempt of a test event.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::{
    machine,
    output::visible_line,
    service::{Call, Service},
};

/// How long to wait for an attempt, and the pause between two polls.
pub const WAIT: Duration = Duration::from_secs(5);
pub const PAUSE: Duration = Duration::from_millis(250);

/// A first attempt's result, or why there is none.
pub struct FirstAttempt {
    /// The delivery's status. `None` if it cannot be read: the application may lack the right.
    pub status: Option<String>,
    /// The result for people.
    pub sentence: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    status: String,
    waiting_for: Option<String>,
    #[serde(default)]
    attempts: Vec<Attempt>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    http_status: Option<u64>,
    error: Option<String>,
}

/// Waits a few seconds for the first attempt of a delivery.
pub async fn first_attempt(service: &Service, webhook: &str, delivery: &str) -> FirstAttempt {
    let after = delivery_after_attempt(service, delivery).await;
    let is_read = match &after {
        Some(after) if after.is_unread() => is_read(service, webhook).await,
        _ => false,
    };
    FirstAttempt { sentence: sentence(delivery, after.as_ref(), is_read), status: after.map(|after| after.status) }
}

async fn delivery_after_attempt(service: &Service, delivery: &str) -> Option<Delivery> {
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
    /// Whether the delivery is waiting for a reader of its webhook's feed.
    fn is_unread(&self) -> bool {
        self.status == "pending" && self.waiting_for.as_deref() == Some("reader")
    }

    /// Why the last attempt failed.
    fn failure(&self) -> Option<String> {
        let Attempt { http_status, error } = self.attempts.last()?;
        let error = || error.as_deref().map(|error| visible_line(error.trim_end_matches('.')));
        http_status.map(|status| format!("HTTP {status}")).or_else(error)
    }
}

/// Whether a reader has read the webhook's feed, as far as is known.
async fn is_read(service: &Service, webhook: &str) -> bool {
    let shown: Result<Value, _> = service.call(Call::get(&["webhook", webhook])).await;
    shown.is_ok_and(|webhook| webhook["lastReadDate"].is_string())
}

/// The sentence about the first attempt. `is_read` says whether a reader has read the webhook's feed.
fn sentence(id: &str, after: Option<&Delivery>, is_read: bool) -> String {
    let id = visible_line(id);
    let Some(delivery) = after else {
        return format!("`waypost show {id}` shows its attempts.");
    };
    match delivery.status.as_str() {
        "pending" if delivery.is_unread() && is_read => format!(
            "The delivery is waiting in this webhook's feed. If the reader is busy, it gets the delivery next; \
             `waypost show {id}` shows the result. If the reader has stopped, run `waypost listen` again."
        ),
        "pending" if delivery.is_unread() => {
            "Nothing has read this webhook's feed yet: run `waypost listen`, or start your reader.".to_owned()
        }
        "pending" => format!("The first attempt has not finished yet: `waypost show {id}` shows it."),
        "delivered" => "It was delivered.".to_owned(),
        status => {
            let status = visible_line(status);
            match delivery.failure() {
                Some(failure) => {
                    format!(
                        "The attempt failed: {failure}. The delivery is `{status}`; `waypost show {id}` shows more."
                    )
                }
                None => format!("Its status is `{status}`; `waypost show {id}` shows the reason."),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unread_delivery_is_not_blamed_on_a_reader_that_is_busy() {
        let waiting_for = Some("reader".to_owned());
        let unread = Delivery { status: "pending".to_owned(), waiting_for, attempts: Vec::new() };
        assert!(sentence("dlv_1", Some(&unread), false).starts_with("Nothing has read this webhook"));
        assert!(sentence("dlv_1", Some(&unread), true).contains("If the reader is busy"));
        let claimed = Delivery { waiting_for: None, ..unread };
        assert!(sentence("dlv_1", Some(&claimed), true).starts_with("The first attempt has not finished yet"));
    }

    #[test]
    fn an_attempt_that_failed_is_shown_with_its_reason() {
        let failed = |attempts: &str| {
            let delivery = format!(r#"{{"status":"retrying","attempts":[{attempts}]}}"#);
            sentence("dlv_1", Some(&serde_json::from_str(&delivery).expect("a delivery")), false)
        };
        let refused = failed(r#"{"httpStatus":null,"error":"connect: the endpoint refused the connection"}"#);
        let expected = "The attempt failed: connect: the endpoint refused the connection. The delivery is `retrying`; \
                        `waypost show dlv_1` shows more.";
        assert_eq!(refused, expected);
        assert!(failed(r#"{"httpStatus":500}"#).starts_with("The attempt failed: HTTP 500. The delivery"));
        assert!(failed("").starts_with("Its status is `retrying`; "));
    }
}
