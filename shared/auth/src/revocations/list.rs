//! The list of revocations in the table: one small item for each, in the order of time, so that a
//! function that knows the list reads only the new items.
//!
//! Revocations that end within an hour have a partition of their own, so that a function that
//! starts reads few entries that have ended already, however long the table keeps them.
//!
//! | item | pk / sk |
//! |---|---|
//! | a revocation that ends within 65 minutes | `REVOKED#HOUR` / `{millis:013}#{kind}#{id}` |
//! | a revocation that may last a day | `REVOKED#DAY` / the same |
//!
//! A function that starts reads a snapshot of the list ([`super::snapshot_items`]) and what is newer. Where the horizon
//! ([`super::horizon`]) says that nothing is, it reads no more.

use std::{future::Future, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    horizon::{Horizon, Reached, Seen},
    revocation::{Kind, LONGEST_LIFE, Revocation, TOKENS_REVOKED, credential},
    snapshot::Snapshot,
    snapshot_items::{self, SnapshotError},
};
use crate::token::Claims;
use base::Time;
use storage::table::{Change, Key, Page, Put, Query, Table, TableError, absent, less};
use storage::{Allowance, Allowances};

/// A part of the list, and how long its revocations may count after they were made.
struct Shelf {
    pk: &'static str,
    life: Duration,
}

const HOUR: Shelf = Shelf { pk: "REVOKED#HOUR", life: Duration::from_secs(65 * 60) };
const DAY: Shelf = Shelf { pk: "REVOKED#DAY", life: LONGEST_LIFE };

/// The time, in milliseconds, in which the revocations of one application's tokens share an entry
/// once its allowance is spent. A reading goes back by this time and the five minutes that clocks
/// may be apart, so that a function reads the entry again when it has changed.
const SHARED_FOR: i64 = 5 * 60 * 1000;
/// How long after a right was taken from an application a token may still be issued that has it: the
/// application was read before. Clocks may be a second or two apart as well.
const BEING_ISSUED: Duration = Duration::from_secs(5);
/// As many entries as one answer has, so that reading a long list takes little memory.
const PAGE: i32 = 2000;

impl Revocation {
    fn shelf(&self) -> &'static Shelf {
        if self.until.since(self.made) <= HOUR.life { &HOUR } else { &DAY }
    }

    fn sk(&self) -> String {
        format!("{}{}#{}", since(self.made), self.kind.name(), self.id)
    }
}

/// The item in the table. Its sort key names the revoked thing and the time of the revocation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RevocationItem {
    #[serde(default)]
    pk: String,
    sk: String,
    /// In milliseconds.
    until: i64,
    /// In milliseconds, where it is another time than the kind says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issued_until: Option<i64>,
    #[serde(default)]
    expires_at: i64,
}

impl RevocationItem {
    /// The write of a revocation that is made at a time that the horizon has reached.
    fn put(revocation: &Revocation, _: Reached, doing: &'static str) -> Result<Put, TableError> {
        let until = revocation.until;
        let item = Self {
            pk: revocation.shelf().pk.to_owned(),
            sk: revocation.sk(),
            until: until.as_millis(),
            issued_until: (revocation.kind == Kind::Issued).then(|| revocation.issued_until.as_millis()),
            expires_at: until.as_seconds() + 1,
        };
        Put::item(&item, doing)
    }
}

/// An entry of the list, as it is read. An entry of a kind that only a later release knows cannot
/// be read.
#[derive(Debug, Deserialize)]
#[serde(try_from = "RevocationItem")]
struct Entry(Revocation);

/// A sort key that names no revoked thing.
#[derive(Debug, thiserror::Error)]
#[error("the sort key `{0}` does not consist of a time, a known kind and an identifier")]
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
        let revocation = Revocation::new(kind, id, made, Time::from_millis(item.until));
        let issued_until = item.issued_until.map_or(revocation.issued_until, Time::from_millis);
        Ok(Self(Revocation { issued_until, ..revocation }))
    }
}

