//! Changing a webhook.
//!
//! Who names the version that was read is told when it is no longer current. Who does not has the last word on what the
//! change names, and on nothing else: a change at the same moment of another member is not undone, nor is a new secret lost.
//! A mask in a change stands for the kept value: such a change is built from that value, and tried again when it has changed.

use std::num::NonZeroU64;

use super::{
    Webhook,
    endpoint::{Kept, Part, Place},
    members::{About, Members},
    revision::{EndpointChange, PartChange, Revision},
    show::Showing,
};
use auth::entity::{AuthorizedEntity, EntityId};
use base::{clock::SharedClock, random::SharedRandom};
use gate::{EntityCall, Reply};
use outbound::addresses::AddressRules;
use problem::{JsonBody, Problem, Violations};
use storage::sealing::KeyRings;

/// How often a change without a version is tried again. It depends on nothing but whether the webhook is enabled, and on the
/// values that its masks stand for, so it is lost only when somebody changes these at this very moment.
const TRIES: u32 = 10;

/// Everything that changing a webhook needs.
pub struct Changing {
    /// What shows it afterwards.
    pub showing: Showing,
    /// The clock.
    pub clock: SharedClock,
    /// Where endpoints may be.
    pub rules: AddressRules,
    /// What seals their secrets.
    pub rings: KeyRings,
    /// The dice.
    pub random: SharedRandom,
}

/// A change as it is asked for.
#[derive(Debug, PartialEq, Eq)]
struct ChangeRequest {
    members: Members,
    version: Option<u64>,
}

/// A change was lost again and again to others.
#[derive(Debug, thiserror::Error)]
#[error("the webhook was enabled and disabled, or its endpoint changed, again and again while it was to be changed")]
struct NeverStill;

impl Changing {
    /// Answers a request to change a webhook.
    pub async fn change(&self, call: &EntityCall) -> Result<Reply, Problem> {
        let entity = &call.entity;
        let request = ChangeRequest::read(&call.body, entity.id(), &self.rules)?;
        let id = call.webhook_id()?;
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
    ) -> Result<Option<Webhook>, Problem> {
        let members = &request.members;
        let endpoint = EndpointChange {
            url: self.part(read, read.endpoint.url(), members.event_url.as_ref()).await?,
            headers: self.part(read, read.endpoint.headers(), members.headers.as_ref()).await?,
        };
        let enabled = !read.enabled && request.members.enabled == Some(true);
        let moved = endpoint.url.as_ref().is_some_and(|url| url.differs);
        if enabled || moved {
            // Before it is enabled: what was held against it must not disable it again at its first failure; and a new address
            // has not failed yet. If nothing comes of this, failures are forgotten that the next ones bring back.
            self.showing.healths.reset(entity, &read.id).await?;
        }
        let now = self.clock.now();
        let revision = Revision::change(read, members, &endpoint, request.version.is_some(), now)?;
        Ok(self.showing.webhooks.change(entity, &read.id, revision).await?)
    }

    /// What becomes of a part of the endpoint; nothing, when it stays as it is. Values that a former release left in the open
    /// are sealed in passing.
    async fn part<T: Part>(
        &self,
        read: &Webhook,
        kept: Kept<T>,
        given: Option<&T>,
    ) -> Result<Option<PartChange<T>>, Problem> {
        if given.is_none() && !kept.is_bare() {
            return Ok(None);
        }
        let place = Place::of(read);
        let needs_kept = given.is_none_or(Part::has_masks);
        let was = match kept.open(&self.rings, place).await {
            Ok(was) => Some(was),
            Err(error) if needs_kept => return Err(error.into()),
            Err(_) => None, // what cannot be opened can still be replaced
        };
        let before = was.clone().unwrap_or_default();
        let whole = match given {
            Some(given) => self.meant(given, &before)?,
            None => before,
        };
        let differs = was.as_ref() != Some(&whole);
        if !differs && !kept.is_bare() {
            return Ok(None);
        }
        let now_on = Kept::of(&whole, &self.rings, &*self.random, place).await?;
        Ok(Some(PartChange { kept: now_on, differs, made_of: needs_kept.then_some(kept) }))
    }

    /// The part with kept values in the place of masks, if it is allowed.
    fn meant<T: Part>(&self, given: &T, kept: &T) -> Result<T, Problem> {
        let mut violations = Violations::default();
        let whole = given.clone().unmasked(kept, &mut violations);
        whole.check(&self.rules, &mut violations);
        violations.check().map(|()| whole)
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
