//! The audit trail: one line of the log for whatever is done to tokens, keys and applications, or was refused: who, what, from
//! where, and how it ended. The line is a metric of CloudWatch's as well, for the alarms.
//!
//! An endpoint that is in the trail says so in its declaration (`Endpoint::audited`), and the gate tells its every call,
//! those included that it refuses itself. What only a handler knows, it notes on the way: `call.notes.client(id)`. There is
//! no place for a secret or a token here.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use http::StatusCode;
use serde::Serialize;

use crate::{clock::Time, logging::Metric};

macro_rules! actions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// What is done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Action {
            $($(#[$doc])* $variant,)*
        }

        impl Action {
            /// Its name in the trail.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

actions! {
    /// A client asks for a token.
    IssueToken = "token.issue",
    /// A client revokes a token (RFC 7009).
    RevokeToken = "token.revoke",
    /// A client asks what a token is good for (RFC 7662).
    IntrospectToken = "token.introspect",
    /// An application is registered.
    CreateApplication = "application.create",
    /// An application is removed.
    RemoveApplication = "application.remove",
    /// An application gets a secret.
    CreateSecret = "application.secret.create",
    /// A secret of an application is removed.
    RemoveSecret = "application.secret.remove",
    /// An application gets a public key.
    CreateKey = "application.key.create",
    /// A public key of an application is removed.
    RemoveKey = "application.key.remove",
    /// The issuer's next key takes its turn.
    RotateSigningKey = "signing-key.rotate",
    /// The issuer's keys are replaced at once, and the old ones revoked.
    ReplaceSigningKeys = "signing-key.replace",
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It was done.
    Done,
    /// It was refused, for this reason: a Problem's slug.
    Refused(&'a str),
    /// It could not be done, for this reason: a Problem's slug.
    Failed(&'a str),
}

impl<'a> Outcome<'a> {
    /// The outcome that a Problem of this slug and status is.
    pub fn of_problem(slug: &'a str, status: StatusCode) -> Self {
        if status.is_server_error() { Self::Failed(slug) } else { Self::Refused(slug) }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
        }
    }

    fn reason(self) -> Option<&'a str> {
        match self {
            Self::Done => None,
            Self::Refused(reason) | Self::Failed(reason) => Some(reason),
        }
    }
}

/// What is known of an action beside its outcome. Identifiers only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Noted {
    /// The request's own identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_address: Option<IpAddr>,
    /// Who: a client identifier, proven unless the outcome says that it could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    /// With which of its credentials: a secret's or a key's identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
    /// For which managing entity.
    #[serde(skip_serializing_if = "Option::is_none")]
    entity: Option<String>,
    /// To what: the identifier of a token, an application, a secret or a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
}

/// What is noted of an action while it is under way. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<Noted>>);

impl Notes {
    /// For a request with this identifier, that came from there.
    pub fn of_request(id: &str, source: Option<IpAddr>) -> Self {
        let noted = Noted { request_id: Some(id.to_owned()), source_address: source, ..Noted::default() };
        Self(Arc::new(Mutex::new(noted)))
    }

    /// Who does it. What has not the form of a client identifier is not noted: people put their secret there by mistake.
    pub fn client(&self, id: &str) {
        self.note(|noted| noted.client = is_client_id(id).then(|| id.to_owned()));
    }

    /// With which of its credentials: the identifier of a secret or a key, never the secret.
    pub fn credential(&self, id: &str) {
        self.note(|noted| noted.credential = Some(id.to_owned()));
    }

    /// For which managing entity.
    pub fn entity(&self, id: &str) {
        self.note(|noted| noted.entity = Some(id.to_owned()));
    }

    /// To what: the identifier of a token (its `jti`), an application, a secret or a key.
    pub fn subject(&self, id: &str) {
        self.note(|noted| noted.subject = Some(id.to_owned()));
    }

    fn note(&self, note: impl FnOnce(&mut Noted)) {
        note(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn noted(&self) -> Noted {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// `app` and up to 22 letters and digits; secrets are longer.
fn is_client_id(text: &str) -> bool {
    text.len() <= 25 && text.starts_with("app") && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// One line of the trail.
#[derive(Debug)]
pub struct Entry<'a> {
    /// What was done.
    pub action: Action,
    /// How it ended.
    pub outcome: Outcome<'a>,
    /// By whom and to what.
    pub notes: &'a Notes,
    /// The deployment's name.
    pub environment: &'a str,
    /// When it ended.
    pub at: Time,
}

/// The line's member `audit`.
#[derive(Debug, Serialize)]
struct Line<'a> {
    time: Time,
    action: &'static str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(flatten)]
    noted: Noted,
}

impl Entry<'_> {
    /// Tells it, whatever the level of the log is.
    pub fn tell(self) {
        let (action, outcome) = (self.action.name(), self.outcome.name());
        let dimensions = [("Environment", self.environment), ("Action", action), ("Outcome", outcome)];
        let metric = Metric { name: "Audited", value: 1.0, dimensions: &dimensions, at: self.at };
        metric.tell_beside("audit", &self.line());
    }

    /// The same without the metric, for a program whose log is no function's: `{"Environment": …, "audit": {…}}`.
    pub fn text(&self) -> String {
        serde_json::json!({ "Environment": self.environment, "audit": self.line() }).to_string()
    }

    fn line(&self) -> Line<'_> {
        Line {
            time: self.at,
            action: self.action.name(),
            outcome: self.outcome.name(),
            reason: self.outcome.reason(),
            noted: self.notes.noted(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(notes: &Notes, outcome: Outcome<'_>) -> serde_json::Value {
        let at = Time::from_millis(1_795_167_900_123);
        let entry = Entry { action: Action::RevokeToken, outcome, notes, environment: "staging", at };
        serde_json::to_value(entry.line()).expect("a line")
    }

    #[test]
    fn a_line_says_who_did_what_from_where_and_how_it_ended() {
        let notes = Notes::of_request("0193f6d2", Some([127, 0, 0, 1].into()));
        notes.client("app0123456789abcdefghijkl");
        notes.subject("jti");
        notes.credential("sec_1");
        notes.entity("hotel");
        assert_eq!(
            line(&notes, Outcome::Refused("foreign-token")),
            json!({
                "time": "2026-11-20T09:45:00.123Z", "action": "token.revoke", "outcome": "refused", "reason": "foreign-token",
                "requestId": "0193f6d2", "sourceAddress": "127.0.0.1", "client": "app0123456789abcdefghijkl",
                "credential": "sec_1", "entity": "hotel", "subject": "jti",
            })
        );
    }

    #[test]
    fn what_is_not_known_is_not_there() {
        let line = line(&Notes::default(), Outcome::Done);
        let names: Vec<_> = line.as_object().expect("an object").keys().cloned().collect();
        assert_eq!(names, ["action", "outcome", "time"]);
    }

    #[test]
    fn a_secret_in_the_place_of_the_client_identifier_is_not_noted() {
        let notes = Notes::default();
        notes.client("a-secret-that-somebody-pasted-into-the-wrong");
        assert!(!line(&notes, Outcome::Refused("invalid-client")).to_string().contains("secret"));
    }

    #[test]
    fn what_is_the_services_own_fault_has_failed_and_anything_else_was_refused() {
        let of = |status| Outcome::of_problem("x", status).name();
        assert_eq!((of(StatusCode::SERVICE_UNAVAILABLE), of(StatusCode::TOO_MANY_REQUESTS)), ("failed", "refused"));
    }
}