/// The beginning of the sort keys of revocations of this moment.
fn since(time: Time) -> String {
    format!("{:013}#", time.as_millis().max(0))
}

/// Where revocations are read.
pub trait RevocationSource: Send + Sync {
    /// The last snapshot of the list, if there is one that can be begun with at this time.
    fn last_snapshot(&self, now: Time) -> impl Future<Output = Result<Option<Snapshot>, SnapshotError>> + Send;

    /// The time after which no revocation was made, so far as this can be seen; `None` where that is not known.
    fn horizon(&self, seen: Seen) -> impl Future<Output = Result<Option<Time>, TableError>> + Send;

    /// Hands over the revocations made since then, or without a time all that may still count, page
    /// by page as they are read.
    fn made_since(
        &self,
        from: Option<Time>,
        now: Time,
        page: impl FnMut(Vec<Revocation>) + Send,
    ) -> impl Future<Output = Result<(), TableError>> + Send;
}

/// The list.
#[derive(Debug, Clone)]
pub struct RevocationList {
    pub(super) table: Table,
    pub(super) horizon: Horizon,
    /// Whether a release that does not move the horizon may revoke as well.
    pub(super) beside_former_release: bool,
    allowances: Allowances,
}

impl RevocationList {
    /// The list in this table.
    pub fn new(table: Table) -> Self {
        let (allowances, horizon) = (Allowances::new(table.clone()), Horizon::new(table.clone()));
        Self { table, horizon, beside_former_release: false, allowances }
    }

    /// The same, where a release that does not move the horizon may revoke as well: then the horizon says nothing.
    pub fn beside_former_release(self, beside_former_release: bool) -> Self {
        Self { beside_former_release, ..self }
    }

    /// Revokes a token, by an application that is counted on this account. It is never refused:
    /// once the allowance is spent, the application's tokens that were issued up to this one end
    /// with it, in one entry.
    pub async fn token(&self, claims: &Claims, account: &str, now: Time) -> Result<Revocation, TableError> {
        let reached = self.horizon.reach(now).await?;
        if !self.stands_alone(claims, account, now).await? {
            return self.issued_up_to(claims, reached).await;
        }
        const DOING: &str = "revoking a token";
        let revocation = Revocation::new(Kind::Token, &claims.token_id, now, claims.expires);
        self.table.write(RevocationItem::put(&revocation, reached, DOING)?, DOING).await?;
        Ok(revocation)
    }

    async fn stands_alone(&self, claims: &Claims, account: &str, now: Time) -> Result<bool, TableError> {
        let own = self.allowances.spend(Allowance::OwnTokens, 1, &claims.client_id, now).await?;
        Ok(own.is_none() || self.allowances.spend(Allowance::SharedTokens, 1, account, now).await?.is_none())
    }

    /// Revokes every token of an application that was issued no later than this one. One entry
    /// serves for five minutes.
    async fn issued_up_to(&self, claims: &Claims, Reached(now): Reached) -> Result<Revocation, TableError> {
        let revocation = shared(claims, now);
        let issued = revocation.issued_until.as_millis();
        let change = Change::of(Key::new(revocation.shelf().pk, revocation.sk()))
            .set("issuedUntil", issued)
            .set("until", revocation.until.as_millis())
            .set("expiresAt", revocation.until.as_seconds() + 1)
            // The latest time counts, in whatever order the changes come. A change that loses is
            // covered by the one before it.
            .only_if(absent("issuedUntil").or(less("issuedUntil", issued)));
        self.table.write(change, "revoking an application's tokens up to one").await?;
        Ok(revocation)
    }

    /// Revokes every token that a key signed, until the last of them is over.
    pub async fn key(&self, kid: &str, until: Time, now: Time) -> Result<(), TableError> {
        const DOING: &str = "revoking a key";
        let reached = self.horizon.reach(now).await?;
        let revocation = Revocation::new(Kind::Key, kid, now, until);
        self.table.write(RevocationItem::put(&revocation, reached, DOING)?, DOING).await.map(drop)
    }
}

