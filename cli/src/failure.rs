//! All commands' failures, each with its message, next step and exit code.

use std::{fmt::Write as _, io, mem, path::PathBuf, process::ExitCode, time::Duration};

use serde::Deserialize;

use crate::output::{Output, to_stderr, visible, visible_line};

/// The next step without a valid login.
const LOG_IN: &str = "run `waypost login` with your application's client id and secret";
/// Members of the API that options of this program set, each with the option.
const OPTIONS: [(&str, &str); 2] = [("createdFrom", "--from"), ("createdUntil", "--until")];

/// Why a command did not complete.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments are wrong or incomplete.
    #[error("{0}")]
    Usage(String),
    /// A value of the login is missing.
    #[error("not logged in: there is no {0}")]
    NotLoggedIn(String),
    /// The stored login is damaged, and the environment does not replace all of it.
    #[error("not logged in: {} has no readable login", .0.display())]
    DamagedLogin(PathBuf),
    /// There is no stored login with this name.
    #[error("there is no profile `{name}`{}", listed(stored))]
    NoProfile { name: String, stored: Vec<String> },
    /// Ctrl-C ended the command.
    #[error("interrupted")]
    Interrupted,
    /// The service responded with an error.
    #[error("{}", visible(&.0.detail))]
    Refused(Box<Problem>),
    /// The service did not respond.
    #[error("{address} cannot be reached: {reason}")]
    Unreachable { address: String, reason: String },
    /// A signed request does not verify.
    #[error("{reason}")]
    Unverified { reason: String, next: String },
    /// Nothing was found for a name that the user gave.
    #[error("{reason}")]
    NothingFound { reason: String, next: String },
    /// The response is not from a Waypost service.
    #[error("{address} answered with status {status}, but not as Waypost does")]
    Unexpected { address: String, status: u16 },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("this system has no TLS certificates: {0}")]
    Certificates(String),
    /// Standard output is closed or full.
    #[error("the result cannot be written to standard output: {0}")]
    Output(#[from] io::Error),
}

/// An error from the service (RFC 9457) or from its token endpoint, which has the same members.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Problem {
    pub kind: String,
    pub detail: String,
    pub status: u16,
    #[serde(default)]
    instance: String,
    #[serde(default)]
    properties: Properties,
    /// The `Retry-After` header, in seconds.
    #[serde(skip)]
    pub retry_after: Option<u64>,
    /// The webhook in the request's path.
    #[serde(skip)]
    webhook: Option<String>,
    /// The service's JSON, in one line.
    #[serde(skip)]
    pub json: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    #[serde(default)]
    required_scope: Option<String>,
    #[serde(default)]
    violations: Vec<Violation>,
}

/// A value that is missing or unacceptable.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Violation {
    /// The part of the request that contains the value.
    #[serde(rename = "in")]
    part: String,
    /// A JSON Pointer (RFC 6901) to the value within the part.
    pointer: String,
    detail: String,
}

impl Violation {
    /// The value's display name: `/eventList/0` is `eventList[0]`, and the whole body is `body`.
    fn name(&self) -> String {
        let steps = self.pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
        let name = steps.reduce(|name, step| match step.parse::<usize>() {
            Ok(index) => format!("{name}[{index}]"),
            Err(_) => format!("{name}.{step}"),
        });
        name.unwrap_or_else(|| self.part.clone())
    }
}

impl Properties {
    /// The lines for several violations. The Problem's `detail` names only the first one.
    fn listed(&self) -> String {
        let mut lines = format!("error: {} values are invalid:\n", self.violations.len());
        for violation in &self.violations {
            let name = violation.name();
            writeln!(lines, "  `{}` {}", visible(&name), visible(&violation.detail)).expect("a text takes everything");
        }
        lines
    }
}

impl Problem {
    /// Whether the application lacks a right, or its credentials are not valid.
    fn is_about_rights(&self) -> bool {
        matches!(self.status, 401 | 403) || self.kind == "invalid-scope"
    }

    /// Names options instead of members.
    fn name_options(&mut self) {
        let of_violations = |violation: &mut Violation| {
            [&mut violation.pointer, &mut violation.detail].into_iter().for_each(name_options);
        };
        self.properties.violations.iter_mut().for_each(of_violations);
        name_options(&mut self.detail);
    }

