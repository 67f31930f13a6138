//! A webhook's state: whether it receives events, and when its deliveries are sent.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::{
    output::{short_time, visible_line},
    service::{Call, Service},
};

/// How long before a webhook's first failure a recovery begins: the delivery was created before its attempt failed.
const BEFORE_FAILURE: SignedDuration = SignedDuration::from_mins(5);

/// The webhook members that describe its state.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookState {
    id: String,
    delivery_state: String,
    /// The types and groups; empty for every type.
    event_list: Vec<String>,
    paused_by: Option<String>,
    paused_until: Option<String>,
    failing_since: Option<Timestamp>,
    disabled_date: Option<Timestamp>,
}

impl WebhookState {
    /// Reads the state. `None` if that fails: the command's result is then shown without it.
    pub async fn read(service: &Service, id: &str) -> Option<Self> {
        service.call(Call::get(&["webhook", id])).await.ok()
    }

    pub fn is_paused(&self) -> bool {
        self.delivery_state == "paused"
    }

    pub fn is_paused_by_owner(&self) -> bool {
        self.is_paused() && self.paused_by.as_deref() == Some("owner")
    }

    /// When the waiting deliveries are sent, in a sentence; `None` if the webhook is not paused.
    pub fn pause_note(&self) -> Option<String> {
        if !self.is_paused() {
            return None;
        }
        let resume = format!("`waypost webhooks resume {}`", visible_line(&self.id));
        let end = self.paused_until.as_deref().map(|until| visible_line(&short_time(until)));
        Some(match (self.is_paused_by_owner(), end) {
            (true, None) => {
                format!("The webhook is paused until you resume it: {resume} sends its waiting deliveries.")
            }
            (true, Some(end)) => {
                format!("The webhook is paused until {end}: {resume} sends its waiting deliveries at once.")
            }
            (false, end) => {
                let at = end.map(|end| format!(" at {end}")).unwrap_or_default();
                format!(
                    "The service paused the webhook. It checks the endpoint{at}, and sends the waiting deliveries once the \
                     endpoint responds; {resume} sends them at once."
                )
            }
        })
    }

    /// Whether the webhook receives at least one of these types and groups.
    pub fn receives_any(&self, types: &[String]) -> bool {
        let overlaps = |listed: &String| types.iter().any(|kind| overlap(listed, kind));
        self.event_list.is_empty() || self.event_list.iter().any(overlaps)
    }

    /// The types and groups that the webhook receives, as text.
    pub fn types(&self) -> String {
        visible_line(&self.event_list.join(", "))
    }

    /// The commands that deliver the events that a disabled webhook missed; `None` if it is not disabled, or if the
    /// service does not show since when.
    pub fn catch_up(&self) -> Option<String> {
        let disabled = self.disabled_date.filter(|_| self.delivery_state == "disabled")?;
        let failing = self.failing_since.map_or(disabled, |since| since.min(disabled));
        let from = failing.checked_sub(BEFORE_FAILURE).unwrap_or(failing);
        let id = visible_line(&self.id);
        Some(format!(
            "The webhook may have missed events while it was disabled, from {}. Next:\n  \
             waypost recover {id} --from {from:.3}\n  \
             waypost replay {id} --from {disabled:.3} --dry-run\n\
             `recover` sends failed and cancelled deliveries again. `replay` delivers the events without a delivery; with \
             --dry-run, it counts them. Deliveries that were already waiting when the webhook was disabled are older: \
             give `recover` an earlier --from.",
            short_time(&disabled.to_string())
        ))
    }
}

/// Whether a type belongs to both of two types or groups.
fn overlap(one: &str, other: &str) -> bool {
    match (one.strip_suffix('*'), other.strip_suffix('*')) {
        (Some(one), Some(other)) => one.starts_with(other) || other.starts_with(one),
        (Some(one), None) => other.starts_with(one),
        (None, Some(other)) => one.starts_with(other),
        (None, None) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(members: &str) -> WebhookState {
        let state = format!(
            r#"{{"id":"whk_1","deliveryState":"paused","eventList":["booking.*","payment.refunded"]{members}}}"#
        );
        serde_json::from_str(&state).expect("a webhook")
    }

    #[test]
    fn a_pause_is_explained_with_its_end_and_the_command_that_ends_it() {
        let until = r#","pausedUntil":"2026-11-21T06:00:00.000Z""#;
        for (members, expected) in [
            (
                r#","pausedBy":"owner""#.to_owned(),
                "The webhook is paused until you resume it: `waypost webhooks resume whk_1` sends its waiting deliveries.",
            ),
            (
                format!(r#","pausedBy":"owner"{until}"#),
                "The webhook is paused until 2026-11-21 06:00:00Z: `waypost webhooks resume whk_1` sends its waiting \
                 deliveries at once.",
            ),
            (
                format!(r#","pausedBy":"service"{until}"#),
                "The service paused the webhook. It checks the endpoint at 2026-11-21 06:00:00Z, and sends the waiting \
                 deliveries once the endpoint responds; `waypost webhooks resume whk_1` sends them at once.",
            ),
        ] {
            assert_eq!(state(&members).pause_note().as_deref(), Some(expected));
        }
        assert!(state("").is_paused() && !state("").is_paused_by_owner());
    }

    #[test]
    fn a_webhook_receives_types_and_groups_that_overlap_with_its_own() {
        for (kind, received) in [
            ("booking.created", true),
            ("booking.*", true),
            ("payment.*", true),
            ("payment.created", false),
            ("inventory.*", false),
        ] {
            assert_eq!(state("").receives_any(&[kind.to_owned()]), received, "{kind}");
        }
        let every = WebhookState { event_list: Vec::new(), ..state("") };
        assert!(every.receives_any(&["inventory.*".to_owned()]));
    }

    #[test]
    fn a_webhook_catches_up_from_its_first_failure_and_from_its_end() {
        let disabled = |members: &str| WebhookState { delivery_state: "disabled".to_owned(), ..state(members) };
        let date = r#","disabledDate":"2026-11-20T09:45:00.123Z""#;
        let failing = format!(r#"{date},"failingSince":"2026-11-15T09:45:00Z""#);
        let commands = disabled(&failing).catch_up().expect("commands");
        assert!(commands.contains("disabled, from 2026-11-20 09:45:00Z. Next:\n"), "{commands}");
        assert!(commands.contains("\n  waypost recover whk_1 --from 2026-11-15T09:40:00.000Z\n"), "{commands}");
        assert!(
            commands.contains("\n  waypost replay whk_1 --from 2026-11-20T09:45:00.123Z --dry-run\n"),
            "{commands}"
        );
        let by_owner = disabled(date).catch_up().expect("commands");
        assert!(by_owner.contains("waypost recover whk_1 --from 2026-11-20T09:40:00.123Z\n"), "{by_owner}");
        assert!(disabled("").catch_up().is_none() && state(date).catch_up().is_none());
    }
}
