//! The list of revocations in the table: one small item each, in order of time. A function that has the list reads only
//! new items.
//!
//! | item | pk / sk |
//! |---|---|
//! | a revocation | `REVOKED` / `{millis:013}#{kind}#{id}` |

use std::{future::Future, time::Duration};

use serde::{Deserialize, Serialize};

use super::revocation::{Kind, Revocation, TOKENS_REVOKED, credential};
use crate::token::Claims;
use base::Time;
use storage::table::{Change, Key, Page, Put, Query, Table, TableError, absent, less};
use storage::{Allowance, Allowances};

const PK: &str = "REVOKED";
/// How long the revocations of one application's tokens share an entry once the allowance is used up, in milliseconds.
/// Each read goes back this far, plus five minutes for clock skew, so that functions see later changes to the entry.
const SHARED_FOR: i64 = 5 * 60 * 1000;
/// How long a token may still be issued as if its application had not changed, because the issuer read the application
/// earlier. Includes a second or two of clock skew.
const BEING_ISSUED: Duration = Duration::from_secs(5);

/// The item in the table. Its sort key contains the revoked object and the revocation's time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RevocationItem {
    #[serde(default)]
    pk: String,
    sk: String,
    /// The time in milliseconds, if it differs from the kind's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issued_until: Option<i64>,
    /// The first whole second after the last revoked token expires.
    expires_at: i64,
}

impl RevocationItem {
    fn put(revocation: &Revocation, doing: &'static str) -> Result<Put, TableError> {
        let Revocation { kind, id, made, issued_until, until } = revocation;
        let default = Revocation::new(*kind, id, *made, *until).issued_until;
        let item = Self {
            pk: PK.to_owned(),
            sk: sort_key(revocation),
            issued_until: (*issued_until != default).then(|| issued_until.as_millis()),
            expires_at: expires_at(revocation),
        };
        Put::item(&item, doing)
    }
}

/// A list entry as read. An entry of a kind introduced by a later release fails to parse.
#[derive(Debug, Deserialize)]
#[serde(try_from = "RevocationItem")]
struct Entry(Revocation);

/// A sort key that contains no revoked object.
#[derive(Debug, thiserror::Error)]
#[error("the sort key `{0}` is not a time, a known kind and an identifier")]
struct UnknownRevocation(String);

impl TryFrom<RevocationItem> for Entry {
    type Error = UnknownRevocation;

    fn try_from(item: RevocationItem) -> Result<Self, UnknownRevocation> {
        let mut parts = item.sk.splitn(3, '#');
        let made = parts.next().and_then(|millis| millis.parse().ok()).map(Time::from_millis);
        let kind = parts.next().and_then(|name| Kind::ALL.into_iter().find(|kind| kind.name() == name));
        let (Some(made), Some(kind), Some(id)) = (made, kind, parts.next()) else {
            return Err(UnknownRevocation(item.sk));
        };
        let revocation = Revocation::new(kind, id, made, Time::from_millis(item.expires_at * 1000));
        let issued_until = item.issued_until.map_or(revocation.issued_until, Time::from_millis);
        Ok(Self(Revocation { issued_until, ..revocation }))
    }
}

fn sort_key(revocation: &Revocation) -> String {
    format!("{}{}#{}", since(revocation.made), revocation.kind.name(), revocation.id)
}

fn expires_at(revocation: &Revocation) -> i64 {
    revocation.until.as_seconds() + 1
}

/// The sort key prefix of revocations made at this time.
fn since(time: Time) -> String {
    format!("{:013}#", time.as_millis().max(0))
}

/// Which writes a read of the list sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Every acknowledged write.
    Strong,
    /// Possibly not the most recent ones, at half the price.
    Eventual,
}

/// A source of revocations.
pub trait RevocationSource: Send + Sync {
    /// Passes on, page by page, the revocations made since a given time.
    fn made_since(
        &self,
        from: Time,
        consistency: Consistency,
        page: impl FnMut(Vec<Revocation>) + Send,
    ) -> impl Future<Output = Result<(), TableError>> + Send;
}

/// The list.
#[derive(Debug, Clone)]
pub struct RevocationList {
    table: Table,
    allowances: Allowances,
}

impl RevocationList {
    /// Creates the list in this table.
    pub fn new(table: Table) -> Self {
        let allowances = Allowances::new(table.clone());
        Self { table, allowances }
    }

    /// Revokes a token for an application whose actions count towards this account. This is never refused: once the
    /// allowance is used up, one entry revokes all of the application's tokens issued up to this one. Allowances are
    /// counted in separate items, because transactions of the same account would cancel each other.
    pub async fn token(&self, claims: &Claims, account: &str, now: Time) -> Result<Revocation, TableError> {
        const DOING: &str = "revoking a token";
        if !self.has_own_entry(claims, account, now).await? {
            return self.issued_up_to(claims, now).await;
        }
        let revocation = Revocation::new(Kind::Token, &claims.token_id, now, claims.expires);
        self.table.write(RevocationItem::put(&revocation, DOING)?, DOING).await?;
        Ok(revocation)
    }

