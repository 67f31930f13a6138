//! Creates, shows and removes links.

use super::{
    error::PanelError,
    key::PanelKey,
    link::{PanelGrant, PanelLink},
    new_link::NewPanelLink,
    store::LinkStore,
};
use crate::applications::Application;
use auth::{AuthorizedEntity, Claims, Scopes};
use base::{PanelLinkId, SharedRandom, Time, audit::Notes};
use storage::{
    Allowance, Allowances, Answered, IdempotencyStore, IdempotentRequest, Record, SecretText, Table, Written,
};

/// Creates links.
pub struct LinkMaking {
    store: LinkStore,
    allowances: Allowances,
    answers: IdempotencyStore,
    random: SharedRandom,
    base_url: String,
}

/// The stored links.
pub struct PanelLinks(pub(super) LinkStore);

/// A link's creator: a managing entity with a token that covers it, or the deployment's operator on behalf of an
/// application.
#[derive(Debug, Clone, Copy)]
pub struct LinkMaker<'a> {
    entity: &'a AuthorizedEntity,
    by: MakersProof<'a>,
}

#[derive(Debug, Clone, Copy)]
enum MakersProof<'a> {
    Token(&'a Claims),
    Operator(&'a Application),
}

/// The rights that a link grants, or that a creator can grant.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkRights {
    pub(super) scopes: Scopes,
    pub(super) may_publish: bool,
}

impl LinkRights {
    /// The rights of a token with these claims.
    ///
    /// # Errors
    /// If the token belongs to a session, which could extend itself indefinitely.
    pub(super) fn of_token(claims: &Claims) -> Result<Self, PanelError> {
        if claims.session_id.is_some() {
            return Err(PanelError::BySession);
        }
        Ok(Self { scopes: claims.scopes, may_publish: claims.may_publish })
    }

    /// Checks that the other rights include these.
    pub(super) fn check_within(&self, other: &Self) -> Result<(), PanelError> {
        let lacking = self.scopes.without(other.scopes);
        if !lacking.is_empty() {
            return Err(PanelError::ExceedsScopes(lacking));
        }
        if self.may_publish && !other.may_publish {
            return Err(PanelError::ExceedsPublishing);
        }
        Ok(())
    }
}

/// A new link, with its address, which is shown only in the response to this request.
#[derive(Debug)]
pub struct CreatedLink {
    /// The link.
    pub link: PanelLink,
    /// The address that opens the panel.
    pub url: SecretText,
}

impl<'a> LinkMaker<'a> {
    /// A managing entity whose token has these claims.
    pub fn by_token(entity: &'a AuthorizedEntity, claims: &'a Claims) -> Self {
        Self { entity, by: MakersProof::Token(claims) }
    }

    /// The deployment's operator, without a token and without an allowance. The session gets this application's tokens.
    pub fn of_operator(entity: &'a AuthorizedEntity, application: &'a Application) -> Self {
        Self { entity, by: MakersProof::Operator(application) }
    }

    /// The grant of a link that is created now.
    ///
    /// # Errors
    /// If the link would grant more than its creator has, or its creator is a session.
    fn grant(&self, new: NewPanelLink, now: Time) -> Result<PanelGrant, PanelError> {
        let (client_id, credential_id, own) = match self.by {
            MakersProof::Token(claims) => {
                (&claims.client_id, claims.credential_id.clone(), LinkRights::of_token(claims)?)
            }
            MakersProof::Operator(Application { client_id, scopes, may_publish, .. }) => {
                (client_id, None, LinkRights { scopes: *scopes, may_publish: *may_publish })
            }
        };
        let scopes: Scopes = new.scopes.unwrap_or(own.scopes);
        LinkRights { scopes, may_publish: new.may_publish }.check_within(&own)?;
        Ok(PanelGrant {
            client_id: client_id.clone(),
            credential_id,
            scopes,
            may_publish: new.may_publish,
            lifetime_seconds: u32::try_from(new.lifetime.as_secs()).unwrap_or(u32::MAX),
            name: new.name,
            place: new.place,
            created_date: now,
        })
    }
}

