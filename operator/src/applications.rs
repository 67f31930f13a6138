//! Manages applications for an operator: the functions' use cases, but for every managing entity, without an allowance
//! or a token. The audit trail records each change.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Deployment, deployment, whole_table};
use auth::{EntityId, Scopes};
use base::audit::{Action, Notes};
use base::{Clock, SystemClock, SystemRandom, Time};
use issuer::{
    applications::{
        Application, ApplicationError as Cause, Applications,
        caller::Caller,
        change::ApplicationChange,
        client_secret,
        credential_removal::{CredentialName, CredentialRemoval, CredentialRemoved},
        new_application::{NewApplication, fresh_client_id},
        register::{Created, Registration},
        secrets::AddedSecret,
    },
    oauth::pepper::{Pepper, PepperSource},
};
use storage::{Allowances, IdempotencyStore, KeyRings, Once, SecretError, SecretText, Secrets, Table};

const OPERATOR: Caller<'static> = Caller::of_operator();

/// Manages a deployment's applications.
pub struct OperatorsApplications {
    table: Table,
    applications: Applications,
    allowances: Allowances,
    answers: IdempotencyStore,
    secrets: Secrets,
    environment: String,
}

/// A client's identifier and its secret.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// `app` and 22 letters and digits.
    pub client_id: String,
    /// 43 letters and digits: 256 bits.
    pub client_secret: String,
}

/// Why an application was not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationError {
    /// The pepper's secret has no value.
    #[error("the secret {0} has no value; `waypost-admin provision` creates one")]
    NoPepper(String),
    /// No application has this client identifier.
    #[error(
        "there is no application {0}; `waypost-admin application list ENTITY` lists a managing entity's \
        applications"
    )]
    NoApplication(String),
    /// The application already has two secrets.
    #[error(
        "the application already has two active secrets, and the older one expires at {0}; wait until then, or remove \
         one with `remove-secret`"
    )]
    TooManySecrets(Time),
    /// The application lacks this secret or key.
    #[error("the application has no secret or key {0}; `waypost-admin application show CLIENT_ID` lists them")]
    NoCredential(String),
    /// The application could not be read or changed.
    #[error(transparent)]
    Other(Cause),
}

impl ApplicationError {
    /// Whether the current state rules out the request, in which case nothing was changed and a retry would fail again.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

impl From<Cause> for ApplicationError {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Pepper(SecretError::Missing { name }) => Self::NoPepper(name),
            Cause::NotFound(client_id) => Self::NoApplication(client_id),
            Cause::TooManySecrets(end) => Self::TooManySecrets(end),
            Cause::CredentialNotFound(name) => Self::NoCredential(name),
            other => Self::Other(other),
        }
    }
}
impl OperatorsApplications {
    /// Manages this deployment's applications.
    pub fn of(deployment: &Deployment) -> Self {
        let secrets = Secrets::new(deployment.secrets.clone(), &deployment.secrets_prefix);
        Self::new(&deployment.table, secrets, &deployment.environment)
    }

    /// Manages the applications in this table, for the deployment with this name and these secrets.
    pub fn new(table: &Table, secrets: Secrets, environment: &str) -> Self {
        let rings = KeyRings::new(secrets.clone(), Arc::new(SystemClock));
        Self {
            table: table.clone(),
            applications: Applications::new(table.clone()),
            allowances: Allowances::new(table.clone()),
            answers: IdempotencyStore::sealed(table.clone(), rings, Arc::new(SystemRandom)),
            secrets,
            environment: environment.to_owned(),
        }
    }

    /// Creates an application.
    pub async fn create(&self, new: NewApplication) -> Result<Created, ApplicationError> {
        let notes = Notes::default();
        let created = self.registration().create(&OPERATOR, new, &notes, SystemClock.now()).await?;
        deployment::audit(&self.environment, Action::CreateApplication, &notes);
        Ok(created)
    }

    /// Creates an application with these credentials, unless it exists. Logs a warning if the existing one does not
    /// accept them.
    pub async fn ensure(&self, new: NewApplication, credentials: &Credentials) -> Result<(), ApplicationError> {
        let Credentials { client_id, client_secret } = credentials;
        let secret = SecretText::new(client_secret);
        let known = (client_id.as_str(), &secret);
        if !self.registration().ensure(&OPERATOR, new, known, SystemClock.now()).await? {
            tracing::warn!(
                "the application {client_id} does not accept the secret in service.env: its secret was replaced, or \
                 client-secret-pepper differs from the one that the table was written with, so no client can \
                 authenticate"
            );
        }
        Ok(())
    }

