//! Applications, as the operator of a deployment looks after them: for every managing entity, without an allowance and
//! without a token. What is made or removed here is on the audit trail.

use std::time::Duration;

use crate::{Deployment, DeploymentError, ProvisionError, audit, provision::pepper_of};
use auth::entity::EntityId;
use base::{
    audit::Action,
    clock::{Clock, SystemClock, Time},
    ids::ClientSecretId,
    random::SystemRandom,
};
use issuer::{
    applications::{
        Application, Applications, ClientSecret, client_secret, keys,
        left::Left,
        new_application::NewApplication,
        secrets::{self, Rotated, TooMany, with_new},
    },
    oauth::pepper,
};
use storage::{
    secrets::{SecretBytes, SecretText},
    table::TableError,
};

/// The applications of a deployment.
pub struct OperatorsApplications<'a> {
    deployment: &'a Deployment,
    applications: Applications,
}

/// A new secret, which is shown once.
pub struct NewSecret {
    /// The application's client identifier.
    pub client_id: String,
    /// The secret.
    pub client_secret: SecretText,
    /// When the application's previous secret ends, if it has one.
    pub previous_ends: Option<Time>,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationError {
    /// The deployment cannot be worked on.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The pepper is malformed.
    #[error(transparent)]
    Pepper(#[from] ProvisionError),
    /// No application has this client identifier.
    #[error("there is no application {0}; `waypost-admin application list ENTITY` lists those of a managing entity")]
    NoApplication(String),
    /// The application has two secrets.
    #[error(
        "the application has two live secrets, and the older ends at {0}; wait until then, or end one with `remove-secret`"
    )]
    TooManySecrets(Time),
    /// The application lacks this secret or key.
    #[error("the application has no secret and no key {0}; `waypost-admin application show CLIENT_ID` lists them")]
    NoCredential(String),
    /// The application was changed between reading and writing it.
    #[error("the application was changed at this very moment; nothing was done, try again")]
    Changed,
    /// The table did not answer.
    #[error("the table cannot be read or written")]
    Table(#[from] TableError),
}

impl ApplicationError {
    /// Whether the request cannot be fulfilled as things are. Nothing was changed, and a repetition would end in the same way.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Deployment(error) => error.is_refusal(),
            Self::NoApplication(_) | Self::TooManySecrets(_) | Self::NoCredential(_) => true,
            Self::Pepper(_) | Self::Changed | Self::Table(_) => false,
        }
    }
}

impl<'a> OperatorsApplications<'a> {
    /// The applications of this deployment.
    pub fn of(deployment: &'a Deployment) -> Self {
        Self { deployment, applications: Applications::new(deployment.table.clone()) }
    }

    /// Makes an application with a secret.
    pub async fn create(&self, new: NewApplication) -> Result<(Application, Option<SecretText>), ApplicationError> {
        let (application, secret) = new.make(&self.pepper().await?, SystemClock.now(), &SystemRandom);
        self.applications.put(application.clone()).await?;
        self.audit(Action::CreateApplication, &application.client_id);
        Ok((application, secret))
    }

    /// The application with this client identifier.
    pub async fn find(&self, client_id: &str) -> Result<Application, ApplicationError> {
        let found = self.applications.find(client_id).await?;
        found.ok_or_else(|| ApplicationError::NoApplication(client_id.to_owned()))
    }

    /// The applications that a managing entity manages, the newest first.
    pub async fn of_owner(&self, owner: &EntityId) -> Result<Vec<Application>, ApplicationError> {
        Ok(self.applications.of(owner).await?)
    }

    /// Gives an application a new secret. The previous one is accepted for as long as the overlap.
    pub async fn add_secret(&self, client_id: &str, overlap: Duration) -> Result<NewSecret, ApplicationError> {
        let application = self.find(client_id).await?;
        let (client_secret, now) = (client_secret::fresh(&SystemRandom), SystemClock.now());
        let new = ClientSecret::of(&client_secret, &self.pepper().await?, now, &SystemRandom);
        let subject = format!("{client_id}/{}", new.id);
        let Rotated { left, previous_ends } = with_new(&application, new, overlap, now)
            .map_err(|TooMany(ends)| ApplicationError::TooManySecrets(ends))?;
        self.leave(&application, &left, now).await?;
        self.audit(Action::CreateSecret, &subject);
        Ok(NewSecret { client_id: application.client_id, client_secret, previous_ends })
    }

    /// Ends a secret, and within a minute the tokens that were issued for it. Returns whether the application has neither
    /// secrets nor keys left.
    pub async fn remove_secret(&self, client_id: &str, id: &ClientSecretId) -> Result<bool, ApplicationError> {
        self.remove_credential(Action::RemoveSecret, client_id, id.as_str(), |application, now| {
            secrets::without(application, id, now)
        })
        .await
    }

    /// Removes a public key, and within a minute the tokens that were issued for it. Returns whether the application has
    /// neither secrets nor keys left.
    pub async fn remove_key(&self, client_id: &str, kid: &str) -> Result<bool, ApplicationError> {
        self.remove_credential(Action::RemoveKey, client_id, kid, |application, _| keys::without(application, kid))
            .await
    }

    /// Removes an application and revokes its tokens.
    pub async fn remove(&self, client_id: &str) -> Result<Application, ApplicationError> {
        let application = self.find(client_id).await?;
        if !self.applications.delete(&application, SystemClock.now()).await?.is_done() {
            return Err(ApplicationError::NoApplication(client_id.to_owned()));
        }
        self.audit(Action::RemoveApplication, client_id);
        Ok(application)
    }

    async fn remove_credential(
        &self,
        action: Action,
        client_id: &str,
        credential: &str,
        without: impl FnOnce(&Application, Time) -> Option<Left>,
    ) -> Result<bool, ApplicationError> {
        let (application, now) = (self.find(client_id).await?, SystemClock.now());
        let left = without(&application, now).ok_or_else(|| ApplicationError::NoCredential(credential.to_owned()))?;
        self.leave(&application, &left, now).await?;
        self.audit(action, &format!("{client_id}/{credential}"));
        Ok(left.is_nothing(now))
    }

    async fn leave(&self, read: &Application, left: &Left, now: Time) -> Result<(), ApplicationError> {
        self.applications.leave(read, left, now).await?.done().ok_or(ApplicationError::Changed)
    }

    async fn pepper(&self) -> Result<SecretBytes, ApplicationError> {
        Ok(pepper_of(&self.deployment.secret(pepper::SECRET).await?)?)
    }

    fn audit(&self, action: Action, subject: &str) {
        audit::write(&self.deployment.environment, action, subject);
    }
}