impl LinkMaking {
    /// A creator of links in this table, for the panel below this address.
    pub fn new(table: Table, answers: IdempotencyStore, random: SharedRandom, base_url: String) -> Self {
        Self { store: LinkStore::new(table.clone()), allowances: Allowances::new(table), answers, random, base_url }
    }

    /// Creates a link, once per idempotency key.
    pub async fn create_once(
        &self,
        maker: &LinkMaker<'_>,
        new: NewPanelLink,
        once: Option<&IdempotentRequest>,
        notes: &Notes,
        now: Time,
    ) -> Result<Answered<CreatedLink>, PanelError> {
        let grant = maker.grant(new, now)?;
        // The response shows the code, so a repeated request by a token with fewer scopes must not get it. A request
        // without scopes means the token's scopes.
        let once = once.map(|once| once.clone().meaning(&grant.scopes.to_string()));
        let once = once.as_ref();
        let answered = self.answers.once(once, now, self.make(maker, grant, once, now)).await?;
        notes.subject(&answered.id(|created| created.link.id.to_string()));
        Ok(answered)
    }

    /// Creates a link.
    pub async fn create(
        &self,
        maker: &LinkMaker<'_>,
        new: NewPanelLink,
        notes: &Notes,
        now: Time,
    ) -> Result<CreatedLink, PanelError> {
        let created = self.make(maker, maker.grant(new, now)?, None, now).await?;
        notes.subject(created.link.id.as_str());
        Ok(created)
    }

    async fn make(
        &self,
        maker: &LinkMaker<'_>,
        grant: PanelGrant,
        once: Option<&IdempotentRequest>,
        now: Time,
    ) -> Result<CreatedLink, PanelError> {
        let entity = maker.entity.id();
        if let MakersProof::Token(_) = maker.by
            && let Some(end) = self.allowances.spend(Allowance::PanelLinks, 1, entity.as_str(), now).await?
        {
            return Err(PanelError::AllowanceSpent(end.since(now)));
        }
        let code = PanelKey::new(entity.clone(), PanelLinkId::new(now, &*self.random), &*self.random);
        let created = CreatedLink { link: PanelLink::new(&code, grant), url: address(&self.base_url, &code) };
        let record = self.answers.record(once, &created, &created.link.id, now).await?;
        self.store.put(&created.link, record).await?;
        Ok(created)
    }
}

/// The address that opens the panel. The code is in its fragment, which browsers do not send to any server. No log or
/// `Referer` contains the code, and previewing the link does not use it up.
fn address(base_url: &str, code: &PanelKey) -> SecretText {
    SecretText::new(format!("{base_url}/panel#code={}", code.expose()))
}

impl PanelLinks {
    /// Creates a view of the links in this table.
    pub fn new(table: Table) -> Self {
        Self(LinkStore::new(table))
    }

    /// The entity's link with this identifier, if it can be opened or its session is still valid. Another entity's link
    /// is treated as missing.
    pub async fn show(&self, entity: &AuthorizedEntity, id: &str, now: Time) -> Result<PanelLink, PanelError> {
        let missing = || PanelError::NotFound(id.to_owned());
        let id = PanelLinkId::parse(id).ok_or_else(missing)?;
        self.0.find(entity.id(), &id).await?.filter(|link| link.is_good(now)).ok_or_else(missing)
    }

    /// Removes a link and ends its session. Another entity's link is treated as missing. The request's idempotency
    /// record, if any, is written with the removal.
    pub async fn remove(
        &self,
        entity: &AuthorizedEntity,
        id: &str,
        record: Option<Record>,
        notes: &Notes,
        now: Time,
    ) -> Result<(), PanelError> {
        let missing = || PanelError::NotFound(id.to_owned());
        let id = PanelLinkId::parse(id).ok_or_else(missing)?;
        notes.subject(id.as_str());
        let link = self.0.find(entity.id(), &id).await?.filter(|link| link.is_good(now)).ok_or_else(missing)?;
        match self.0.remove(&link, record, now).await? {
            Written::Done(()) => Ok(()),
            Written::Lost(_) => Err(missing()),
        }
    }
}
