//! Creating applications.

use super::{
    application::Application,
    caller::Caller,
    client_secret::ClientSecret,
    error::ApplicationError,
    new_application::{MAX_APPLICATIONS, NewApplication},
    store::Applications,
    view::ApplicationView,
};
use crate::oauth::pepper::Pepper;
use base::{SharedRandom, Time, audit::Notes};
use serde::{Serialize, Serializer};
use storage::{Allowances, Answered, IdempotencyStore, IdempotentRequest, SecretText};

/// Creates applications, and further secrets for them (`secrets.rs`).
pub struct Registration {
    /// The stored applications.
    pub applications: Applications,
    /// Limits the number of credentials per hour.
    pub allowances: Allowances,
    /// Repeats the response for an idempotency key.
    pub answers: IdempotencyStore,
    /// The key for hashing secrets.
    pub pepper: Pepper,
    /// Generates identifiers and secrets.
    pub random: SharedRandom,
}

/// A new application, and its secret if it has one. The secret is shown only in the response to this request.
#[derive(Debug)]
pub struct Created {
    /// The application.
    pub application: Application,
    /// The application's secret.
    pub secret: Option<SecretText>,
}

impl Registration {
    /// Creates an application, once per idempotency key.
    pub async fn create_once(
        &self,
        caller: &Caller<'_>,
        new: NewApplication,
        once: Option<&IdempotentRequest>,
        notes: &Notes,
        now: Time,
    ) -> Result<Answered<Created>, ApplicationError> {
        // A repeated request also needs the rights, since its response shows the secret.
        caller.check(new.scopes, &new.entities, new.may_publish)?;
        let answered = self.answers.once(once, now, self.make(caller, new, once, notes, now)).await?;
        notes.subject(&answered.id(|created| created.application.client_id.clone()));
        Ok(answered)
    }

    /// Creates an application.
    pub async fn create(
        &self,
        caller: &Caller<'_>,
        new: NewApplication,
        notes: &Notes,
        now: Time,
    ) -> Result<Created, ApplicationError> {
        self.make(caller, new, None, notes, now).await
    }

    async fn make(
        &self,
        caller: &Caller<'_>,
        new: NewApplication,
        once: Option<&IdempotentRequest>,
        notes: &Notes,
        now: Time,
    ) -> Result<Created, ApplicationError> {
        caller.check(new.scopes, &new.entities, new.may_publish)?;
        // Two concurrent requests may both succeed. That is harmless: the limit only keeps lists short.
        if let Some(entity) = caller.entity()
            && self.applications.count_of(entity).await? >= MAX_APPLICATIONS
        {
            return Err(ApplicationError::TooManyApplications);
        }
        let count = new.credentials().saturating_add(1);
        caller.spend_credentials(&self.allowances, count, now).await?;
        let (application, secret) = new.make(&*self.pepper.get().await?, now, &*self.random);
        notes.subject(&application.client_id);
        let created = Created { application, secret };
        let record = self.answers.record(once, &created, &created.application.client_id, now).await?;
        self.applications.put(created.application.clone(), record).await?;
        Ok(created)
    }

    /// Creates an application with an identifier and a secret that its clients already know, unless it exists. Returns
    /// whether the application accepts the secret: an existing application's owner may have ended it.
    ///
    /// A removed application is created again. Tokens that it gets within five minutes after the removal are refused.
    pub async fn ensure(
        &self,
        caller: &Caller<'_>,
        new: NewApplication,
        (client_id, secret): (&str, &SecretText),
        now: Time,
    ) -> Result<bool, ApplicationError> {
        caller.check(new.scopes, &new.entities, new.may_publish)?;
        let pepper = self.pepper.get().await?;
        if let Some(known) = self.applications.find(client_id).await? {
            return Ok(known.secret(secret.expose(), &pepper, now).is_some());
        }
        let secret = ClientSecret::of(secret, &pepper, now, &*self.random);
        self.applications.put(new.with(client_id.to_owned(), Some(secret), now), None).await?;
        Ok(true)
    }
}

impl Created {
    /// The application as its owner sees it, with its secret.
    pub fn view(&self, now: Time) -> ApplicationView<'_> {
        self.application.view(now, self.secret.as_ref())
    }
}

/// Serializes the application as its owner sees it when it is created.
impl Serialize for Created {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view(self.application.created_date).serialize(serializer)
    }
}
