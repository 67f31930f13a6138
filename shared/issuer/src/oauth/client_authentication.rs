//! The only module that authenticates clients of the token issuer: by a secret (RFC 6749 §2.3) or by an assertion (RFC
//! 7523), with a limit on guessing.

use std::net::IpAddr;

use super::{
    assertion::{self, AssertionFault, ClientAssertion, UsedAssertions},
    credentials::{Credentials, Proof, Unreadable, unauthenticated},
    guesses::{Blocked, GuessSettings, Guesses},
    pepper::{Pepper, PepperSource},
};
use crate::applications::{Application, Applications};
use auth::{Claims, Entities, Scope};
use base::{SharedClock, Time, audit::Notes, logging};
use problem::{Problem, ProblemKind};
use storage::{SecretBytes, SecretError, SecretText, Secrets, Table, TableError, Written};

/// Authenticates clients.
pub struct ClientAuthentication {
    applications: Applications,
    pepper: Pepper,
    guesses: Guesses,
    used: UsedAssertions,
    /// The issuer's address, without a trailing slash.
    issuer: String,
}

/// The parts of a client's request that authentication needs, besides the form.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// The request's identifier: an assertion is valid for one request.
    pub id: &'a str,
    /// The request path. The issuer's address with this path is a valid audience of assertions.
    pub path: &'a str,
    /// The source address, by which failed attempts are counted.
    pub source: Option<IpAddr>,
    /// Collects the client, its credential and the token for the audit line.
    pub notes: &'a Notes,
}

/// A client that has proven its identity.
pub struct Authenticated {
    /// The application.
    pub application: Application,
    /// The proof.
    pub credential: Credential,
}

/// A secret or a key that proved a client's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The name for the owner: a secret's identifier, or a key's name.
    pub name: String,
    /// The name in tokens: a secret's identifier, or a key's thumbprint, since another key may take the name later.
    pub id: String,
}

