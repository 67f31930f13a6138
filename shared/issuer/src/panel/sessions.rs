//! Opening, renewing and ending sessions.

use super::{
    error::{CodeFault, PanelError, SessionFault},
    key::PanelKey,
    link::{PanelLink, TOKEN_LIFETIME},
    session::{KeyState, PanelSession},
    store::LinkStore,
};
use crate::{
    applications::{Application, Applications},
    oauth::signing_keys::SigningKeyCache,
};
use auth::{Audience, Claims, Entities, Resource, token};
use base::{SharedRandom, Time, audit::Notes};
use problem::{JsonBody, Problem};
use std::time::Duration;
use storage::{SecretText, Table, TableError};

/// How many times a renewal is attempted while other tabs renew concurrently.
const RENEWING: usize = 3;

/// Opens, renews and ends sessions. The secret in a code or a cookie is the credential.
pub struct PanelSessions {
    store: LinkStore,
    applications: Applications,
    issuer: SigningKeyCache,
    audience: Audience,
    random: SharedRandom,
}

/// A browser's request: opens a link with its code, or renews the session of its cookie.
#[derive(Debug)]
pub struct SessionRequest {
    /// The code, to open a link.
    pub code: Option<SecretText>,
}

impl SessionRequest {
    /// Parses a browser's request. An empty body has no code.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        if body.trim_ascii().is_empty() {
            return Ok(Self { code: None });
        }
        let mut body = JsonBody::read(body)?;
        let code: Option<String> = body.optional("code", "the text after `#code=` in a panel link");
        body.finish()?;
        Ok(Self { code: code.map(SecretText::new) })
    }
}

/// A session with a new token, and with the key for the next renewal.
#[derive(Debug)]
pub struct OpenSession {
    /// The link that opened the session.
    pub link: PanelLink,
    /// The session's token.
    pub access_token: SecretText,
    /// When the token expires.
    pub expires: Time,
    /// When the session ends.
    pub session_ends: Time,
    /// The key for the next renewal.
    pub key: PanelKey,
}

impl PanelSessions {
    /// Creates the sessions in this table, with tokens of this issuer.
    pub fn new(table: &Table, issuer: SigningKeyCache, audience: Audience, random: SharedRandom) -> Self {
        let store = LinkStore::new(table.clone());
        let applications = Applications::new(table.clone());
        Self { store, applications, issuer, audience, random }
    }

    /// Opens a link with its code, which can be used once.
    pub async fn open(&self, code: &SecretText, notes: &Notes, now: Time) -> Result<OpenSession, PanelError> {
        let code = PanelKey::parse(code.expose()).ok_or(CodeFault::Unknown)?;
        let link = self.store.find(&code.entity, &code.link).await?;
        let link = link.filter(|link| code.has_hash(&link.code_hash)).ok_or(CodeFault::Unknown)?;
        note(notes, &link);
        if link.session.is_some() {
            return Err(CodeFault::Used.into());
        }
        if !link.is_good(now) {
            return Err(CodeFault::Expired.into());
        }
        let application = self.backing(&link, now).await?.ok_or(CodeFault::Unbacked)?;
        let key = PanelKey::new(code.entity, code.link, &*self.random);
        let lifetime = Duration::from_secs(link.grant.lifetime_seconds.into());
        let session = PanelSession::begin(&key, lifetime, now, &*self.random);
        let opened = self.with_token(link, &application, key, session.ends_date, now).await?;
        // Written last, so that the link can still be opened if no token can be issued.
        if self.store.open(&opened.link, &session).await?.is_done() { Ok(opened) } else { Err(CodeFault::Used.into()) }
    }

    /// Renews a session: returns its next token and its next key.
    pub async fn renew(&self, cookie: Option<&str>, notes: &Notes, now: Time) -> Result<OpenSession, PanelError> {
        for _ in 0..RENEWING {
            if let Some(renewed) = self.renew_as_read(cookie, notes, now).await? {
                return Ok(renewed);
            }
        }
        Err(SessionFault::Unknown.into())
    }

