//! Who is asking: the one place where clients of the token issuer are authenticated, by a secret (RFC 6749 §2.3) or by an
//! assertion (RFC 7523), and where guessing ends.

use std::time::Duration;

use super::{
    assertion::{self, AssertionFault, ClientAssertion, UsedAssertions},
    credentials::{Credentials, Proof, Unreadable},
    guesses::{GuessSettings, Guesses},
    pepper::{Pepper, PepperSource},
};
use crate::applications::{Application, Applications};
use base::{
    clock::{SharedClock, Time},
    logging,
};
use gate::Call;
use problem::{Problem, ProblemKind};
use storage::{
    secrets::{SecretBytes, SecretText, Secrets},
    table::Table,
};

/// Authenticates clients.
pub struct ClientAuthentication {
    applications: Applications,
    pepper: Pepper,
    guesses: Guesses,
    used: UsedAssertions,
    /// The issuer's address, without a slash at its end.
    issuer: String,
    clock: SharedClock,
}

/// A client that has proven who it is.
pub struct Authenticated {
    /// The application.
    pub application: Application,
    /// What proved it.
    pub credential: Credential,
}

/// A secret or a key that proved who a client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// What its owner calls it: a secret's identifier, or a key's name.
    pub name: String,
    /// What tokens call it: a secret's identifier, or a key's thumbprint, since another key may get the name later.
    pub id: String,
}

/// Why credentials are not accepted. For the log: the client is told only that it was not authenticated.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("there is no such application, or the secret is none of its live ones")]
    Secret,
    #[error(transparent)]
    Assertion(#[from] AssertionFault),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

impl ClientAuthentication {
    /// Reads the pepper and what else can be read before, so that the first request need not.
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
            pepper: Pepper::warm(PepperSource(secrets), clock.clone()).await,
            guesses: Guesses::new(table.clone(), limits),
            used: UsedAssertions::new(table.clone()),
            issuer,
            clock,
        }
    }

    /// The application that these credentials are good for, and which of its own they are.
    ///
    /// # Errors
    /// 401 `invalid-client`, the same for whatever is wrong with them; 429 after too many failed attempts from the caller's
    /// address; 503 when one could not be counted.
    pub async fn authenticate(&self, call: &Call, credentials: Credentials) -> Result<Authenticated, Problem> {
        call.notes.client(&credentials.client_id);
        let (found, tally, pepper) = tokio::join!(
            self.applications.find(&credentials.client_id),
            self.guesses.tally(call.source_address(), &credentials.client_id),
            self.pepper.get(),
        );
        let (found, tally, pepper, now) = (found?, tally?, pepper?, self.clock.now());
        if let Some(wait) = tally.blocked(now) {
            return Err(too_many_guesses(wait));
        }
        let proven = match &credentials.proof {
            Proof::Secret(secret) => by_secret(found, secret, &pepper, now).ok_or(Refusal::Secret),
            Proof::Assertion(assertion) => self.by_assertion(call, found, assertion, now).await?.map_err(Refusal::from),
            Proof::Unreadable(fault) => Err(Refusal::from(*fault)),
        };
        match proven {
            Ok(client) => {
                call.notes.credential(&client.credential.name);
                self.note_use(&client, now).await;
                Ok(client)
            }
            Err(refusal) => {
                let tally = self.guesses.count(&tally, now).await?;
                let exceeded = tally.exceeded(now).then(|| tally.blocked(now)).flatten();
                Err(exceeded.map_or_else(|| credentials.refused(), too_many_guesses).caused_by(refusal))
            }
        }
    }

    async fn by_assertion(
        &self,
        call: &Call,
        found: Option<Application>,
        assertion: &ClientAssertion,
        now: Time,
    ) -> Result<Result<Authenticated, AssertionFault>, Problem> {
        let [token, own] = ["/oauth2/token", call.whole_path()].map(|path| format!("{}{path}", self.issuer));
        let keys = found.as_ref().map_or(&[][..], |application| &application.keys);
        let signer = match assertion.check(&[&self.issuer, &token, &own], now).and_then(|()| assertion.signer(keys)) {
            Ok(key) => Credential { name: key.kid.clone(), id: key.thumbprint() },
            Err(fault) => return Ok(Err(fault)),
        };
        let first = self.used.note(assertion, &call.request_id, now).await?;
        let client = found.map(|application| Authenticated { application, credential: signer });
        Ok(first.and_then(|()| client.ok_or(AssertionFault::Signature)))
    }

    /// A use is noted once a day, so that a token costs no write. What could not be noted is noted at the next use.
    async fn note_use(&self, Authenticated { application, credential }: &Authenticated, now: Time) {
        let (today, credential) = (now.day(), &credential.name);
        if application.last_used.get(credential).is_some_and(|day| *day == today) {
            return;
        }
        if let Err(error) = self.applications.note_use(&application.client_id, credential, &today).await {
            tracing::warn!(error = %logging::chain(&error), "the use of a credential could not be noted");
        }
    }
}

/// The application whose secret this is. The hash is computed and compared also for a client that does not exist, so
/// that time tells nothing.
fn by_secret(
    found: Option<Application>,
    secret: &SecretText,
    pepper: &SecretBytes,
    now: Time,
) -> Option<Authenticated> {
    let Some(application) = found else {
        Applications::compare_with_nothing(secret.expose(), pepper);
        return None;
    };
    let name = application.secret(secret.expose(), pepper, now)?.id.to_string();
    let credential = Credential { id: name.clone(), name };
    Some(Authenticated { application, credential })
}

/// There were too many failed attempts to authenticate, from the caller's address, until so much later.
fn too_many_guesses(wait: Duration) -> Problem {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let seconds = seconds.max(1);
    let detail =
        format!("Too many attempts to authenticate have failed from this address; try again in {seconds} seconds.");
    Problem::new(ProblemKind::TooManyAttempts, detail).with_retry_after(seconds)
}
