//! The explanation of a delivery. Cause and remedy come from the service; this program only adds its commands.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr;

use crate::{
    commands::wait::{Pause, Wait},
    output::{BOLD, DIM, colour_of, short_time, visible_line},
};

/// The maximum number of characters of a response that are quoted.
const QUOTED: usize = 200;
/// The width of the names on the left.
const NAMES: usize = 10;
/// The minimum width of the text beside them.
const LEAST: usize = 30;

/// The members of a webhook that an explanation needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub id: String,
    pub name: String,
    pub enabled: bool,
    /// The types and groups; empty for every type.
    event_list: Vec<String>,
    pub event_filter: Option<Box<RawValue>>,
    pub created_date: Timestamp,
    pub disabled_date: Option<Timestamp>,
    pub last_update: Timestamp,
    paused_by: Option<String>,
    paused_until: Option<String>,
}

/// The members of a delivery that its explanation needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnosed {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    subject: Option<String>,
    #[serde(default)]
    test: bool,
    status: String,
    event_identifier: Option<String>,
    pub webhook_identifier: String,
    attempt_count: u64,
    next_attempt_date: Option<String>,
    waiting_for: Option<String>,
    held_by: Option<String>,
    cancel_reason: Option<String>,
    erased_date: Option<String>,
    advice: Option<Advice>,
    attempts: Vec<Attempt>,
}

/// The service's diagnosis. Earlier versions of the service have none.
#[derive(Deserialize)]
struct Advice {
    cause: String,
    meaning: String,
    remedy: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attempt {
    attempt_date: String,
    http_status: Option<u64>,
    error: Option<String>,
    location: Option<String>,
    response_body: Option<String>,
}

impl Webhook {
    /// Whether the webhook's types include a type.
    pub fn subscribes_to(&self, kind: &str) -> bool {
        let includes = |wanted: &String| match wanted.strip_suffix('*') {
            Some(group) => group.ends_with('.') && kind.starts_with(group),
            None => wanted == kind,
        };
        self.event_list.is_empty() || self.event_list.iter().any(includes)
    }

    fn pause(&self) -> Pause<'_> {
        Pause { by: self.paused_by.as_deref(), until: self.paused_until.as_deref() }
    }
}

impl Diagnosed {
    fn wait(&self) -> Wait<'_> {
        Wait {
            status: &self.status,
            reason: self.waiting_for.as_deref(),
            next: self.next_attempt_date.as_deref(),
            held_by: self.held_by.as_deref(),
        }
    }
}

impl Attempt {
    fn outcome(&self) -> String {
        match (self.http_status, &self.error, &self.location) {
            (Some(status), _, Some(location)) => format!("{status} to {}", visible_line(location)),
            (Some(status), _, None) => status.to_string(),
            (None, Some(error), _) => visible_line(error),
            (None, None, _) => "no answer".to_owned(),
        }
    }
}

/// Explains a delivery to a webhook, if the webhook still exists.
pub fn shown(delivery: &Diagnosed, webhook: Option<&Webhook>, width: Option<usize>) -> String {
    let title = title(&delivery.id, &delivery.kind, delivery.subject.as_deref(), delivery.test);
    let id = visible_line(&delivery.webhook_identifier);
    let to = webhook.map_or_else(|| id.clone(), |webhook| format!("{} ({id})", visible_line(&webhook.name)));
    let to = if is_disabled(webhook) { format!("{to}, disabled") } else { to };
    let colour = colour_of(&delivery.status);
    let status = format!("{colour}{}{colour:#}", visible_line(&delivery.status));
    let pause = webhook.map(Webhook::pause).unwrap_or_default();
    let texts = [
        ("event", delivery.event_identifier.as_deref().map(visible_line)),
        ("webhook", Some(to)),
        ("happened", Some(happened(delivery))),
        ("response", response(delivery)),
        ("waits", delivery.wait().sentence(pause)),
        ("cause", delivery.advice.as_ref().map(|advice| visible_line(&advice.meaning))),
        ("remedy", delivery.advice.as_ref().map(|advice| visible_line(&advice.remedy))),
    ];
    let texts = texts.into_iter().filter_map(|(name, text)| Some(named(name, &text?, width)));
    let next = next_commands(delivery, webhook).into_iter().map(|command| format!("  {command}"));
    let next: Vec<_> = next.collect();
    let next = if next.is_empty() { None } else { Some(format!("Next:\n{}", next.join("\n"))) };
    [title, format!("{}{status}", label("status"))].into_iter().chain(texts).chain(next).collect::<Vec<_>>().join("\n")
}

/// The first line about a delivery or an event.
pub fn title(id: &str, kind: &str, subject: Option<&str>, test: bool) -> String {
    let test = if test { "  (test)" } else { "" };
    let subject = subject.map(|subject| format!("  {}", visible_line(subject))).unwrap_or_default();
    format!("{BOLD}{}{BOLD:#}  {}{subject}{test}", visible_line(id), visible_line(kind))
}

fn label(name: &str) -> String {
    format!("{DIM}{name:<NAMES$}{DIM:#}")
}