    async fn has_own_entry(&self, claims: &Claims, account: &str, now: Time) -> Result<bool, TableError> {
        let own = self.allowances.spend(Allowance::OwnTokens, 1, &claims.client_id, now).await?;
        Ok(own.is_none() || self.allowances.spend(Allowance::SharedTokens, 1, account, now).await?.is_none())
    }

    /// Revokes all of the application's tokens that were issued no later than this one. The entry is shared for five
    /// minutes.
    async fn issued_up_to(&self, claims: &Claims, now: Time) -> Result<Revocation, TableError> {
        let revocation = shared(claims, now);
        let issued = revocation.issued_until.as_millis();
        let change = Change::of(Key::new(PK, sort_key(&revocation)))
            .set("issuedUntil", issued)
            .set("expiresAt", expires_at(&revocation))
            // The latest issue time wins, regardless of the order of the changes, and covers the others.
            .only_if(absent("issuedUntil").or(less("issuedUntil", issued)));
        self.table.write(change, "revoking an application's tokens issued up to a given time").await?;
        Ok(revocation)
    }

    /// Revokes every token that a key signed, until the last of them expires.
    pub async fn key(&self, kid: &str, until: Time, now: Time) -> Result<(), TableError> {
        const DOING: &str = "revoking a key";
        let revocation = Revocation::new(Kind::Key, kid, now, until);
        self.table.write(RevocationItem::put(&revocation, DOING)?, DOING).await.map(drop)
    }
}

/// The write that revokes every token of an application, for the transaction that removes the application.
pub fn of_application(client_id: &str, now: Time) -> Result<Put, TableError> {
    let revocation = Revocation::new(Kind::Client, client_id, now, now + TOKENS_REVOKED);
    RevocationItem::put(&revocation, "revoking an application's tokens")
}

/// The write that revokes every token obtained with a secret or a key, for the transaction that removes that
/// credential.
pub fn of_credential(client_id: &str, credential_id: &str, now: Time) -> Result<Put, TableError> {
    let id = credential(client_id, credential_id);
    let revocation = Revocation::new(Kind::Credential, &id, now, now + TOKENS_REVOKED);
    RevocationItem::put(&revocation, "revoking a credential's tokens")
}

/// The write that revokes the current tokens obtained with a key, for the transaction that removes one of the key's
/// names while another remains. Tokens issued a little later are valid.
pub fn of_remaining_key(client_id: &str, thumbprint: &str, now: Time) -> Result<Put, TableError> {
    let revocation = Revocation::new(Kind::Credential, &credential(client_id, thumbprint), now, now + TOKENS_REVOKED);
    let revocation = Revocation { issued_until: now + BEING_ISSUED, ..revocation };
    RevocationItem::put(&revocation, "revoking a key's issued tokens")
}

/// The write that revokes every token of a session, for the transaction that ends the session. The last of them expires
/// at `until`.
pub fn of_session(session_id: &str, until: Time, now: Time) -> Result<Put, TableError> {
    let revocation = Revocation::new(Kind::Session, session_id, now, until);
    RevocationItem::put(&revocation, "revoking a session's tokens")
}

/// The write that revokes all of an application's current tokens, for the transaction that takes a right away from the
/// application. Tokens issued a little later no longer have the right.
pub fn of_issued_tokens(client_id: &str, now: Time) -> Result<Put, TableError> {
    let revocation = Revocation::new(Kind::Issued, client_id, now, now + TOKENS_REVOKED);
    let revocation = Revocation { issued_until: now + BEING_ISSUED, ..revocation };
    RevocationItem::put(&revocation, "revoking an application's issued tokens")
}

/// The entry that the revocations of an application's tokens share at this time.
fn shared(claims: &Claims, now: Time) -> Revocation {
    let begun = Time::from_millis(now.as_millis() - now.as_millis().rem_euclid(SHARED_FOR));
    let revocation = Revocation::new(Kind::Issued, &claims.client_id, begun, begun + TOKENS_REVOKED);
    Revocation { issued_until: claims.issued, ..revocation }
}

impl RevocationSource for RevocationList {
    async fn made_since(
        &self,
        from: Time,
        consistency: Consistency,
        mut page: impl FnMut(Vec<Revocation>) + Send,
    ) -> Result<(), TableError> {
        let query = Query::partition(PK)
            .starting_at("sk", since(from))
            .attributes(&["sk", "issuedUntil", "expiresAt"])
            // Skip entries from a later release; otherwise no token could be verified.
            .skipping_unreadable();
        let query = if consistency == Consistency::Eventual { query.eventually_consistent() } else { query };
        let mut next = None;
        loop {
            let read: Page<Entry> = self.table.page(query.clone().after(next), "reading the revocations").await?;
            page(read.entries.into_iter().map(|Entry(revocation)| revocation).collect());
            next = read.next;
            if next.is_none() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