    /// The next step for the user, unless the message contains it.
    fn next_step(&self) -> Option<String> {
        let webhook = self.webhook.as_deref().map_or_else(|| "ID".to_owned(), visible_line);
        Some(match self.kind.as_str() {
            "invalid-client" | "unauthorized" => LOG_IN.to_owned(),
            "insufficient-scope" => {
                let scope = self.properties.required_scope.as_deref().unwrap_or("that the message names");
                format!("ask your application's owner for one with the scope {}, and log in", visible(scope))
            }
            "entity-not-covered" => {
                "run `waypost login` with a managing entity that your application covers".to_owned()
            }
            "may-not-publish" => {
                "ask the operator for the right to publish, or use `waypost trigger TYPE` for a test event".to_owned()
            }
            "delivery-not-found" => "`waypost deliveries` lists the deliveries".to_owned(),
            "event-not-found" => {
                "check the identifier, and the managing entity (`waypost whoami`); `waypost why SUBJECT` finds events by \
                 their subject, such as a booking number"
                    .to_owned()
            }
            "webhook-not-found" => "`waypost webhooks` lists the webhooks".to_owned(),
            "webhook-disabled" if self.webhook.is_none() => {
                "find the webhook with `waypost webhooks`; `waypost webhooks change ID --enable` enables it".to_owned()
            }
            "webhook-disabled" => format!("`waypost webhooks change {webhook} --enable` enables it"),
            "previous-secret-live" => format!(
                "`waypost webhooks rotate {webhook} --at-once` ends both old secrets; your endpoint then needs the new one"
            ),
            "event-type-not-found" => "`waypost types` lists the event types".to_owned(),
            "unsupported-version" => "install a current version of this program".to_owned(),
            _ if self.status == 429 => {
                self.retry_after.map_or("try again later".to_owned(), |pause| format!("try again in {pause} s"))
            }
            _ if self.status >= 500 => {
                format!("try again; if it still fails, send the operator {}", visible(&self.instance))
            }
            _ => return None,
        })
    }
}

/// Names options instead of members in a text.
fn name_options(text: &mut String) {
    *text = OPTIONS.iter().fold(mem::take(text), |text, (member, option)| text.replace(member, option));
}

/// The end of a sentence, with the names of the stored profiles.
fn listed(profiles: &[String]) -> String {
    if profiles.is_empty() { String::new() } else { format!("; stored: {}", profiles.join(", ")) }
}

