//! Changing an application: its name, its scopes and its metadata.

use std::num::NonZeroU64;

use super::{
    application::Application,
    caller::Caller,
    error::ApplicationError,
    new_application::{checked_name, checked_scopes, take_published_members},
    store::Applications,
};
use auth::{EntityId, Scopes};
use base::{Time, audit::Notes};
use problem::{JsonBody, Metadata, Problem, Rule};
use storage::{Changed, Once, Written};

/// The properties that a change cannot set, each with its alternative.
const FIXED: [(&str, &str); 3] = [
    ("managingEntities", "cannot be changed; create another application for other managing entities"),
    ("mayPublish", "cannot be changed here; only the operator grants and withdraws this right"),
    ("publicKeys", "cannot be changed here; add one with `POST …/application/{clientId}/key`"),
];

/// A change to an application. A missing property stays as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ApplicationChange {
    /// The new name.
    pub name: Option<String>,
    /// The scopes that the application may request from now on.
    pub scopes: Option<Scopes>,
    /// The metadata that replaces all of the current metadata.
    pub metadata: Option<Metadata>,
    /// The version that the caller read, if given.
    pub version: Option<u64>,
}

impl ApplicationChange {
    /// Parses and checks a request's body.
    pub fn read(body: &[u8], owner: &EntityId) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let name = body.optional("name", "a string with a human-readable name for the application");
        let name = name.and_then(|text: String| body.violations.note("name", Rule::InvalidFormat, checked_name(&text)));
        let scopes = body.optional("scopes", "a list of scopes");
        let scopes = scopes.map(|list: Vec<String>| checked_scopes(&list, &mut body.violations));
        let metadata = Metadata::take_change(&mut body);
        let version = body.optional::<NonZeroU64>("version", "an integer of at least 1: the version you fetched");
        take_published_members(&mut body, owner);
        for (name, why) in FIXED {
            body.refuse(name, why);
        }
        body.finish()?;
        Ok(Self { name, scopes, metadata, version: version.map(NonZeroU64::get) })
    }

    /// Whether nothing is set.
    fn is_empty(&self) -> bool {
        self.name.is_none() && self.scopes.is_none() && self.metadata.is_none()
    }

    /// The application after the change at this time.
    fn applied_to(self, read: &Application, now: Time) -> Application {
        Application {
            name: self.name.unwrap_or_else(|| read.name.clone()),
            scopes: self.scopes.unwrap_or(read.scopes),
            metadata: self.metadata.unwrap_or_else(|| read.metadata.clone()),
            version: read.version + 1,
            last_update: now,
            ..read.clone()
        }
    }
}

impl Applications {
    /// Changes an application once per idempotency key and returns the changed application. Changes nothing if nothing
    /// is set.
    ///
    /// The caller needs all of the application's rights, before and after the change: it cannot give more than it has.
    /// Tokens carry the scopes, so a change that takes one away also revokes the issued tokens, in the same
    /// transaction. The application continues with its next token. An application that takes scopes away from itself
    /// must confirm this.
    pub async fn change(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        change: ApplicationChange,
        (confirmed, once): (bool, Once<'_>),
        notes: &Notes,
        now: Time,
    ) -> Result<Changed<Application>, ApplicationError> {
        let current = async {
            let application = self.show(caller, client_id, notes).await?;
            caller.check_of(&application)?;
            Ok(application)
        };
        let change = self.change_now(caller, client_id, change, (confirmed, once), notes, now);
        once.change(now, change, current).await
    }

    async fn change_now(
        &self,
        caller: &Caller<'_>,
        client_id: &str,
        change: ApplicationChange,
        (confirmed, once): (bool, Once<'_>),
        notes: &Notes,
        now: Time,
    ) -> Result<Application, ApplicationError> {
        let read = self.show(caller, client_id, notes).await?;
        caller.check_of(&read)?;
        if change.version.is_some_and(|version| version != read.version) {
            return Err(ApplicationError::Changed(read.version));
        }
        let record = once.record(&(), &read.client_id, now).await?;
        if change.is_empty() {
            self.change_nothing(record).await?;
            return Ok(read);
        }
        let changed = change.applied_to(&read, now);
        caller.check_of(&changed)?;
        if changed.lacks_scopes_of(&read) {
            caller.check_confirmation(&read, confirmed)?;
        }
        match self.replace(&read, &changed, record).await? {
            Written::Done(()) => Ok(changed),
            Written::Lost(_) => Err(self.lost(caller, client_id, notes).await),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applications::new_application::NewApplication;
    use auth::Entities;
    use problem::Violation;

    fn read(body: &str) -> Result<ApplicationChange, Problem> {
        ApplicationChange::read(body.as_bytes(), &EntityId::parse("demo-hotel").expect("an entity"))
    }

    #[test]
    fn a_change_may_be_empty_and_may_repeat_the_owner() {
        assert_eq!(read("{}").expect("good"), ApplicationChange::default());
        let published = r#"{"name":"n","version":3,"ownerIdentifier":"demo-hotel","ownerName":"Demo","ownerType":"COMPANY",
                            "redirectUris":["https://example.com/"]}"#;
        let renamed = ApplicationChange { name: Some("n".into()), version: Some(3), ..ApplicationChange::default() };
        assert_eq!(read(published).expect("good"), renamed);
    }

    #[test]
    fn every_violation_of_a_change_is_listed() {
        let body = r#"{"name":" ","version":0,"ownerIdentifier":"other","ownerType":1,"scopes":[],"metadata":{"a":1}}"#;
        let problem = read(body).expect_err("refused");
        let names: Vec<_> = problem.violations().iter().map(Violation::name).collect();
        assert_eq!(names, ["name", "scopes", "metadata", "version", "ownerType", "ownerIdentifier"]);
        let problem = read(r#"{"scopes":["mcp.read","mcp"]}"#).expect_err("refused");
        assert_eq!(problem.violations().iter().map(Violation::name).collect::<Vec<_>>(), ["scopes[1]"]);
    }

    #[test]
    fn changing_a_fixed_property_is_refused_with_the_alternative() {
        let problem = read(r#"{"mayPublish":true,"managingEntities":[],"publicKeys":[]}"#).expect_err("refused");
        let list = problem.violations();
        let said: Vec<_> = list.iter().map(|violation| violation.detail.as_str()).collect();
        assert_eq!(said, FIXED.map(|(_, why)| why));
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let start = Time::from_millis(0);
        let later = Time::from_millis(1);
        let scopes = |list: &str| Scopes::parse(list).expect("scopes");
        let new = NewApplication::of_operator("old".into(), scopes("mcp.read mcp.write"), Entities::new([]));
        let before = new.with("app".into(), None, start);
        let named = read(r#"{"name":"new","metadata":{"a":"b"}}"#).expect("good").applied_to(&before, later);
        assert_eq!((named.name.as_str(), named.scopes, named.version), ("new", before.scopes, 2));
        assert!(!named.metadata.is_empty() && !named.lacks_scopes_of(&before));
        let narrowed = read(r#"{"scopes":["mcp.read"],"metadata":null}"#).expect("good").applied_to(&named, later);
        assert_eq!((narrowed.name.as_str(), narrowed.scopes), ("new", scopes("mcp.read")));
        assert!(narrowed.metadata.is_empty() && narrowed.lacks_scopes_of(&named));
        assert!(!named.lacks_scopes_of(&narrowed), "a wider application lacks nothing");
    }
}
