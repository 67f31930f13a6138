//! The one place where clients of the token issuer are authenticated, by a secret (RFC 6749 §2.3)
//! or by an assertion (RFC 7523), and where guessing ends.

use std::{net::IpAddr, time::Duration};

use super::{
    assertion::{self, AssertionFault, ClientAssertion, UsedAssertions},
    credentials::{Credentials, Proof, Unreadable, unauthenticated},
    guesses::{GuessSettings, Guesses},
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
    /// The issuer's address, without a slash at its end.
    issuer: String,
}

/// The facts of a client's request that authentication needs beside its form.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// The request's own identifier: an assertion is good for one request.
    pub id: &'a str,
    /// The path that the request was sent to. With the issuer's address before it, it is an
    /// audience of assertions.
    pub path: &'a str,
    /// The address that the request came from; attempts are counted for it.
    pub source: Option<IpAddr>,
    /// Takes the client, its credential and the token for the audit line.
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
    /// Its name for the owner: a secret's identifier, or a key's name.
    pub name: String,
    /// Its name in tokens: a secret's identifier, or a key's thumbprint, since another key may get
    /// the name later.
    pub id: String,
}

/// Why credentials are not accepted. For the log: the answer says only that the client was not
/// authenticated.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The secret is not a live one of the application, or there is no application.
    #[error("there is no such application, or the secret is none of its live ones")]
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
    /// Too many attempts have failed from the client's address.
    #[error("too many attempts have failed from this address; the next is taken in {} s", wait.as_secs())]
    TooManyAttempts {
        /// How long no attempt is taken.
        wait: Duration,
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

/// Why credentials prove no identity.
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
    /// Whether the client may look at a token, or end it: at its own, or at any if the client is
    /// platform-wide and has the scope for doing so with accounts.
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

    /// The application that these credentials are good for, and which of its credentials they are.
    /// The answer is the same whatever is wrong with them.
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
        if let Some(wait) = tally.blocked(now) {
            return Err(AuthenticationError::TooManyAttempts { wait, source: None });
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
                    Some(wait) => AuthenticationError::TooManyAttempts { wait, source: Some(refusal) },
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

    /// Notes a use once a day, so that a token costs no write. After a failure the next use is noted.
    async fn note_use(&self, Authenticated { application, credential }: &Authenticated, now: Time) {
        let today = now.day();
        let credential = &credential.name;
        if application.last_used.get(credential).is_some_and(|day| *day == today) {
            return;
        }
        if let Err(error) = self.applications.note_use(&application.client_id, credential, &today).await {
            tracing::warn!(error = %logging::chain(&error), "the use of a credential could not be noted");
        }
    }
}

/// The audiences that mean this issuer at a path: its address, and those of the token endpoint and of the path (RFC 7523
/// §3). Libraries that parse the address, such as the Python SDK of the Model Context Protocol, add the path `/` where it
/// has none, which makes no other address of it (RFC 3986 §6.2.3).
fn audiences(issuer: &str, path: &str) -> Vec<String> {
    let has_path = issuer.split_once("://").is_none_or(|(_, rest)| rest.contains('/'));
    let slash = (!has_path).then_some("/");
    ["", "/oauth2/token", path].into_iter().chain(slash).map(|end| format!("{issuer}{end}")).collect()
}

/// The application whose secret this is. The hash is computed and compared also for a client that
/// does not exist, so that time tells nothing.
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
            AuthenticationError::TooManyAttempts { wait, source: None } => too_many_attempts(wait),
            AuthenticationError::TooManyAttempts { wait, source: Some(source) } => {
                too_many_attempts(wait).caused_by(source)
            }
            AuthenticationError::Pepper(error) => error.into(),
            AuthenticationError::Table(error) => error.into(),
        }
    }
}

fn too_many_attempts(wait: Duration) -> Problem {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let seconds = seconds.max(1);
    let detail =
        format!("Too many attempts to authenticate have failed from this address; try again in {seconds} seconds.");
    Problem::new(ProblemKind::TooManyAttempts, detail).with_retry_after(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_at_the_end_is_the_same_audience_where_the_issuer_has_no_path() {
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