/// Text beside its name, wrapped to this width.
pub fn named(name: &str, text: &str, width: Option<usize>) -> String {
    let width = width.map_or(usize::MAX, |width| width.saturating_sub(NAMES).max(LEAST));
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    format!("{}{}", label(name), lines.join(&format!("\n{}", " ".repeat(NAMES))))
}

/// The outcome so far.
fn happened(delivery: &Diagnosed) -> String {
    let count = delivery.attempt_count;
    let attempts = if count == 1 { "1 attempt".to_owned() } else { format!("{count} attempts") };
    let last = delivery.attempts.last();
    let at = last.map(|last| format!(" at {}", short_time(&last.attempt_date))).unwrap_or_default();
    let outcome = last.map(|last| format!(" The last one{at}: {}.", last.outcome())).unwrap_or_default();
    match (delivery.status.as_str(), delivery.cancel_reason.as_deref()) {
        ("delivered", _) => format!("Delivered on attempt {count}{at}."),
        ("failed", _) => format!("Not delivered after {attempts}.{outcome} No further attempt follows."),
        ("retrying", _) => format!("Not delivered yet, after {attempts}.{outcome}"),
        ("pending", _) if count > 0 => format!("Being sent again, after {attempts}.{outcome}"),
        ("pending", _) => "No attempt has been made yet.".to_owned(),
        ("cancelled", Some("owner")) => format!("Cancelled on request, after {attempts}."),
        ("cancelled", Some("erased")) => "Cancelled: its event's content was erased.".to_owned(),
        ("cancelled", Some("expired")) => "Cancelled: it waited longer than deliveries are kept.".to_owned(),
        ("cancelled", Some("webhook-removed")) => "Cancelled: its webhook was removed.".to_owned(),
        ("cancelled", Some("webhook-disabled")) => "Cancelled: its webhook was disabled.".to_owned(),
        ("cancelled", Some(reason)) => format!("Cancelled: {}.", visible_line(reason)),
        (status, _) => format!("{} after {attempts}.{outcome}", visible_line(status)),
    }
}

/// The beginning of the endpoint's last response, unless the delivery has arrived.
fn response(delivery: &Diagnosed) -> Option<String> {
    let body = delivery.attempts.last().filter(|_| delivery.status != "delivered")?.response_body.as_deref()?;
    let body = visible_line(body.trim());
    Some(if body.chars().count() > QUOTED { body.chars().take(QUOTED).chain(['…']).collect() } else { body })
}

fn is_disabled(webhook: Option<&Webhook>) -> bool {
    webhook.is_some_and(|webhook| !webhook.enabled)
}

