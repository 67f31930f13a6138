//! Showing, renaming and removing an application, and giving it the right to publish events.

use std::num::NonZeroU64;

use super::{
    application::Application,
    caller::Caller,
    error::ApplicationError,
    new_application::{checked_name, take_published_members},
    store::Applications,
};
use auth::EntityId;
use base::{Time, audit::Notes};
use problem::{JsonBody, Problem, Rule};
use storage::{Changed, Once, Record, Written};

/// The properties that a change cannot set, each with the alternative: a token must not gain rights by a change of its
/// application.
const FIXED: [(&str, &str); 4] = [
    ("scopes", "cannot be changed; make another application with the scopes that it is to have"),
    ("managingEntities", "cannot be changed; make another application for the managing entities that it is to act for"),
    ("mayPublish", "cannot be changed here; the operator of the service gives this right, and takes it"),
    ("publicKeys", "cannot be changed here; add one with `POST …/application/{clientId}/key`"),
];

/// A change that an application's owner requests.
#[derive(Debug, PartialEq, Eq)]
pub struct Renaming {
    /// The new name; `None` keeps the old one.
    name: Option<String>,
    /// The version that the owner read, if given.
    version: Option<u64>,
}

impl Renaming {
    /// Parses and checks a request's body.
    pub fn read(body: &[u8], owner: &EntityId) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let name = body.optional("name", "a text that people know the application by");
        let name = name.and_then(|text: String| body.violations.note("name", Rule::InvalidFormat, checked_name(&text)));
        let version = body.optional::<NonZeroU64>("version", "the version that was read, an integer of at least 1");
        take_published_members(&mut body, owner);
        for (name, why) in FIXED {
            body.refuse(name, why);
        }
        body.finish()?;
        Ok(Self { name, version: version.map(NonZeroU64::get) })
    }
}

impl Applications {
    /// The application with this client identifier, if the caller manages it. Notes it as the subject of the audit
    /// line.
    pub async fn show(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        notes: &Notes,
    ) -> Result<Application, ApplicationError> {
        let found = self.find(client_id).await?.filter(|application| caller.manages(application));
        let application = found.ok_or_else(|| ApplicationError::NotFound(client_id.to_owned()))?;
        notes.subject(&application.client_id);
        Ok(application)
    }

    /// Finds out why a change of an application lost, by reading it again.
    pub(super) async fn lost(&self, caller: &Caller<'_>, client_id: &str, notes: &Notes) -> ApplicationError {
        match self.show(caller, client_id, notes).await {
            Ok(now) => ApplicationError::Changed(now.version),
            Err(error) => error,
        }
    }

    /// Renames an application once for an idempotency key, and returns the application.
    pub async fn rename(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        renaming: Renaming,
        once: Once<'_>,
        notes: &Notes,
        now: Time,
    ) -> Result<Changed<Application>, ApplicationError> {
        let change = self.rename_now(caller, client_id, renaming, once, notes, now);
        let current = async {
            let application = self.show(caller, client_id, notes).await?;
            caller.check_of(&application)?;
            Ok(application)
        };
        once.change(now, change, current).await
    }

    async fn rename_now(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        renaming: Renaming,
        once: Once<'_>,
        notes: &Notes,
        now: Time,
    ) -> Result<Application, ApplicationError> {
        let mut application = self.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        if renaming.version.is_some_and(|version| version != application.version) {
            return Err(ApplicationError::Changed(application.version));
        }
        let record = once.record(&(), &application.client_id, now).await?;
        let Some(name) = renaming.name else {
            self.change_nothing(record).await?;
            return Ok(application);
        };
        match self.set_name(&application, &name, record, now).await? {
            Written::Lost(_) => Err(self.lost(caller, client_id, notes).await),
            Written::Done(()) => {
                (application.name, application.last_update) = (name, now);
                application.version += 1;
                Ok(application)
            }
        }
    }

    /// Grants or withdraws an application's right to publish events. Returns the current application. Writes nothing
    /// when nothing changes.
    ///
    /// Tokens carry the right, so withdrawing it also revokes the issued tokens, in the same transaction. The
    /// application continues with its next token.
    pub async fn let_publish(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        may_publish: bool,
        notes: &Notes,
        now: Time,
    ) -> Result<Application, ApplicationError> {
        let read = self.show(caller, client_id, notes).await?;
        caller.check(read.scopes, &read.entities, read.may_publish || may_publish)?;
        if read.may_publish == may_publish {
            return Ok(read);
        }
        match self.set_publishing(&read, may_publish, now).await? {
            Written::Done(()) => Ok(Application { may_publish, version: read.version + 1, last_update: now, ..read }),
            Written::Lost(_) => Err(self.lost(caller, client_id, notes).await),
        }
    }

    /// Removes an application and revokes its tokens. Returns the application before the removal.
    ///
    /// One transaction removes the application and its owner's pointer, revokes its tokens, and writes the idempotency
    /// record of its request, if any, so that a crash leaves nothing half removed. Other requests cannot make it fail:
    /// it has no allowance, and needs no version.
    pub async fn remove(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        confirmed: bool,
        record: Option<Record>,
        notes: &Notes,
        now: Time,
    ) -> Result<Application, ApplicationError> {
        let application = self.show(caller, client_id, notes).await?;
        caller.check_of(&application)?;
        caller.check_confirmation(&application, confirmed)?;
        match self.delete(&application, record, now).await? {
            Written::Done(()) => Ok(application),
            Written::Lost(_) => Err(ApplicationError::NotFound(client_id.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::Violation;

    fn read(body: &str) -> Result<Renaming, Problem> {
        Renaming::read(body.as_bytes(), &EntityId::parse("demo-hotel").expect("an entity"))
    }

    #[test]
    fn a_change_may_be_empty_and_may_repeat_the_owner() {
        assert_eq!(read("{}").expect("good"), Renaming { name: None, version: None });
        let published = r#"{"name":"n","version":3,"ownerIdentifier":"demo-hotel","ownerName":"Demo","ownerType":"COMPANY",
                            "redirectUris":["https://example.com/"]}"#;
        assert_eq!(read(published).expect("good"), Renaming { name: Some("n".into()), version: Some(3) });
    }

    #[test]
    fn every_violation_of_a_change_is_listed() {
        let body = r#"{"name":" ","version":0,"ownerIdentifier":"other","ownerType":1,"scopes":[]}"#;
        let problem = read(body).expect_err("refused");
        let names: Vec<_> = problem.violations().iter().map(Violation::name).collect();
        assert_eq!(names, ["name", "version", "ownerType", "ownerIdentifier", "scopes"]);
    }

    #[test]
    fn changing_a_fixed_property_is_refused_with_the_alternative() {
        let problem = read(r#"{"mayPublish":true,"scopes":["mcp.read"],"managingEntities":[],"publicKeys":[]}"#);
        let list = problem.expect_err("refused").violations();
        let said: Vec<_> = list.iter().map(|violation| violation.detail.as_str()).collect();
        assert_eq!(said, FIXED.map(|(_, why)| why));
    }
}
