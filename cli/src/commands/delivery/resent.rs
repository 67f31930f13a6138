//! The outcome of a resend: the attempt that followed it, or the reason why none has.

use std::time::Instant;

use super::view::{Attempt, Delivery, DeliveryWebhook};
use crate::{
    commands::{
        first_attempt::{PAUSE, WAIT},
        wait::Pause,
    },
    machine,
    output::visible_line,
    service::{Call, Service},
};

/// Waits a few seconds for the attempt of a resent delivery, and describes the outcome. `before` is the delivery before
/// the request, if it could be read.
pub async fn outcome(service: &Service, before: Option<&Delivery>, resent: Delivery) -> String {
    let known = resent.last_attempt();
    let after = after_attempt(service, resent).await;
    let webhook = if after.is_open() { DeliveryWebhook::of(service, &after).await } else { None };
    let pause = webhook.as_ref().map(DeliveryWebhook::pause).unwrap_or_default();
    let notice = before.and_then(overtaken).map(|notice| format!("{notice}\n")).unwrap_or_default();
    format!("{notice}{}", sentence(&after, known, pause))
}

/// The delivery after its next attempt. It is returned earlier if it waits for something that may take long.
async fn after_attempt(service: &Service, resent: Delivery) -> Delivery {
    let begun = Instant::now();
    let known = resent.last_attempt();
    let mut current = resent;
    while current.attempt_after(known).is_none() && !current.waits_long() && begun.elapsed() <= WAIT {
        machine::pause(PAUSE).await;
        let read = service.call::<Delivery>(Call::get(&["webhook", "delivery", &current.id])).await;
        let Ok(read) = read else { break };
        current = read;
    }
    current
}

impl Delivery {
    fn is_open(&self) -> bool {
        ["pending", "retrying"].contains(&self.status.as_str())
    }

    /// The number of the last attempt; 0 before the first.
    fn last_attempt(&self) -> u64 {
        self.attempts.last().map_or(0, |last| last.attempt_number)
    }

    /// The last attempt, if it followed the one with this number.
    fn attempt_after(&self, number: u64) -> Option<&Attempt> {
        self.attempts.last().filter(|last| last.attempt_number > number)
    }

    /// Whether its next attempt depends on a reader, the end of a pause or another delivery, or none follows.
    fn waits_long(&self) -> bool {
        let waits = matches!(self.waiting_for.as_deref(), Some("reader" | "breaker" | "pause" | "order"));
        waits || !self.is_open()
    }
}

/// The notice that a resend does not wait for the earlier delivery that held this one.
fn overtaken(before: &Delivery) -> Option<String> {
    if before.waiting_for.as_deref() != Some("order") {
        return None;
    }
    let subject = before.subject.as_deref().map_or_else(|| "the same subject".to_owned(), visible_line);
    let earlier = before.held_by.as_deref().map(|id| format!(" ({})", visible_line(id))).unwrap_or_default();
    Some(format!("A resend does not wait for the earlier delivery about {subject}{earlier}, which is still open."))
}

