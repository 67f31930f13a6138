//! Changing a webhook.
//!
//! Who names the version that was read is told when it is no longer current. Who does not has the last word on what the
//! change names, and on nothing else: a change at the same moment of another member is not undone, nor is a new secret lost.

use std::num::NonZeroU64;

use super::{
    Webhook,
    members::{About, Members},
    revision::Revision,
    show::Showing,
};
use crate::{
    auth::entity::{AuthorizedEntity, EntityId},
    clock::SharedClock,
    http::{Call, JsonBody, Problem, Reply},
    ids::WebhookId,
    outbound::addresses::AddressRules,
    table::TableError,
};

/// How often a change without a version is tried again. It depends on nothing but whether the webhook is enabled, so it is
/// lost only when somebody switches that to and fro at this very moment.
const TRIES: u32 = 10;

/// Everything that changing a webhook needs.
pub struct Changing {
    /// What shows it afterwards.
    pub showing: Showing,
    /// The clock.
    pub clock: SharedClock,
    /// Where endpoints may be.
    pub rules: AddressRules,
}

/// A change as it is asked for.
#[derive(Debug, PartialEq, Eq)]
struct ChangeRequest {
    members: Members,
    version: Option<u64>,
}

/// A change was lost again and again to others.
#[derive(Debug, thiserror::Error)]
#[error("the webhook was enabled and disabled again and again while it was to be changed")]
struct NeverStill;

impl Changing {
    /// Answers a request to change a webhook.
    pub async fn change(&self, call: &Call) -> Result<Reply, Problem> {
        let entity = call.entity();
        let request = ChangeRequest::read(&call.body, entity.id(), &self.rules)?;
        let id = WebhookId::of_path(call)?;
        for _ in 0..TRIES {
            let found = self.showing.webhooks.find(entity, &id).await?;
            let read = found.ok_or_else(Problem::webhook_not_found)?.webhook;
            if request.version.is_some_and(|version| version != read.version) {
                return Err(Problem::version_conflict(read.version));
            }
            if request.members.is_empty() {
                return self.showing.reply(entity, &read).await;
            }
            if let Some(changed) = self.write(entity, &read, &request).await? {
                tracing::info!(webhookId = %id, entity = %entity.id(), version = changed.version, "changed a webhook");
                return self.showing.reply(entity, &changed).await;
            }
        }
        Err(Problem::unavailable(NeverStill))
    }

    /// Nothing, when the webhook is not as it was read.
    async fn write(
        &self,
        entity: &AuthorizedEntity,
        read: &Webhook,
        request: &ChangeRequest,
    ) -> Result<Option<Webhook>, TableError> {
        let enabled = !read.enabled && request.members.enabled == Some(true);
        let moved = request.members.event_url.as_ref().is_some_and(|url| *url != read.event_url);
        if enabled || moved {
            // Before it is enabled: what was held against it must not disable it again at its first failure; and a new address
            // has not failed yet. If nothing comes of this, failures are forgotten that the next ones bring back.
            self.showing.healths.reset(entity, &read.id).await?;
        }
        let now = self.clock.now();
        let revision = Revision::change(read, &request.members, request.version.is_some(), now)?;
        self.showing.webhooks.change(entity, &read.id, revision).await
    }
}

impl ChangeRequest {
    fn read(body: &[u8], entity: &EntityId, rules: &AddressRules) -> Result<Self, Problem> {
        let mut body = JsonBody::read(body)?;
        let members = Members::take(&mut body, About::Existing, entity, rules);
        let version = body.optional::<NonZeroU64>("version", "the version that was read, an integer of at least 1");
        body.finish()?;
        Ok(Self { members, version: version.map(NonZeroU64::get) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<ChangeRequest, Problem> {
        let entity = EntityId::parse("demo-hotel").expect("an entity");
        ChangeRequest::read(body.as_bytes(), &entity, &AddressRules::default())
    }

    #[test]
    fn a_version_alone_changes_nothing() {
        let request = read(r#"{"version":3}"#).expect("good");
        assert_eq!(request, ChangeRequest { members: Members::default(), version: Some(3) });
        assert_eq!(read("{}").expect("good").version, None);
    }

    #[test]
    fn a_version_is_a_whole_number_from_one() {
        for bad in ["0", "-1", "1.5", "1.0", "\"1\"", "null", "[1]", "true", "18446744073709551616"] {
            let problem = read(&format!(r#"{{"version":{bad}}}"#)).expect_err(bad);
            assert_eq!(problem.properties["violations"][0]["field"], "version", "{bad}");
        }
    }
}
