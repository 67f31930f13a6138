//! The audit trail: one log line for each action on tokens, keys and applications, and for each change that an agent
//! makes with a tool, including refused ones. It contains the client, the action, the source address and the
//! outcome, and is also a metric for the alarms.
//!
//! An audited endpoint declares its action (`Endpoint::audited`), and the gate logs each of its calls, including
//! refused ones. If only some calls are audited, the endpoint declares nothing, and its handler notes the action for
//! those calls: `call.notes.action(action)`. A handler also notes identifiers that only it knows:
//! `call.notes.client(id)`. A line has no member for a secret or a token.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use http::StatusCode;
use serde::Serialize;

use crate::{
    clock::Time,
    metric::{Metrics, Name, Number},
};

macro_rules! actions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// An audited action.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Action {
            $($(#[$doc])* $variant,)*
        }

        impl Action {
            /// The action's name in the trail.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

actions! {
    /// A client requests a token.
    IssueToken = "token.issue",
    /// A client revokes a token (RFC 7009).
    RevokeToken = "token.revoke",
    /// A client introspects a token (RFC 7662).
    IntrospectToken = "token.introspect",
    /// An application is registered.
    CreateApplication = "application.create",
    /// An application is changed: its name, its scopes, its metadata, or its right to publish.
    ChangeApplication = "application.change",
    /// An application is removed.
    RemoveApplication = "application.remove",
    /// An application gets a secret.
    CreateSecret = "application.secret.create",
    /// An application's secret is removed.
    RemoveSecret = "application.secret.remove",
    /// An application gets a public key.
    CreateKey = "application.key.create",
    /// An application's public key is removed.
    RemoveKey = "application.key.remove",
    /// A panel link is created.
    CreatePanelLink = "panel.link.create",
    /// A panel link is renewed: its session is extended.
    RenewPanelLink = "panel.link.renew",
    /// A panel link is removed, and its session ended.
    RemovePanelLink = "panel.link.remove",
    /// A panel link is opened, which begins its session.
    OpenPanelSession = "panel.session.open",
    /// A panel session gets its next token.
    RenewPanelSession = "panel.session.renew",
    /// A person ends a panel session.
    EndPanelSession = "panel.session.end",
    /// An agent calls a tool that makes a change.
    CallTool = "tool.call",
    /// An operator resends a delivery.
    ResendDelivery = "delivery.resend",
    /// Failed attempts to authenticate are cleared.
    ForgetGuesses = "guesses.forget",
    /// The issuer starts to sign with its next key.
    RotateSigningKey = "signing-key.rotate",
    /// The issuer's keys are replaced at once, and the old ones revoked.
    ReplaceSigningKeys = "signing-key.replace",
    /// A new key seals the stored secrets.
    RotateDataKeys = "data-keys.rotate",
    /// Old keys of sealed secrets are removed.
    ForgetDataKeys = "data-keys.forget",
}

/// An action's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome<'a> {
    /// The action was done.
    Done,
    /// The action was refused, for the reason that the Problem's slug gives.
    Refused(&'a str),
    /// The action failed, for the reason that the Problem's slug gives.
    Failed(&'a str),
}

impl<'a> AuditOutcome<'a> {
    /// The outcome of an action whose response is a Problem with this slug and status.
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

/// An action's noted identifiers. `client` is authenticated unless the outcome says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Noted {
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'static str>,
    /// This call's action, if the endpoint has several.
    #[serde(skip)]
    action: Option<Action>,
    #[serde(skip)]
    is_untried: bool,
}

/// Notes on an action, taken while it runs. Clones share the notes.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<Noted>>);

impl Notes {
    /// The notes of a request with this identifier, from this address.
    pub fn of_request(id: &str, source: Option<IpAddr>) -> Self {
        let noted = Noted { request_id: Some(id.to_owned()), source_address: source, ..Noted::default() };
        Self(Arc::new(Mutex::new(noted)))
    }

    /// Notes the client, if the string has the form of a client identifier: people sometimes put their secret there by
    /// mistake.
    pub fn client(&self, id: &str) {
        self.note(|noted| noted.client = is_client_id(id).then(|| id.to_owned()));
    }

    /// Notes the client's credential: the identifier of the secret or key, never the secret itself.
    pub fn credential(&self, id: &str) {
        self.note(|noted| noted.credential = Some(id.to_owned()));
    }

    /// Notes the managing entity.
    pub fn entity(&self, id: &str) {
        self.note(|noted| noted.entity = Some(id.to_owned()));
    }

    /// Notes the action's object: the identifier of a token (its `jti`), an application, a secret, a key, a webhook or
    /// a delivery. Several are separated by commas.
    pub fn subject(&self, id: &str) {
        self.note(|noted| noted.subject = Some(id.to_owned()));
    }

    /// Notes the tool that an agent calls.
    pub fn tool(&self, name: &'static str) {
        self.note(|noted| noted.tool = Some(name));
    }

    /// The noted action, if any.
    pub fn noted_action(&self) -> Option<Action> {
        self.noted().action
    }

    /// Notes the action, for an endpoint with several actions, which declares one of them or none.
    pub fn action(&self, action: Action) {
        self.note(|noted| noted.action = Some(action));
    }

    /// Notes that the caller attempted nothing, so that the call is not logged. A browser without the panel's cookie
    /// still requests a token each time it loads the panel, and may sign out.
    pub fn untried(&self) {
        self.note(|noted| noted.is_untried = true);
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
    /// The action, unless the notes name another.
    pub action: Action,
    /// How the action ended.
    pub outcome: AuditOutcome<'a>,
    /// The client, its credential, and the action's object.
    pub notes: &'a Notes,
    /// The deployment's name.
    pub environment: &'a str,
    /// When the action ended.
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
    /// Writes the line, regardless of the log level. Writes nothing if the caller attempted nothing.
    pub fn log(self) {
        if self.notes.noted().is_untried {
            return;
        }
        let action = self.action().name();
        let outcome = self.outcome.name();
        let numbers = [Number::count(Name::Audited, 1)];
        let by = [action, outcome];
        let metrics = Metrics { environment: self.environment, by: &by, numbers: &numbers, at: self.at };
        metrics.publish_beside("audit", &self.line());
    }

    /// The line without the metric, for a program whose log does not reach CloudWatch:
    /// `{"Environment": …, "audit": {…}}`.
    pub fn text(&self) -> String {
        serde_json::json!({ "Environment": self.environment, "audit": self.line() }).to_string()
    }

    fn action(&self) -> Action {
        self.notes.noted().action.unwrap_or(self.action)
    }

    fn line(&self) -> Line<'_> {
        Line {
            time: self.at,
            action: self.action().name(),
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

    fn line(notes: &Notes, outcome: AuditOutcome<'_>) -> serde_json::Value {
        let at = Time::from_millis(1_795_167_900_123);
        let entry = Entry { action: Action::RevokeToken, outcome, notes, environment: "staging", at };
        serde_json::to_value(entry.line()).expect("a line")
    }

    #[test]
    fn a_line_names_client_action_address_and_outcome() {
        let notes = Notes::of_request("0193f6d2", Some([127, 0, 0, 1].into()));
        notes.client("app0123456789abcdefghijkl");
        notes.subject("jti");
        notes.credential("sec_1");
        notes.entity("hotel");
        assert_eq!(
            line(&notes, AuditOutcome::Refused("foreign-token")),
            json!({
                "time": "2026-11-20T09:45:00.123Z", "action": "token.revoke", "outcome": "refused", "reason": "foreign-token",
                "requestId": "0193f6d2", "sourceAddress": "127.0.0.1", "client": "app0123456789abcdefghijkl",
                "credential": "sec_1", "entity": "hotel", "subject": "jti",
            })
        );
    }

    #[test]
    fn a_line_has_no_member_for_an_unknown_identifier() {
        let line = line(&Notes::default(), AuditOutcome::Done);
        let names: Vec<_> = line.as_object().expect("an object").keys().cloned().collect();
        assert_eq!(names, ["action", "outcome", "time"]);
    }

    #[test]
    fn an_endpoint_of_several_actions_says_which_it_was() {
        let notes = Notes::default();
        notes.action(Action::EndPanelSession);
        assert_eq!(line(&notes, AuditOutcome::Done)["action"], "panel.session.end");
    }

    #[test]
    fn a_call_of_a_tool_is_audited_with_the_tool() {
        let notes = Notes::default();
        assert_eq!(notes.noted_action(), None);
        notes.action(Action::CallTool);
        notes.tool("change_webhook");
        notes.subject("whk_1");
        let line = line(&notes, AuditOutcome::Done);
        assert_eq!((&line["action"], &line["tool"]), (&json!("tool.call"), &json!("change_webhook")));
        assert_eq!((notes.noted_action(), &line["subject"]), (Some(Action::CallTool), &json!("whk_1")));
    }

    #[test]
    fn a_secret_instead_of_the_client_identifier_is_not_noted() {
        let notes = Notes::default();
        notes.client("a-secret-that-was-pasted-into-the-wrong-field");
        assert!(!line(&notes, AuditOutcome::Refused("invalid-client")).to_string().contains("secret"));
    }

    #[test]
    fn a_fault_of_the_service_is_a_failure_and_any_other_a_refusal() {
        let of = |status| AuditOutcome::of_problem("x", status).name();
        assert_eq!((of(StatusCode::SERVICE_UNAVAILABLE), of(StatusCode::TOO_MANY_REQUESTS)), ("failed", "refused"));
    }
}