/// Why credentials are not accepted. Only the log shows the reason: the response merely says that the client was not
/// authenticated.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The application does not exist, or the secret is not one of its active secrets.
    #[error("the application does not exist, or the secret is not one of its active secrets")]
    Secret,
    /// The assertion is not accepted.
    #[error(transparent)]
    Assertion(#[from] AssertionFault),
    /// The credentials cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// Why a client was not authenticated.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticationError {
    /// The credentials are not accepted.
    #[error("the client is not authenticated")]
    Refused(#[source] Refusal),
    /// Too many attempts from the client's address have failed.
    #[error("too many failed attempts from this address; the next one is accepted in {} s", blocked.wait.as_secs())]
    TooManyAttempts {
        /// The limit, and how long every attempt is refused.
        blocked: Blocked,
        /// Why the credentials are not accepted, if they were checked.
        source: Option<Refusal>,
    },
    /// The pepper could not be read.
    #[error(transparent)]
    Pepper(#[from] SecretError),
    /// The table could not be read, or a failed attempt could not be counted.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Why credentials do not prove an identity.
enum Unproven {
    Refused(Refusal),
    Table(TableError),
}

impl<R: Into<Refusal>> From<R> for Unproven {
    fn from(refusal: R) -> Self {
        Self::Refused(refusal.into())
    }
}

impl Authenticated {
    /// Whether the client may inspect or revoke a token: its own, or any token if the client is platform-wide and has
    /// `scope`.
    pub fn may_ask_about(&self, claims: &Claims, scope: Scope) -> bool {
        let Application { client_id, entities, scopes, .. } = &self.application;
        *client_id == claims.client_id || entities.cover(Entities::EVERY) && scopes.contains(scope)
    }
}

impl ClientAuthentication {
    /// Reads the pepper and the decoys before the first request.
    pub async fn start(
        table: &Table,
        secrets: Secrets,
        limits: GuessSettings,
        issuer: String,
        clock: SharedClock,
    ) -> Self {
        assertion::prepare();
        Self {
            applications: Applications::new(table.clone()),
            pepper: Pepper::warm(PepperSource(secrets), clock).await,
            guesses: Guesses::new(table.clone(), limits),
            used: UsedAssertions::new(table.clone()),
            issuer,
        }
    }

    /// Authenticates a client. Returns its application and the credential that it used. The response is the same for
    /// every fault in the credentials.
    pub async fn authenticate(
        &self,
        credentials: &Credentials,
        request: &RequestContext<'_>,
        now: Time,
    ) -> Result<Authenticated, AuthenticationError> {
        request.notes.client(&credentials.client_id);
        let (found, tally, pepper) = tokio::join!(
            self.applications.find(&credentials.client_id),
            self.guesses.tally(request.source, &credentials.client_id),
            self.pepper.get(),
        );
        let found = found?;
        let tally = tally?;
        let pepper = pepper?;
        if let Some(blocked) = tally.blocked(now) {
            return Err(AuthenticationError::TooManyAttempts { blocked, source: None });
        }
        let proven = match &credentials.proof {
            Proof::Secret(secret) => by_secret(found, secret, &pepper, now).ok_or_else(|| Refusal::Secret.into()),
            Proof::Assertion(assertion) => self.by_assertion(request, found, assertion, now).await,
            Proof::Unreadable(fault) => Err((*fault).into()),
        };
        match proven {
            Ok(client) => {
                request.notes.credential(&client.credential.name);
                self.note_use(&client, now).await;
                Ok(client)
            }
            Err(Unproven::Table(error)) => Err(error.into()),
            Err(Unproven::Refused(refusal)) => {
                let tally = self.guesses.count(&tally, now).await?;
                Err(match tally.exceeded(now).then(|| tally.blocked(now)).flatten() {
                    Some(blocked) => AuthenticationError::TooManyAttempts { blocked, source: Some(refusal) },
                    None => AuthenticationError::Refused(refusal),
                })
            }
        }
    }

    async fn by_assertion(
        &self,
        request: &RequestContext<'_>,
        found: Option<Application>,
        assertion: &ClientAssertion,
        now: Time,
    ) -> Result<Authenticated, Unproven> {
        let ours = audiences(&self.issuer, request.path);
        let keys = found.as_ref().map_or(&[][..], |application| &application.keys);
        assertion.check(&ours.iter().map(String::as_str).collect::<Vec<_>>(), now)?;
        let key = assertion.signer(keys)?;
        let credential = Credential { name: key.kid.clone(), id: key.thumbprint() };
        if let Written::Lost(_) = self.used.note(assertion, request.id, now).await.map_err(Unproven::Table)? {
            return Err(AssertionFault::Replayed.into());
        }
        let application = found.ok_or(AssertionFault::Signature)?;
        Ok(Authenticated { application, credential })
    }

    /// Notes a use only once a day, so that issuing a token costs no write. If that fails, the next use is noted
    /// instead.
    async fn note_use(&self, Authenticated { application, credential }: &Authenticated, now: Time) {
        let today = now.day();
        let credential = &credential.name;
        if application.last_used.get(credential).is_some_and(|day| *day == today) {
            return;
        }
        if let Err(error) = self.applications.note_use(&application.client_id, credential, &today).await {
            tracing::warn!(error = %logging::chain(&error), "the use of a credential could not be recorded");
        }
    }
}

/// The accepted audiences of an assertion: the issuer's address, and those of the token endpoint and of the path (RFC
/// 7523 §3). Libraries that parse an address without a path, such as the Python SDK of the Model Context Protocol, add
/// `/`; the two forms are equivalent (RFC 3986 §6.2.3).
fn audiences(issuer: &str, path: &str) -> Vec<String> {
    let has_path = issuer.split_once("://").is_none_or(|(_, rest)| rest.contains('/'));
    let slash = (!has_path).then_some("/");
    ["", "/oauth2/token", path].into_iter().chain(slash).map(|end| format!("{issuer}{end}")).collect()
}

/// Checks an application's secret. A secret is hashed and compared even if the client does not exist, so that response
/// times reveal nothing.
fn by_secret(
    found: Option<Application>,
    secret: &SecretText,
    pepper: &SecretBytes,
    now: Time,
) -> Option<Authenticated> {
    let Some(application) = found else {
        Applications::compare_with_decoy(secret.expose(), pepper);
        return None;
    };
    let name = application.secret(secret.expose(), pepper, now)?.id.to_string();
    let credential = Credential { id: name.clone(), name };
    Some(Authenticated { application, credential })
}

impl From<AuthenticationError> for Problem {
    fn from(error: AuthenticationError) -> Self {
        match error {
            AuthenticationError::Refused(source) => unauthenticated().caused_by(source),
            AuthenticationError::TooManyAttempts { blocked, source: None } => too_many_attempts(blocked),
            AuthenticationError::TooManyAttempts { blocked, source: Some(source) } => {
                too_many_attempts(blocked).caused_by(source)
            }
            AuthenticationError::Pepper(error) => error.into(),
            AuthenticationError::Table(error) => error.into(),
        }
    }
}

fn too_many_attempts(Blocked { limit, wait }: Blocked) -> Problem {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let seconds = seconds.max(1);
    let detail = format!("Too many failed authentication attempts from this address; try again in {seconds} seconds.");
    Problem::rate_limited(ProblemKind::TooManyAttempts, detail, limit, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailing_slash_is_ignored_where_the_issuer_has_no_path() {
        let of = |issuer: &str| audiences(issuer, "/oauth2/revoke");
        for issuer in ["https://auth.example.com", "http://127.0.0.1:8081"] {
            let [alone, slash] = [issuer.to_owned(), format!("{issuer}/")];
            assert!(of(issuer).contains(&alone) && of(issuer).contains(&slash), "{issuer}");
            assert!(of(issuer).contains(&format!("{issuer}/oauth2/revoke")), "{issuer}");
        }
        let with_path = "https://example.com/auth";
        assert_eq!(of(with_path), ["", "/oauth2/token", "/oauth2/revoke"].map(|end| format!("{with_path}{end}")));
    }
}