    /// The application with this client identifier.
    pub async fn find(&self, client_id: &str) -> Result<Application, ApplicationError> {
        Ok(self.applications.show(&OPERATOR, client_id, &Notes::default()).await?)
    }

    /// The applications that a managing entity manages, newest first.
    pub async fn of_owner(&self, owner: &EntityId) -> Result<Vec<Application>, ApplicationError> {
        Ok(self.applications.of(owner).await.map_err(Cause::from)?)
    }

    /// All of the deployment's applications, by managing entity, newest first. Reads the whole table.
    pub async fn all(&self) -> Result<Vec<Application>, ApplicationError> {
        let found =
            whole_table::find::<Application>(&self.table, Applications::of_all_owners(), "listing applications");
        let mut all: Vec<_> =
            found.await.map_err(Cause::from)?.into_iter().map(|(_, application)| application).collect();
        all.sort_by(|one, other| (&one.owner, other.created_date).cmp(&(&other.owner, one.created_date)));
        Ok(all)
    }

    /// Grants an application the right to publish events, or withdraws it. A withdrawal ends the application's tokens
    /// within a minute.
    pub async fn let_publish(&self, client_id: &str, may_publish: bool) -> Result<Application, ApplicationError> {
        let notes = Notes::default();
        let now = SystemClock.now();
        let changed = self.applications.let_publish(&OPERATOR, client_id, may_publish, &notes, now).await?;
        deployment::audit(&self.environment, Action::ChangeApplication, &notes);
        Ok(changed)
    }

    /// Sets the scopes that an application may request. If it loses one, its tokens end within a minute.
    pub async fn set_scopes(&self, client_id: &str, scopes: Scopes) -> Result<Application, ApplicationError> {
        let notes = Notes::default();
        let change = ApplicationChange { scopes: Some(scopes), ..ApplicationChange::default() };
        let once = (false, Once::NO_KEY);
        let changed = self.applications.change(&OPERATOR, client_id, change, once, &notes, SystemClock.now()).await?;
        deployment::audit(&self.environment, Action::ChangeApplication, &notes);
        Ok(changed.state)
    }

    /// Adds a secret to an application. The previous secret is accepted during the overlap.
    pub async fn add_secret(&self, client_id: &str, overlap: Duration) -> Result<AddedSecret, ApplicationError> {
        let notes = Notes::default();
        let added = self.registration().add_secret(&OPERATOR, client_id, overlap, &notes, SystemClock.now()).await?;
        deployment::audit(&self.environment, Action::CreateSecret, &notes);
        Ok(added)
    }

    /// Ends a secret or removes a public key. The tokens that were issued for that credential end within a minute.
    pub async fn remove_credential(
        &self,
        client_id: &str,
        credential: CredentialName<'_>,
    ) -> Result<CredentialRemoved, ApplicationError> {
        let notes = Notes::default();
        let now = SystemClock.now();
        let action = match credential {
            CredentialName::Secret(_) => Action::RemoveSecret,
            CredentialName::Key(_) => Action::RemoveKey,
        };
        let removal = CredentialRemoval { credential, confirmed: true, once: Once::NO_KEY };
        let removal = self.applications.remove_credential(&OPERATOR, client_id, removal, &notes, now);
        let removed = removal.await?;
        deployment::audit(&self.environment, action, &notes);
        Ok(removed)
    }

    /// Removes an application and revokes its tokens.
    pub async fn remove(&self, client_id: &str) -> Result<Application, ApplicationError> {
        let notes = Notes::default();
        let removed = self.applications.remove(&OPERATOR, client_id, true, None, &notes, SystemClock.now()).await?;
        deployment::audit(&self.environment, Action::RemoveApplication, &notes);
        Ok(removed)
    }

    fn registration(&self) -> Registration {
        Registration {
            applications: self.applications.clone(),
            allowances: self.allowances.clone(),
            answers: self.answers.clone(),
            pepper: Pepper::new(PepperSource(self.secrets.clone()), Arc::new(SystemClock)),
            random: Arc::new(SystemRandom),
        }
    }
}

/// A fresh client identifier and secret.
pub fn fresh_credentials() -> Credentials {
    let client_secret = client_secret::fresh(&SystemRandom).expose().to_owned();
    Credentials { client_id: fresh_client_id(&SystemRandom), client_secret }
}
