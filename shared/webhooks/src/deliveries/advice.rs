//! Why deliveries do not arrive, and what to do about it: the one table of causes, whoever explains them and to whom.

use serde::Serialize;

use super::attempt::Attempt;

macro_rules! causes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $meaning:literal, $remedy:literal;)*) => {
        /// Why deliveries do not arrive.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Cause {
            $($(#[$doc])* $variant,)*
        }

        impl Cause {
            /// Every cause: those that hold a whole webhook up, then those of failed attempts.
            pub const ALL: &[Cause] = &[$(Self::$variant,)*];

            /// What the cause means, and what to do about it.
            pub const fn advice(self) -> Advice {
                match self { $(Self::$variant => Advice { cause: $code, meaning: $meaning, remedy: $remedy },)* }
            }
        }
    };
}

/// A cause in words, for people and for programs that speak to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The stable code of the cause.
    pub cause: &'static str,
    /// What it means, in a sentence or two.
    pub meaning: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

causes! {
    /// The webhook is not enabled.
    Disabled = "disabled",
        "The webhook is disabled: nothing is sent to it, and what is published meanwhile makes no delivery to it.",
        "If its `disabledReason` says that the service disabled it, put the endpoint right first. Then enable the webhook, send a test event, and recover the deliveries that failed or were cancelled.";
    /// Its breaker is open.
    Paused = "paused",
        "The endpoint did not answer many attempts in a row, so that deliveries wait until one attempt is answered. None is lost, and none uses up attempts meanwhile.",
        "Put right why it does not answer, and send a test event: an answer with any status ends the pause, and everything that waits goes out.";
    /// The host has no address.
    Dns = "dns",
        "The host in the webhook's address has no address in the DNS, or its name could not be resolved.",
        "Check the host for a misspelling, and whether its DNS record exists and is public. Correct the address of the webhook, or the record, and send a test event.";
    /// There was no connection, or it broke.
    Connect = "connect",
        "No connection could be made to the endpoint, or it broke before the answer was complete, or the answer was not HTTP.",
        "Check that the server runs, listens on the port in the webhook's address, and is reachable from the internet: a firewall that admits only known addresses keeps the service out.";
    /// TLS failed.
    Tls = "tls",
        "No secure connection could be made: the endpoint's certificate is not trusted, has ended or is for another name, or its versions of TLS are too old.",
        "Renew the certificate, have the server send its whole chain, and offer TLS 1.2 or 1.3. The host in the webhook's address must be one that the certificate names.";
    /// It took too long.
    Timeout = "timeout",
        "The endpoint took no connection, or did not answer completely, in the time that an attempt has: 5 seconds to connect, and 15 in all.",
        "Store the event and answer with 204 at once, and do the work afterwards. If the endpoint is quick, look for what is slow before it: a proxy, a firewall that drops packets, a server that sleeps.";
    /// The address may not be contacted.
    Blocked = "blocked",
        "The webhook's address may not be contacted: it is not https, or its host has an address that is not public.",
        "Give the webhook an https address at a public host. Look at every address that the host's name resolves to: one that is private bans them all.";
    /// A status from 300 to 399.
    Redirected = "redirected",
        "The endpoint answered with a redirect, which is not followed.",
        "Find out where the server redirects to, such as from http to https or to a path with a slash at its end, and give the webhook that address if it is yours.";
    /// 401, 403 or 407.
    Refused = "refused",
        "The endpoint did not accept the sender: a signature that did not verify, or a credential that is missing or wrong.",
        "Check that the endpoint verifies with the webhook's present signing secret, over the very bytes of the body, with a clock that is right. If it wants a credential, put that into the webhook's headers. If neither is it, look for a firewall before the endpoint.";
    /// 404 or 405.
    NotThere = "not-there",
        "The server answered, but has nothing at the path of the webhook's address that takes a POST.",
        "Compare the path with the one that the receiver serves, in upper and lower case and to the slash at its end, and correct the webhook's address or the receiver.";
    /// 410.
    Gone = "gone",
        "The endpoint answered 410: it is gone for good. The delivery failed at once, and the webhook was disabled.",
        "If the endpoint has moved, give the webhook its new address and enable it. If it was a mistake, have the endpoint answer with another status, enable the webhook, and recover. If it is gone indeed, remove the webhook.";
    /// 413.
    TooLarge = "too-large",
        "The endpoint takes no body as large as this event's.",
        "Let the endpoint, and the proxies before it, take bodies of 262 144 bytes (256 KiB), which is the largest event.";
    /// 429.
    TooMany = "too-many",
        "The endpoint asks to be sent less. A pause that it names in `Retry-After` is kept, up to a day.",
        "Let the endpoint store events and answer at once, raise its limit, or let the webhook subscribe to fewer types of event.";
    /// Another status from 400 to 499.
    Rejected = "rejected",
        "The endpoint did not accept the event, for a reason of its own.",
        "Read the endpoint's answer, and its log at the time of the attempt. A receiver must answer 2xx to types of event that it does not know, and to events that it has already.";
    /// 502, 503 or 504.
    Unavailable = "unavailable",
        "Something before the endpoint answered in its place, as a proxy does when the server is down, overloaded or too slow; or the endpoint said so itself.",
        "Check that the server behind the proxy runs, and how it does under load. Attempts are repeated by themselves; once it is well, recover what has failed.";
    /// Another status from 500 on.
    Broken = "broken",
        "The endpoint failed while it handled the event.",
        "Look for an error in the endpoint's log at the time of the attempt; `webhook-id` there is the identifier of the event. Once it is mended, resend one delivery, and then recover the others.";
    /// A status that is none of these.
    Unusual = "unusual",
        "The endpoint answered with a status that does not say whether it took the event.",
        "Have the endpoint answer with 204, or another status from 200 to 299, once it has stored the event.";
}