    /// Renews a session unless it changes between read and write. Returns `None` if another tab was faster, or the
    /// session was extended or removed.
    async fn renew_as_read(
        &self,
        cookie: Option<&str>,
        notes: &Notes,
        now: Time,
    ) -> Result<Option<OpenSession>, PanelError> {
        let (key, link, session) = self.of_cookie(cookie, notes).await?;
        if now >= session.ends_date {
            return Err(SessionFault::Over.into());
        }
        let (next, replaces) = match session.state_of(&key, now) {
            KeyState::Good if session.is_renewable() => (session.next(&key), true),
            KeyState::Good => return Err(SessionFault::Over.into()),
            KeyState::JustReplaced(good) => (good, false),
            KeyState::Replaced => {
                self.store.remove(&link, None, now).await?;
                return Err(SessionFault::Replayed.into());
            }
            KeyState::Foreign => return Err(SessionFault::Unknown.into()),
        };
        let application = self.backing(&link, now).await?.ok_or(SessionFault::Unbacked)?;
        let renewed = self.with_token(link, &application, next, session.ends_date, now).await?;
        if !replaces {
            return Ok(Some(renewed));
        }
        let session_then = session.replacing_key(&renewed.key, now);
        let written = self.store.renew(&renewed.link, &session, &session_then).await?;
        Ok(written.is_done().then_some(renewed))
    }

    /// Ends a session and revokes its tokens. A missing session is not an error.
    pub async fn end(&self, cookie: Option<&str>, notes: &Notes, now: Time) -> Result<(), PanelError> {
        match self.of_cookie(cookie, notes).await {
            Ok((key, link, session)) if !matches!(session.state_of(&key, now), KeyState::Foreign) => {
                Ok(self.store.remove(&link, None, now).await.map(drop)?)
            }
            Ok(_) | Err(PanelError::Session(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The session of a cookie. The caller must check that the cookie is its key. Without a cookie, nothing is read.
    async fn of_cookie(
        &self,
        cookie: Option<&str>,
        notes: &Notes,
    ) -> Result<(PanelKey, PanelLink, PanelSession), PanelError> {
        let Some(cookie) = cookie else {
            notes.untried();
            return Err(SessionFault::NoCookie.into());
        };
        let key = PanelKey::parse(cookie).ok_or(SessionFault::Unknown)?;
        let link = self.store.find(&key.entity, &key.link).await?.ok_or(SessionFault::Unknown)?;
        let session = link.session.clone().ok_or(SessionFault::Unknown)?;
        note(notes, &link);
        Ok((key, link, session))
    }

    /// The application, if it still has the link's rights and credential.
    async fn backing(&self, link: &PanelLink, now: Time) -> Result<Option<Application>, TableError> {
        let application = self.applications.find(&link.grant.client_id).await?;
        Ok(application.filter(|application| link.is_backed_by(application, now)))
    }

    async fn with_token(
        &self,
        link: PanelLink,
        application: &Application,
        key: PanelKey,
        session_ends: Time,
        now: Time,
    ) -> Result<OpenSession, PanelError> {
        let expires = session_ends.min(now + TOKEN_LIFETIME);
        let keys = self.issuer.keys_until(expires).await?;
        let claims = Claims {
            client_id: link.grant.client_id.clone(),
            credential_id: link.grant.credential_id.clone(),
            session_id: Some(link.id.to_string()),
            token_id: token::new_token_id(&*self.random),
            key_id: keys.current.kid().to_owned(),
            resource: Resource::Api,
            scopes: link.grant.scopes,
            entities: Entities::new([link.entity.to_string()]),
            may_publish: link.grant.may_publish && application.may_publish,
            issued: now,
            expires,
        };
        let access_token = SecretText::new(token::issue(&claims, &self.audience, &keys.current)?);
        Ok(OpenSession { link, access_token, expires, session_ends, key })
    }
}

/// Notes the session's owner for the audit trail.
fn note(notes: &Notes, link: &PanelLink) {
    notes.client(&link.grant.client_id);
    notes.entity(link.entity.as_str());
    notes.subject(link.id.as_str());
}