/// The outcome in sentences. `known` is the number of the last attempt before the resend.
fn sentence(after: &Delivery, known: u64, pause: Pause<'_>) -> String {
    let id = visible_line(&after.id);
    let waiting = after.wait().words(pause);
    if let Some(attempt) = after.attempt_after(known) {
        let number = attempt.attempt_number;
        let colour = attempt.colour();
        let answer = attempt.answer();
        let answer = answer.trim_end_matches('.');
        if attempt.has_succeeded() {
            return format!("Attempt {number} of {id} succeeded: {colour}{answer}{colour:#}.");
        }
        let next = waiting.map_or_else(
            || "No further attempt follows.".to_owned(),
            |words| format!("The delivery is waiting {words}."),
        );
        return format!(
            "Attempt {number} of {id} failed: {colour}{answer}{colour:#}. {next}\n`waypost why {id}` shows the cause \
             and the remedy."
        );
    }
    match (waiting, after.waiting_for.as_deref()) {
        (Some(_), Some("breaker")) => format!(
            "{id} has not been sent again yet: the service paused the webhook, and another attempt is checking it. This \
             one follows within a minute."
        ),
        (Some(words), Some(_)) => format!("{id} has not been sent again yet: it is waiting {words}."),
        (Some(_), None) => format!("The attempt of {id} has not finished yet: `waypost show {id}` shows it."),
        (None, _) => format!("{id} is {}: `waypost why {id}` says why.", visible_line(&after.status)),
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    fn delivery(members: &str) -> Delivery {
        let delivery = format!(
            r#"{{"id":"dlv_1","type":"booking.created","subject":"B-1","webhookIdentifier":"whk_1",
            "createdDate":"2026-11-20T09:45:00.123Z","event":{{}},{members}}}"#
        );
        serde_json::from_str(&delivery).expect("a delivery")
    }

    fn attempt(number: u64, answer: &str) -> String {
        let members = r#""attemptDate":"2026-11-20T09:45:10.412Z","durationMs":5"#;
        format!(r#"{{"attemptNumber":{number},{members},"httpStatus":{answer}}}"#)
    }

    fn described(after: &str, pause: Pause<'_>) -> String {
        strip_str(&sentence(&delivery(after), 1, pause)).to_string()
    }

    #[test]
    fn the_attempt_after_a_resend_is_its_outcome() {
        let attempts = format!("{},{}", attempt(1, "500"), attempt(2, "204"));
        let delivered = described(&format!(r#""status":"delivered","attempts":[{attempts}]"#), Pause::default());
        assert_eq!(delivered, "Attempt 2 of dlv_1 succeeded: 204.");
        let attempts = format!("{},{}", attempt(1, "500"), attempt(2, r#"null,"error":"connect: refused.""#));
        let failed = described(&format!(r#""status":"failed","attempts":[{attempts}]"#), Pause::default());
        let expected = "Attempt 2 of dlv_1 failed: connect: refused. No further attempt follows.\n`waypost why dlv_1` \
                        shows the cause and the remedy.";
        assert_eq!(failed, expected);
    }

    #[test]
    fn a_paused_webhook_has_no_next_attempt_after_a_failed_one() {
        let after = format!(
            r#""status":"retrying","waitingFor":"schedule","nextAttemptDate":"2026-11-20T09:45:13.000Z",
            "attempts":[{}]"#,
            attempt(2, "null")
        );
        let pause = Pause { by: Some("service"), until: Some("2026-11-20T09:50:00.000Z") };
        let paused = described(&after, pause);
        assert!(paused.contains("waiting until the endpoint responds again. The service paused"), "{paused}");
        let unpaused = described(&after, Pause::default());
        assert!(unpaused.contains("waiting for its next attempt on the retry schedule, at 2026"), "{unpaused}");
    }

    #[test]
    fn a_wait_for_a_reader_or_a_pause_is_named_at_once() {
        for (reason, words) in [
            ("reader", "it is waiting until a program reads the webhook's feed."),
            ("breaker", "another attempt is checking it"),
            ("pause", "it is waiting until its webhook's pause ends, when you resume it."),
        ] {
            let waiting = format!(r#""status":"pending","waitingFor":"{reason}","attempts":[{}]"#, attempt(1, "500"));
            assert!(delivery(&waiting).waits_long(), "{reason}");
            let text = described(&waiting, Pause::default());
            assert!(text.starts_with("dlv_1 has not been sent again yet: ") && text.contains(words), "{text}");
        }
        let begun = r#""status":"pending","attempts":[]"#;
        assert!(!delivery(begun).waits_long());
        assert!(described(begun, Pause::default()).contains("has not finished yet: `waypost show dlv_1`"));
    }

    #[test]
    fn a_resend_that_overtakes_an_earlier_delivery_says_so() {
        let held = delivery(r#""status":"pending","waitingFor":"order","heldBy":"dlv_0","attempts":[]"#);
        let expected = "A resend does not wait for the earlier delivery about B-1 (dlv_0), which is still open.";
        assert_eq!(overtaken(&held).as_deref(), Some(expected));
        assert_eq!(overtaken(&delivery(r#""status":"pending","waitingFor":"schedule","attempts":[]"#)), None);
    }
}