impl Cause {
    /// Why an attempt failed; `None` when it succeeded.
    pub fn of_attempt(attempt: &Attempt) -> Option<Self> {
        Self::of_failure(attempt.http_status, attempt.error.as_deref())
    }

    /// Why an attempt failed that was answered with this status, or never completed with this error.
    pub fn of_failure(http_status: Option<u16>, error: Option<&str>) -> Option<Self> {
        match (http_status, error) {
            (Some(status), _) => Self::of_status(status),
            (None, Some(error)) => Some(Self::of_error(error)),
            (None, None) => None,
        }
    }

    fn of_status(status: u16) -> Option<Self> {
        Some(match status {
            200..=299 => return None,
            300..=399 => Self::Redirected,
            401 | 403 | 407 => Self::Refused,
            404 | 405 => Self::NotThere,
            410 => Self::Gone,
            413 => Self::TooLarge,
            429 => Self::TooMany,
            400..=499 => Self::Rejected,
            502..=504 => Self::Unavailable,
            500..=599 => Self::Broken,
            _ => Self::Unusual,
        })
    }

    /// The cause in a stable code and a sentence, as `outbound::AttemptError` writes them.
    fn of_error(error: &str) -> Self {
        match error.split_once(':').map_or(error, |(code, _)| code) {
            "dns" => Self::Dns,
            "tls" => Self::Tls,
            "timeout" => Self::Timeout,
            "blocked" => Self::Blocked,
            _ => Self::Connect,
        }
    }
}

impl Serialize for Cause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.advice().cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outbound::AttemptError;
    use std::collections::HashSet;

    #[test]
    fn every_cause_has_a_code_of_its_own_and_says_what_it_means_and_what_to_do() {
        let codes: HashSet<_> = Cause::ALL.iter().map(|cause| cause.advice().cause).collect();
        assert_eq!(codes.len(), Cause::ALL.len());
        for Advice { cause, meaning, remedy } in Cause::ALL.iter().map(|cause| cause.advice()) {
            assert!(cause.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{cause}");
            for text in [meaning, remedy] {
                assert!(text.ends_with('.') && (40..450).contains(&text.len()), "{cause}: {text}");
            }
        }
    }

    #[test]
    fn an_attempt_that_never_completed_has_the_cause_of_its_code() {
        for (error, cause) in [
            (AttemptError::Dns("x"), Cause::Dns),
            (AttemptError::Connect("x"), Cause::Connect),
            (AttemptError::Tls("x"), Cause::Tls),
            (AttemptError::Timeout("dns: x"), Cause::Timeout),
            (AttemptError::Blocked("x"), Cause::Blocked),
        ] {
            let error = error.to_string();
            assert_eq!(Cause::of_failure(None, Some(&error)), Some(cause), "{error}");
            assert!(error.starts_with(cause.advice().cause), "{error}");
        }
    }

    #[test]
    fn every_status_but_a_success_has_a_cause() {
        for status in 100..=999 {
            let succeeded = (200..300).contains(&status);
            assert_eq!(Cause::of_failure(Some(status), None).is_none(), succeeded, "{status}");
        }
        for (status, cause) in [
            (100, Cause::Unusual),
            (301, Cause::Redirected),
            (400, Cause::Rejected),
            (401, Cause::Refused),
            (404, Cause::NotThere),
            (410, Cause::Gone),
            (413, Cause::TooLarge),
            (422, Cause::Rejected),
            (429, Cause::TooMany),
            (500, Cause::Broken),
            (503, Cause::Unavailable),
            (505, Cause::Broken),
            (999, Cause::Unusual),
        ] {
            assert_eq!(Cause::of_failure(Some(status), None), Some(cause), "{status}");
        }
        assert_eq!(Cause::of_failure(None, None), None, "no attempt has been made");
    }
}