/// The commands for the next step, to paste. A disabled webhook refuses resends and test events, so enabling it comes
/// first.
fn next_commands(delivery: &Diagnosed, webhook: Option<&Webhook>) -> Vec<String> {
    let is_disabled = is_disabled(webhook);
    let [id, webhook] = [&delivery.id, &delivery.webhook_identifier].map(|id| visible_line(id));
    let resend = format!("waypost resend {id}");
    let show = format!("waypost show {id}");
    let enable = format!("waypost webhooks change {webhook} --enable");
    let test = format!("waypost webhooks test {webhook}");
    let cause = delivery.advice.as_ref().map(|advice| advice.cause.as_str());
    match (delivery.status.as_str(), cause) {
        ("delivered", _) => Vec::new(),
        _ if delivery.erased_date.is_some() || delivery.cancel_reason.as_deref() == Some("webhook-removed") => {
            Vec::new()
        }
        (_, Some("redirected")) => {
            let enabling = if is_disabled { " --enable" } else { "" };
            vec![format!("waypost webhooks change {webhook} --url https://NEW-ADDRESS{enabling}"), resend]
        }
        (_, Some("disabled" | "gone")) => vec![enable, resend, test],
        _ if is_disabled => vec![enable, resend, test],
        (_, Some("paused-by-owner")) => vec![format!("waypost webhooks resume {webhook}")],
        (_, Some("paused")) => vec![resend, test],
        (_, Some("held")) => {
            delivery.held_by.iter().map(|before| format!("waypost why {}", visible_line(before))).collect()
        }
        (_, Some("rate-limited")) => vec![format!("waypost webhooks show {webhook}")],
        (_, Some("reported" | "unconfirmed" | "interrupted")) => vec![show, resend],
        (_, Some(_)) => vec![show, resend, test],
        _ if delivery.waiting_for.as_deref() == Some("reader") => vec![format!("waypost webhooks show {webhook}")],
        ("pending" | "retrying", None) => vec![show],
        (_, None) => vec![resend],
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn webhook(members: &str) -> Webhook {
        let webhook = format!(
            r#"{{"id":"whk_1","name":"Booking sync","enabled":true,"createdDate":"2026-11-01T00:00:00.000Z",
            "lastUpdate":"2026-11-01T00:00:00.000Z",{members}}}"#
        );
        serde_json::from_str(&webhook).expect("a webhook")
    }

    #[test]
    fn a_list_of_types_includes_those_of_its_groups() {
        for (list, included) in [
            ("[]", true),
            (r#"["payee.created","booking.created"]"#, true),
            (r#"["booking.*"]"#, true),
            (r#"["booking.cancelled","payee.*"]"#, false),
            (r#"["book*"]"#, false),
        ] {
            let webhook = webhook(&format!(r#""eventList":{list}"#));
            assert_eq!(webhook.subscribes_to("booking.created"), included, "{list}");
        }
    }

    fn explained(members: &str, width: Option<usize>) -> String {
        let delivery = format!(
            r#"{{"id":"dlv_1","type":"booking.created","eventIdentifier":"evt_1","webhookIdentifier":"whk_1",
            "attempts":[{{"attemptDate":"2026-11-20T09:45:10.412Z","httpStatus":500,"responseBody":"out of\u001b memory"}}],{members}}}"#
        );
        let delivery = serde_json::from_str(&delivery).expect("a delivery");
        let webhook = webhook(r#""pausedUntil":"2026-11-21T06:00:00.000Z","eventList":[]"#);
        strip_str(&shown(&delivery, Some(&webhook), width)).to_string()
    }

    #[test]
    fn a_failing_delivery_is_explained_by_the_advice_of_the_service() {
        let text = explained(
            r#""status":"retrying","attemptCount":2,"subject":"B-1","waitingFor":"schedule",
            "nextAttemptDate":"2026-11-20T09:50:21.007Z",
            "advice":{"cause":"broken","meaning":"The endpoint failed.","remedy":"Look for an error in its log."}"#,
            None,
        );
        let expected = "\
dlv_1  booking.created  B-1
status    retrying
event     evt_1
webhook   Booking sync (whk_1)
happened  Not delivered yet, after 2 attempts. The last one at 2026-11-20 09:45:10Z: 500.
response  out of\u{fffd} memory
waits     For its next attempt on the retry schedule, at 2026-11-20 09:50:21Z.
cause     The endpoint failed.
remedy    Look for an error in its log.
Next:
  waypost show dlv_1
  waypost resend dlv_1
  waypost webhooks test whk_1";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_wait_names_its_end_and_the_command_that_ends_it() {
        let advice = |cause: &str| format!(r#""advice":{{"cause":"{cause}","meaning":"It waits.","remedy":"Do."}}"#);
        let open = r#""status":"pending","attemptCount":0"#;
        for (members, wait, command) in [
            (
                format!(r#""waitingFor":"pause",{}"#, advice("paused-by-owner")),
                "2026-11-21 06:00:00Z",
                "webhooks resume whk_1",
            ),
            (format!(r#""waitingFor":"order","heldBy":"dlv_0",{}"#, advice("held")), "Until dlv_0", "why dlv_0"),
            (format!(r#""waitingFor":"breaker",{}"#, advice("paused")), "responds again", "webhooks test whk_1"),
            (r#""waitingFor":"reader""#.to_owned(), "reads the webhook's feed", "webhooks show whk_1"),
            (r#""waitingFor":"moonlight""#.to_owned(), "moonlight", "show dlv_1"),
        ] {
            let text = explained(&format!("{open},{members}"), None);
            assert!(text.contains(wait) && text.ends_with(&format!("waypost {command}")), "{text}");
        }
    }

    #[test]
    fn a_delivery_that_has_arrived_or_cannot_be_sent_needs_no_command() {
        let delivered = explained(r#""status":"delivered","attemptCount":1,"test":true"#, None);
        assert!(delivered.contains("(test)") && !delivered.contains("Next:"), "{delivered}");
        assert!(delivered.ends_with("Delivered on attempt 1 at 2026-11-20 09:45:10Z."), "{delivered}");
        let removed = explained(r#""status":"cancelled","attemptCount":0,"cancelReason":"webhook-removed""#, None);
        assert!(!removed.contains("Next:"), "{removed}");
    }

    #[test]
    fn a_failed_delivery_of_a_disabled_webhook_is_resent_after_the_webhook_is_enabled() {
        let delivery = r#"{"id":"dlv_1","type":"booking.created","webhookIdentifier":"whk_1","attempts":[],
            "status":"failed","attemptCount":10,"advice":{"cause":"broken","meaning":"It failed.","remedy":"Do."}}"#;
        let delivery = serde_json::from_str(delivery).expect("a delivery");
        let webhook = Webhook { enabled: false, ..webhook(r#""eventList":[]"#) };
        let text = strip_str(&shown(&delivery, Some(&webhook), None)).to_string();
        assert!(text.contains("Booking sync (whk_1), disabled\n"), "{text}");
        let commands =
            "Next:\n  waypost webhooks change whk_1 --enable\n  waypost resend dlv_1\n  waypost webhooks test whk_1";
        assert!(text.ends_with(commands), "{text}");
    }

    #[test]
    fn long_texts_are_wrapped_to_the_terminal() {
        let meaning = "The endpoint failed while it handled the event. ".repeat(4);
        let members = format!(
            r#""status":"failed","attemptCount":10,"advice":{{"cause":"broken","meaning":"{meaning}","remedy":"Do."}}"#
        );
        let text = explained(&members, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.lines().any(|line| line.starts_with("          ")), "{text}");
    }
}
