//! Renewing links, by which applications extend sessions.

use std::time::Duration;

use super::{
    error::PanelError,
    link::PanelLink,
    links::{LinkRights, PanelLinks},
    new_link::optional_lifetime,
};
use auth::{AuthorizedEntity, Claims};
use base::{PanelLinkId, Time, audit::Notes};
use problem::{JsonBody, Problem};
use storage::Written;

/// A request to renew a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkRenewal {
    /// How long the session lasts from now; by default, as long as when it was opened.
    pub lifetime: Option<Duration>,
}

impl LinkRenewal {
    /// Parses a request. An empty body means the default.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        if body.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let mut body = JsonBody::read(body)?;
        let lifetime = optional_lifetime(&mut body);
        body.finish()?;
        Ok(Self { lifetime })
    }
}

impl PanelLinks {
    /// Extends a link's session, counted from now. The token with these claims must have the link's rights. A session
    /// that already lasts longer does not change, so repeating the request changes nothing. Another entity's link, and
    /// a link whose session has ended, are treated as missing.
    pub async fn renew(
        &self,
        entity: &AuthorizedEntity,
        claims: &Claims,
        id: &str,
        renewal: LinkRenewal,
        notes: &Notes,
        now: Time,
    ) -> Result<PanelLink, PanelError> {
        let own = LinkRights::of_token(claims)?;
        let missing = || PanelError::NotFound(id.to_owned());
        let id = PanelLinkId::parse(id).ok_or_else(missing)?;
        notes.subject(id.as_str());
        let link = self.0.find(entity.id(), &id).await?.filter(|link| link.is_good(now)).ok_or_else(missing)?;
        LinkRights { scopes: link.grant.scopes, may_publish: link.grant.may_publish }.check_within(&own)?;
        if link.session.is_none() {
            return Err(PanelError::Unopened(id));
        }
        let lifetime = renewal.lifetime.unwrap_or(Duration::from_secs(link.grant.lifetime_seconds.into()));
        match self.0.prolong(&link, now + lifetime, now).await? {
            Written::Done(link) => Ok(link),
            Written::Lost(present) => present.filter(|link| link.is_good(now)).ok_or_else(missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_lasts_as_long_as_the_link_says_or_up_to_a_day() {
        for body in ["", " ", "{}"] {
            assert_eq!(LinkRenewal::read(body.as_bytes()).expect(body), LinkRenewal::default(), "{body}");
        }
        let day = LinkRenewal::read(br#"{"lifetimeSeconds":86400}"#).expect("a day");
        assert_eq!(day.lifetime, Some(Duration::from_secs(86_400)));
        for bad in [r#"{"lifetimeSeconds":86401}"#, r#"{"lifetimeSeconds":59}"#, r#"{"lifetime":60}"#, "[]"] {
            assert!(LinkRenewal::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