/// The write that revokes every token of an application, for the transaction that removes the
/// application.
pub fn of_application(client_id: &str, now: Reached) -> Result<Put, TableError> {
    let Reached(made) = now;
    let revocation = Revocation::new(Kind::Client, client_id, made, made + TOKENS_REVOKED);
    RevocationItem::put(&revocation, now, "revoking the tokens of an application")
}

/// The write that revokes every token that was got with a secret or a key, for the transaction that
/// removes that credential.
pub fn of_credential(client_id: &str, credential_id: &str, now: Reached) -> Result<Put, TableError> {
    let Reached(made) = now;
    let id = credential(client_id, credential_id);
    let revocation = Revocation::new(Kind::Credential, &id, made, made + TOKENS_REVOKED);
    RevocationItem::put(&revocation, now, "revoking the tokens of a credential")
}

/// The write that revokes every token of a session, for the transaction that ends the session. The last of them is over at
/// that time.
pub fn of_session(session_id: &str, until: Time, now: Reached) -> Result<Put, TableError> {
    let Reached(made) = now;
    let revocation = Revocation::new(Kind::Session, session_id, made, until);
    RevocationItem::put(&revocation, now, "revoking the tokens of a session")
}

/// The write that revokes every token that an application has by now, for the transaction that
/// takes a right from it. Tokens that it gets a little later have the right no longer.
pub fn of_issued_tokens(client_id: &str, now: Reached) -> Result<Put, TableError> {
    let Reached(made) = now;
    let revocation = Revocation::new(Kind::Issued, client_id, made, made + TOKENS_REVOKED);
    let revocation = Revocation { issued_until: made + BEING_ISSUED, ..revocation };
    RevocationItem::put(&revocation, now, "revoking the issued tokens of an application")
}

/// The entry that the revocations of an application's tokens share at this moment.
fn shared(claims: &Claims, now: Time) -> Revocation {
    let begun = Time::from_millis(now.as_millis() - now.as_millis().rem_euclid(SHARED_FOR));
    let revocation = Revocation::new(Kind::Issued, &claims.client_id, begun, begun + TOKENS_REVOKED);
    Revocation { issued_until: claims.issued, ..revocation }
}

impl RevocationSource for RevocationList {
    async fn last_snapshot(&self, now: Time) -> Result<Option<Snapshot>, SnapshotError> {
        let snapshot = snapshot_items::read(&self.table).await?;
        // One of the future was made by a clock that was wrong by more than it may be.
        Ok(snapshot.filter(|snapshot| snapshot.taken <= now && now.since(snapshot.taken) < DAY.life))
    }

    async fn horizon(&self, seen: Seen) -> Result<Option<Time>, TableError> {
        if self.beside_former_release { Ok(None) } else { self.horizon.see(seen).await }
    }

    async fn made_since(
        &self,
        from: Option<Time>,
        now: Time,
        mut page: impl FnMut(Vec<Revocation>) + Send,
    ) -> Result<(), TableError> {
        // One after the other: at a cold start a second connection would cost more than a round
        // trip.
        for shelf in [HOUR, DAY] {
            let oldest = now - shelf.life;
            let query = Query::partition(shelf.pk)
                .starting_at("sk", since(from.unwrap_or(oldest).max(oldest)))
                .attributes(&["sk", "until", "issuedUntil"])
                .limit(PAGE)
                // An entry of a later release is left out, since otherwise no token could be
                // verified.
                .skipping_unreadable();
            let mut next = None;
            loop {
                let read: Page<Entry> = self.table.page(query.clone().after(next), "reading the revocations").await?;
                page(read.entries.into_iter().map(|Entry(revocation)| revocation).collect());
                next = read.next;
                if next.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
