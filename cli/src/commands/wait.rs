//! Why an open delivery is waiting, and until when, in words.

use crate::output::{short_time, visible_line};

/// A webhook's pause, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pause<'a> {
    /// `owner` or `service`; `None` without a pause.
    pub by: Option<&'a str>,
    /// The end of an owner's pause. If the service paused the webhook, the time at which it checks the endpoint.
    pub until: Option<&'a str>,
}

/// The members of a delivery that say why it is waiting.
#[derive(Debug, Clone, Copy)]
pub struct Wait<'a> {
    pub status: &'a str,
    /// The member `waitingFor`.
    pub reason: Option<&'a str>,
    /// The member `nextAttemptDate`.
    pub next: Option<&'a str>,
    pub held_by: Option<&'a str>,
}

impl Wait<'_> {
    /// Words that continue "It is waiting"; `None` for a final delivery.
    pub fn words(&self, pause: Pause<'_>) -> Option<String> {
        if !["pending", "retrying"].contains(&self.status) {
            return None;
        }
        Some(match self.reason {
            Some("schedule") => self.on_schedule(pause),
            // A delivery that was resent follows the attempt that is checking the webhook, before the end of the pause.
            Some("breaker") => {
                until_checked(pause.until.filter(|_| pause.by == Some("service")).into_iter().chain(self.next).min())
            }
            Some("pause") => until_resumed(pause.until.filter(|_| pause.by != Some("service"))),
            Some("order") => match self.held_by {
                Some(before) => {
                    format!("until {}, the previous delivery for the same subject, has ended", visible_line(before))
                }
                None => "until the previous delivery for the same subject has ended".to_owned(),
            },
            Some("rate") => format!("for its turn under the webhook's limit on attempts per second{}", self.at(", at")),
            Some("reader") => "until a program reads the webhook's feed".to_owned(),
            Some("limit") => "for other attempts to finish: too many are under way".to_owned(),
            Some(other) => format!("for `{}`{}", visible_line(other), self.at(", until")),
            None => "for its attempt, which begins now or is under way".to_owned(),
        })
    }

    /// The words as a sentence.
    pub fn sentence(&self, pause: Pause<'_>) -> Option<String> {
        let words = self.words(pause)?;
        let mut letters = words.chars();
        let first = letters.next()?;
        Some(format!("{}{}.", first.to_uppercase(), letters.as_str()))
    }

    /// The time of the next attempt after this text; empty if there is none.
    fn at(&self, text: &str) -> String {
        self.next.map_or_else(String::new, |next| format!("{text} {}", shown_time(next)))
    }

    /// The words for a delivery on the retry schedule. No attempt follows at that time if its webhook is still paused.
    fn on_schedule(&self, pause: Pause<'_>) -> String {
        // The service's times have one form, so they sort as texts.
        let is_due_before = |until: &str| self.next.is_none_or(|next| next < until);
        match (pause.by, pause.until) {
            (None, _) => format!("for its next attempt on the retry schedule{}", self.at(", at")),
            (Some("owner"), None) => until_resumed(None),
            (Some("owner"), Some(until)) if is_due_before(until) => until_resumed(Some(until)),
            (Some("service"), Some(until)) if is_due_before(until) => until_checked(Some(until)),
            _ => format!("for its time on the retry schedule{}, and for its webhook's pause to end", self.at(",")),
        }
    }
}

/// The words for a webhook that the service paused.
fn until_checked(at: Option<&str>) -> String {
    let check = at.map(|at| format!(", and checks it at {}", shown_time(at))).unwrap_or_default();
    format!("until the endpoint responds again. The service paused the webhook{check}")
}

/// The words for a webhook that its owner paused.
fn until_resumed(at: Option<&str>) -> String {
    let end = at.map_or_else(|| ", when you resume it".to_owned(), |at| format!(", at {}", shown_time(at)));
    format!("until its webhook's pause ends{end}")
}

fn shown_time(time: &str) -> String {
    visible_line(&short_time(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: &str = "2026-11-20T09:50:00.000Z";
    const LATER: &str = "2026-11-20T09:55:00.000Z";
    const EARLIER: &str = "2026-11-20T09:45:00.000Z";

    fn wait(reason: &str) -> Wait<'_> {
        Wait { status: "retrying", reason: Some(reason), next: Some(NEXT), held_by: None }
    }

    fn pause<'a>(by: &'a str, until: Option<&'a str>) -> Pause<'a> {
        Pause { by: Some(by), until }
    }

    #[test]
    fn a_paused_webhook_has_a_check_and_no_next_attempt() {
        for (reason, time) in [("breaker", "09:50:00Z"), ("schedule", "09:55:00Z")] {
            let checked = wait(reason).words(pause("service", Some(LATER))).expect("it is waiting");
            let expected =
                "until the endpoint responds again. The service paused the webhook, and checks it at 2026-11-20";
            assert_eq!(checked, format!("{expected} {time}"));
        }
        let unknown = wait("breaker").words(Pause::default()).expect("it is waiting");
        assert!(unknown.ends_with("checks it at 2026-11-20 09:50:00Z"), "{unknown}");
        for by in ["owner", "service"] {
            let both = wait("schedule").words(pause(by, Some(EARLIER))).expect("it is waiting");
            let due = "for its time on the retry schedule, 2026-11-20 09:50:00Z";
            assert_eq!(both, format!("{due}, and for its webhook's pause to end"));
        }
        let open = wait("schedule").words(pause("owner", None)).expect("it is waiting");
        assert_eq!(open, "until its webhook's pause ends, when you resume it");
    }

    #[test]
    fn only_an_open_delivery_is_waiting() {
        let schedule = wait("schedule").sentence(Pause::default());
        assert_eq!(schedule.as_deref(), Some("For its next attempt on the retry schedule, at 2026-11-20 09:50:00Z."));
        for status in ["delivered", "failed", "cancelled"] {
            assert_eq!(Wait { status, ..wait("schedule") }.words(Pause::default()), None, "{status}");
        }
    }

    #[test]
    fn the_previous_delivery_is_named_if_it_is_known() {
        let unknown = wait("order").words(Pause::default());
        assert_eq!(unknown.as_deref(), Some("until the previous delivery for the same subject has ended"));
        let known = Wait { held_by: Some("dlv_0"), ..wait("order") }.words(Pause::default());
        assert_eq!(known.as_deref(), Some("until dlv_0, the previous delivery for the same subject, has ended"));
    }
}
