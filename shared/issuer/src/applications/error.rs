//! The error of the application use cases.

use std::time::Duration;

use http::header::WWW_AUTHENTICATE;
use serde_json::json;

use super::{client_key::MAX_KEYS, client_secret::MAX_SECRETS, new_application::MAX_APPLICATIONS};
use auth::Scopes;
use base::{ClientSecretId, Time};
use problem::{Problem, ProblemKind};
use storage::{Allowance, IdempotencyError, SecretError, TableError};

/// Why an application was not shown, created, changed or removed.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationError {
    /// The caller has no such application. Another entity's application gives the same error.
    #[error("there is no application `{0}`")]
    NotFound(String),
    /// The application has no such secret or key.
    #[error("the application has no secret or key `{0}`")]
    CredentialNotFound(String),
    /// The application has scopes that the caller's token lacks.
    #[error("the caller's token lacks these scopes of the application: {0}")]
    ExceedsScopes(Scopes),
    /// The application may act for managing entities that the caller's token does not cover.
    #[error("the caller's token does not cover all the application's managing entities")]
    ExceedsEntities(Vec<String>),
    /// The application may publish events, but the caller's token may not.
    #[error("the application may publish events, and the caller's token may not")]
    ExceedsPublishing,
    /// The application's own token would end or narrow its access, and the request does not confirm that.
    #[error("the request would end or reduce the application's own access, and does not confirm this")]
    Unconfirmed,
    /// A concurrent change came first; the application now has this version.
    #[error("another request changed the application; its version is now {0}")]
    Changed(u64),
    /// The entity has the maximum number of applications.
    #[error("the entity already has {MAX_APPLICATIONS} applications")]
    TooManyApplications,
    /// The application has the maximum number of live secrets; the first one to end does so at this time.
    #[error("the application already has {MAX_SECRETS} active secrets; the older one expires at {0}")]
    TooManySecrets(Time),
    /// The application has the maximum number of keys.
    #[error("the application has {MAX_KEYS} keys")]
    TooManyKeys,
    /// The application already has a key with this name.
    #[error("the application already has a key with the name `{0}`")]
    KeyExists(String),
    /// This hour's allowance is used up; the next hour begins after this time.
    #[error("the entity has reached its hourly limit for new credentials, which resets in {} s", .0.as_secs())]
    AllowanceSpent(Duration),
    /// The idempotency key was used with another request, or its response is not repeated.
    #[error(transparent)]
    Idempotency(#[from] IdempotencyError),
    /// The pepper could not be read.
    #[error(transparent)]
    Pepper(#[from] SecretError),
    /// The table could not be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl From<ApplicationError> for Problem {
    fn from(error: ApplicationError) -> Self {
        match error {
            ApplicationError::NotFound(_) => {
                let detail = "There is no such application; it may have been removed.";
                Self::new(ProblemKind::ApplicationNotFound, detail)
            }
            ApplicationError::CredentialNotFound(_) => {
                let detail = "The application has no such secret or key; it may have been removed.";
                Self::new(ProblemKind::CredentialNotFound, detail)
            }
            ApplicationError::ExceedsScopes(lacking) => {
                let detail = format!(
                    "Your token lacks these scopes of the application: {lacking}. To create, change or remove an \
                     application, a token needs all its scopes."
                );
                let challenge = format!(r#"Bearer error="insufficient_scope", scope="{lacking}""#);
                Self::new(ProblemKind::InsufficientScope, detail)
                    .with_header(WWW_AUTHENTICATE, challenge)
                    .with_property("requiredScope", lacking.to_string())
            }
            ApplicationError::ExceedsEntities(foreign) => {
                let detail =
                    "To create, change or remove an application, your token must cover all its managing entities.";
                Self::new(ProblemKind::EntityNotCovered, detail).with_property("notCovered", json!(foreign))
            }
            ApplicationError::ExceedsPublishing => {
                let detail = "The application may publish events, but your token may not. To create, change or remove \
                    an application, a token needs all its rights. Use a token with the claim `may_publish`, or create \
                    the application without `mayPublish`.";
                Self::new(ProblemKind::MayNotPublish, detail)
            }
            ApplicationError::Unconfirmed => {
                let detail = "Nothing was done, because this request would end or reduce the access of the \
                    application that sent it. To confirm, send it again with ?confirm=true.";
                Self::new(ProblemKind::ConfirmationRequired, detail)
            }
            ApplicationError::Changed(current) => {
                let detail = format!(
                    "Another request changed the application; its version is now {current}. Your request was not \
                     applied. Fetch the application again, and repeat the request if you still want the change."
                );
                Self::new(ProblemKind::VersionConflict, detail).with_property("currentVersion", current)
            }
            ApplicationError::TooManyApplications => {
                let detail = format!(
                    "The managing entity already has {MAX_APPLICATIONS} applications, the maximum; remove one first."
                );
                Self::new(ProblemKind::ApplicationLimit, detail).with_limit("applications", MAX_APPLICATIONS)
            }
            ApplicationError::TooManySecrets(oldest_ends) => {
                let detail = format!(
                    "The application already has {MAX_SECRETS} active secrets; the older one expires at {oldest_ends}. \
                     Wait until then, or remove one."
                );
                Self::new(ProblemKind::ClientSecretLimit, detail)
                    .with_limit("client-secrets", MAX_SECRETS)
                    .with_property("oldestEndsDate", oldest_ends.to_string())
            }
            ApplicationError::TooManyKeys => {
                let detail =
                    format!("The application already has {MAX_KEYS} public keys, the maximum; remove one first.");
                Self::new(ProblemKind::KeyLimit, detail).with_limit("public-keys", MAX_KEYS)
            }
            ApplicationError::KeyExists(kid) => {
                let detail = format!(
                    "The application already has a key `{kid}`; remove it first, or give the new key another `kid`."
                );
                Self::new(ProblemKind::KeyExists, detail).with_property("kid", kid)
            }
            ApplicationError::AllowanceSpent(wait) => {
                let seconds = wait.as_secs() + 1;
                let detail = format!(
                    "The managing entity has reached its hourly limit for new applications, secrets and keys; try \
                     again in {seconds} seconds."
                );
                Self::rate_limited(
                    ProblemKind::TooManyCredentials,
                    detail,
                    Allowance::Credentials.rate_limit(),
                    seconds,
                )
            }
            ApplicationError::Idempotency(error) => error.into_problem(another_secret),
            ApplicationError::Pepper(error) => error.into(),
            ApplicationError::Table(error) => error.into(),
        }
    }
}

/// How a client gets another secret if it lost the response containing the first one.
fn another_secret(made: &str) -> String {
    if ClientSecretId::parse(made).is_some() {
        let end = format!("`DELETE …/application/{{clientId}}/secret/{made}` removes this one");
        format!(
            "the application has the secret {made}; `POST …/application/{{clientId}}/secret` with a new key gives it another one, and {end}"
        )
    } else {
        format!("the application {made} exists; `POST …/application/{made}/secret` gives it another secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Time, testing::CountingRandom};

    #[test]
    fn the_detail_for_a_lost_secret_names_the_call_for_another_one() {
        let said =
            |id: String| Problem::from(ApplicationError::Idempotency(IdempotencyError::SecretOver { id })).detail;
        assert!(said("appX".to_owned()).contains("`POST …/application/appX/secret` gives it another secret"));
        let secret = ClientSecretId::new(Time::from_millis(0), &CountingRandom::default());
        let beside = said(secret.to_string());
        assert!(
            beside.contains(&format!("`DELETE …/application/{{clientId}}/secret/{secret}` removes this one")),
            "{beside}"
        );
    }
}