impl Failure {
    /// Writes the failure to standard error, and returns the exit code.
    pub fn report(self, output: Output) -> ExitCode {
        // A reader such as `head` has closed the pipe.
        if matches!(&self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        to_stderr(self.reported(output));
        ExitCode::from(self.code())
    }

    /// The lines for standard error. Programs get the service's Problem, if there is one.
    fn reported(&self, output: Output) -> String {
        match self {
            Self::Refused(problem) if output.json => format!("{}\n", problem.json),
            _ => self.message(),
        }
    }

    /// The lines for people: the reason and the next step.
    fn message(&self) -> String {
        let mut message = match self {
            Self::Refused(problem) if problem.properties.violations.len() > 1 => problem.properties.listed(),
            _ => format!("error: {self}\n"),
        };
        if let Some(next) = self.next_step() {
            writeln!(message, "next: {next}").expect("a text takes everything");
        }
        message
    }

    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Unreachable { .. } => 3,
            Self::NotLoggedIn(_) | Self::DamagedLogin(_) | Self::NoProfile { .. } => 4,
            // The exit code that a shell reports for a program that this signal ended.
            Self::Interrupted => 130,
            Self::Refused(problem) if problem.is_about_rights() => 4,
            Self::Refused(problem) if ["invalid-request", "event-type-not-found"].contains(&problem.kind.as_str()) => 2,
            Self::Refused(_)
            | Self::Unexpected { .. }
            | Self::Unverified { .. }
            | Self::NothingFound { .. }
            | Self::File { .. }
            | Self::Certificates(_)
            | Self::Output(_) => 1,
        }
    }

    /// The next step for the user, unless the message contains it.
    fn next_step(&self) -> Option<String> {
        let next = match self {
            Self::NotLoggedIn(_) | Self::DamagedLogin(_) => {
                format!("{LOG_IN}, or set the variables that `waypost --help` lists")
            }
            Self::NoProfile { name, .. } => format!("run `waypost login --profile {name}` to log in"),
            Self::Unreachable { .. } => {
                "check your network and the address; run `waypost login` to change the address".to_owned()
            }
            Self::Unexpected { .. } => {
                "check the address, and whether a proxy answered; run `waypost login` to change the address".to_owned()
            }
            Self::Unverified { next, .. } | Self::NothingFound { next, .. } => next.clone(),
            Self::Certificates(_) => "install the package ca-certificates, or set SSL_CERT_FILE".to_owned(),
            Self::Refused(problem) => return problem.next_step(),
            Self::Usage(_) | Self::Interrupted | Self::File { .. } | Self::Output(_) => return None,
        };
        Some(next)
    }

    /// Names the options `--from` and `--until` instead of the members that they set.
    pub fn naming_options(mut self) -> Self {
        if let Self::Refused(problem) = &mut self {
            problem.name_options();
        }
        self
    }

    /// Remembers the webhook in the path of a refused request, for the next step.
    pub fn of_request(mut self, path: &[&str]) -> Self {
        if let (Self::Refused(problem), ["webhook", id, ..]) = (&mut self, path)
            && id.starts_with("whk_")
        {
            problem.webhook = Some((*id).to_owned());
        }
        self
    }

    /// Whether the same request may succeed later, without a change.
    pub fn is_temporary(&self) -> bool {
        let temporary = |status: u16| status == 408 || status == 429 || status >= 500;
        match self {
            Self::Unreachable { .. } => true,
            Self::Unexpected { status, .. } => temporary(*status),
            Self::Refused(problem) => temporary(problem.status),
            _ => false,
        }
    }

    /// Whether nothing exists at the address.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Unexpected { status, .. } => *status == 404,
            Self::Refused(problem) => problem.status == 404,
            _ => false,
        }
    }

    /// The message as a sentence with one full stop.
    pub fn sentence(&self) -> String {
        format!("{}.", self.to_string().trim_end_matches('.'))
    }

    /// The pause after which a rate-limited request may succeed.
    pub fn wait_for_limit(&self) -> Option<Duration> {
        self.retry_after().filter(|_| matches!(self, Self::Refused(problem) if problem.status == 429))
    }

    /// The pause that the service requests before the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(problem) => problem.retry_after.map(Duration::from_secs),
            _ => None,
        }
    }

    /// Whether the service refused with this kind of Problem.
    pub fn is_of_kind(&self, kind: &str) -> bool {
        matches!(self, Self::Refused(problem) if problem.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, kind: &str) -> Failure {
        let problem = format!(
            r#"{{"kind":"{kind}","detail":"No.","status":{status},"instance":"urn:uuid:1","properties":{{"requiredScope":"integrations.write"}}}}"#
        );
        Failure::Refused(serde_json::from_str(&problem).expect("a Problem"))
    }

    #[test]
    fn each_end_has_its_documented_exit_code() {
        let unreachable = Failure::Unreachable { address: "http://a".to_owned(), reason: "refused".to_owned() };
        for (failure, code) in [
            (refused(404, "delivery-not-found"), 1),
            (refused(503, "service-unavailable"), 1),
            (Failure::Usage("No.".to_owned()), 2),
            (unreachable, 3),
            (Failure::NotLoggedIn("address".to_owned()), 4),
            (Failure::DamagedLogin("login.json".into()), 4),
            (Failure::NoProfile { name: "live".to_owned(), stored: Vec::new() }, 4),
            (refused(403, "may-not-publish"), 4),
            (Failure::Unverified { reason: "No.".to_owned(), next: "Yes.".to_owned() }, 1),
            (Failure::NothingFound { reason: "No.".to_owned(), next: "Yes.".to_owned() }, 1),
            (Failure::Interrupted, 130),
            (refused(401, "invalid-client"), 4),
            (refused(403, "insufficient-scope"), 4),
            (refused(400, "invalid-scope"), 4),
            (refused(400, "invalid-request"), 2),
            (refused(404, "event-type-not-found"), 2),
        ] {
            assert_eq!(failure.code(), code, "{failure:?}");
        }
    }

    #[test]
    fn a_program_gets_the_problem_and_people_get_sentences() {
        let (json, text) = (Output { json: true }, Output { json: false });
        let mut failure = refused(404, "webhook-not-found");
        if let Failure::Refused(problem) = &mut failure {
            problem.json = r#"{"kind":"webhook-not-found"}"#.to_owned();
        }
        assert_eq!(failure.reported(json), "{\"kind\":\"webhook-not-found\"}\n");
        assert_eq!(failure.reported(text), failure.message());
        assert_eq!(Failure::Interrupted.reported(json), "error: interrupted\n");
    }

    #[test]
    fn a_message_names_the_scope_that_is_missing() {
        let message = refused(403, "insufficient-scope").message();
        assert!(message.starts_with("error: No.\nnext: ") && message.contains("integrations.write"), "{message}");
    }

    #[test]
    fn a_refused_webhook_is_named_in_the_next_step() {
        let disabled = || refused(409, "webhook-disabled");
        let named = disabled().of_request(&["webhook", "whk_1", "recover"]).message();
        assert!(named.ends_with("next: `waypost webhooks change whk_1 --enable` enables it\n"), "{named}");
        let rotated = refused(409, "previous-secret-live").of_request(&["webhook", "whk_1", "secret"]).message();
        assert!(rotated.contains("`waypost webhooks rotate whk_1 --at-once`"), "{rotated}");
        let unnamed = disabled().of_request(&["webhook", "delivery", "dlv_1", "resend"]).message();
        assert!(unnamed.contains("find the webhook with `waypost webhooks`"), "{unnamed}");
    }

    #[test]
    fn a_wrong_range_is_refused_with_the_names_of_the_options() {
        let message = |problem: &str| {
            Failure::Refused(serde_json::from_str(problem).expect("a Problem")).naming_options().message()
        };
        let one = r#"{"kind":"invalid-request","detail":"`createdFrom` must be in the past","status":400,"properties":{
            "violations":[{"in":"body","pointer":"/createdFrom","code":"out-of-range","detail":"must be in the past"}]}}"#;
        assert_eq!(message(one), "error: `--from` must be in the past\n");
        let two = r#"{"kind":"invalid-request","detail":"No.","status":400,"properties":{"violations":[
            {"in":"body","pointer":"/createdUntil","code":"inconsistent","detail":"must be after createdFrom"},
            {"in":"body","pointer":"/types/0","code":"unknown-value","detail":"is unknown"}]}}"#;
        let expected = "error: 2 values are invalid:\n  `--until` must be after --from\n  `types[0]` is unknown\n";
        assert_eq!(message(two), expected);
    }

    #[test]
    fn each_of_several_violations_is_listed() {
        let problem = r#"{"kind":"invalid-request","detail":"`name` must not be empty, …","status":400,"properties":{"violations":[
            {"in":"body","pointer":"/name","code":"required","detail":"must not be empty"},
            {"in":"body","pointer":"/eventList/0","code":"unknown-value","detail":"is unknown"}]}}"#;
        let message = Failure::Refused(serde_json::from_str(problem).expect("a Problem")).message();
        assert_eq!(message, "error: 2 values are invalid:\n  `name` must not be empty\n  `eventList[0]` is unknown\n");
    }

    #[test]
    fn a_sentence_has_one_full_stop() {
        assert_eq!(refused(503, "service-unavailable").sentence(), "No.");
        assert_eq!(Failure::Interrupted.sentence(), "interrupted.");
    }

    #[test]
    fn a_failure_of_the_service_names_its_request() {
        assert!(refused(500, "internal-error").message().contains("urn:uuid:1"));
    }

    #[test]
    fn only_failures_that_may_pass_are_temporary() {
        assert!(refused(503, "service-unavailable").is_temporary() && refused(429, "too-many-requests").is_temporary());
        assert!(!refused(404, "webhook-not-found").is_temporary() && !refused(401, "unauthorized").is_temporary());
    }
}
