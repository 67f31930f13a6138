//! The list of revocations in the table: one small item for each, in the order of time, so that whoever knows the list reads
//! only what is new.
//!
//! Revocations that end within an hour have a partition of their own, so that a function that starts reads few entries that have
//! ended already, however long the table keeps them.
//!
//! | item | pk / sk |
//! |---|---|
//! | a revocation that ends within 65 minutes | `REVOKED#HOUR` / `{millis:013}#{kind}#{id}` |
//! | a revocation that may last a day | `REVOKED#DAY` / the same |
//! | a revocation that an earlier release made | `REVOKED` / the same |

use std::{future::Future, time::Duration};

use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{Put, TransactWriteItem},
};
use serde::{Deserialize, Serialize};

use crate::token::Claims;
use base::{clock::Time, logging};
use storage::{
    allowance::{Allowance, Allowances},
    table::{Item, Table, TableError, number, read_item, text, write_item},
};

/// A part of the list, and for how long what stands in it may count after it was made.
struct Shelf {
    pk: &'static str,
    life: Duration,
}

const HOUR: Shelf = Shelf { pk: "REVOKED#HOUR", life: Duration::from_secs(65 * 60) };
const DAY: Shelf = Shelf { pk: "REVOKED#DAY", life: Duration::from_secs(25 * 60 * 60) };
/// Written by releases that knew no other. A day after the last of them ran it is empty.
const FORMER: Shelf = Shelf { pk: "REVOKED", life: Duration::from_secs(25 * 60 * 60) };

/// How long the tokens of an application or of a credential are revoked: the longest that a token may live, and some minutes
/// for those that were being issued. For as long, a credential that has ended has tokens that may still be good.
pub const TOKENS_REVOKED: Duration = Duration::from_secs(24 * 60 * 60 + 5 * 60);
/// How long after the removal of an application or of a credential its tokens may seem to be issued: for clocks, and for those
/// that were being issued. One that is registered again later has good tokens.
const LAST_ISSUED: Duration = Duration::from_secs(5 * 60);
/// The time, in milliseconds, in which the revocations of one application's tokens share an entry once its allowance is spent.
/// Together with the five minutes that clocks may be apart it is what a reading goes back before the last one: a function
/// that has read the entry reads it again when it has changed.
const SHARED_FOR: i64 = 5 * 60 * 1000;
/// As many entries as one answer has, so that reading a long list takes little memory.
const PAGE: i32 = 2000;

/// What a revocation is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One token, by its `jti`.
    Token,
    /// Every token of an application that was removed, by its client identifier.
    Client,
    /// Every token that a key signed, by the key's name.
    Key,
    /// Every token that was got with a secret or a key of an application, by `credential`.
    Credential,
    /// Every token of an application that was issued up to some time, by its client identifier.
    Issued,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Token, Self::Client, Self::Key, Self::Credential, Self::Issued];

    fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Client => "client",
            Self::Key => "key",
            Self::Credential => "credential",
            Self::Issued => "issued",
        }
    }
}

/// How the list names a secret or a key of an application.
pub fn credential(client_id: &str, credential_id: &str) -> String {
    format!("{client_id}#{credential_id}")
}

/// One revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// What it is of.
    pub kind: Kind,
    /// The identifier of that.
    pub id: String,
    /// When it was made, by the clock of whoever made it.
    pub made: Time,
    /// Tokens that were issued later are none of those.
    pub issued_until: Time,
    /// When what is revoked is over anyway.
    pub until: Time,
}

impl Revocation {
    /// The revocation of one thing, whenever its tokens were issued; of an application or a credential, whose identifier may come
    /// to be used again, up to a little later than now.
    pub fn new(kind: Kind, id: &str, made: Time, until: Time) -> Self {
        let issued_until = match kind {
            Kind::Client | Kind::Credential => made + LAST_ISSUED,
            Kind::Token | Kind::Key | Kind::Issued => until,
        };
        Self { kind, id: id.to_owned(), made, issued_until, until }
    }

    fn shelf(&self) -> &'static Shelf {
        if self.until.since(self.made) <= HOUR.life { &HOUR } else { &DAY }
    }

    fn sk(&self) -> String {
        format!("{}{}#{}", since(self.made), self.kind.name(), self.id)
    }
}

/// The item in the table. Its sort key says what it is of, and when it was made.
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
    fn of(revocation: &Revocation) -> Self {
        let until = revocation.until;
        Self {
            pk: revocation.shelf().pk.to_owned(),
            sk: revocation.sk(),
            until: until.as_millis(),
            issued_until: (revocation.kind == Kind::Issued).then(|| revocation.issued_until.as_millis()),
            expires_at: until.as_seconds() + 1,
        }
    }

    fn read(self) -> Result<Revocation, TableError> {
        let mut parts = self.sk.splitn(3, '#');
        let made = parts.next().and_then(|millis| millis.parse().ok()).map(Time::from_millis);
        let kind = parts.next().and_then(|name| Kind::ALL.into_iter().find(|kind| kind.name() == name));
        let (Some(made), Some(kind), Some(id)) = (made, kind, parts.next()) else {
            return Err(TableError::Missing("the time, kind and identifier of a revocation"));
        };
        let revocation = Revocation::new(kind, id, made, Time::from_millis(self.until));
        let issued_until = self.issued_until.map_or(revocation.issued_until, Time::from_millis);
        Ok(Revocation { issued_until, ..revocation })
    }
}

/// What the sort keys of revocations of this moment begin with.
fn since(time: Time) -> String {
    format!("{:013}#", time.as_millis().max(0))
}

/// Where revocations are read.
pub trait RevocationSource: Send + Sync {
    /// Hands over those made since then, or whatever else may still count if no time is said, page by page as they are read.
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
    table: Table,
    allowances: Allowances,
}

impl RevocationList {
    /// The list in this table.
    pub fn new(table: Table) -> Self {
        Self { allowances: Allowances::new(table.clone()), table }
    }

    /// Revokes a token, by an application that is counted on this account. It is never refused: once the allowance is spent, the
    /// application's tokens that were issued up to this one end with it, in one entry.
    pub async fn token(&self, claims: &Claims, account: &str, now: Time) -> Result<Revocation, TableError> {
        if !self.stands_alone(claims, account, now).await? {
            return self.issued_up_to(claims, now).await;
        }
        let revocation = Revocation::new(Kind::Token, &claims.token_id, now, claims.expires);
        self.table.put(&RevocationItem::of(&revocation), "revoking a token").await?;
        Ok(revocation)
    }

    async fn stands_alone(&self, claims: &Claims, account: &str, now: Time) -> Result<bool, TableError> {
        let own = self.allowances.spend(Allowance::OwnTokens, 1, &claims.client_id, now).await?;
        Ok(own.is_none() || self.allowances.spend(Allowance::SharedTokens, 1, account, now).await?.is_none())
    }

    /// Revokes every token of an application that was issued no later than this one. One entry serves for five minutes.
    async fn issued_up_to(&self, claims: &Claims, now: Time) -> Result<Revocation, TableError> {
        let revocation = shared(claims, now);
        let written = self
            .table
            .client
            .update_item()
            .table_name(&self.table.name)
            .key("pk", text(revocation.shelf().pk))
            .key("sk", text(revocation.sk()))
            .update_expression("SET issuedUntil = :issued, #until = :until, expiresAt = :end")
            // The latest time counts, in whatever order they come.
            .condition_expression("attribute_not_exists(issuedUntil) OR issuedUntil < :issued")
            .expression_attribute_names("#until", "until")
            .expression_attribute_values(":issued", number(revocation.issued_until.as_millis()))
            .expression_attribute_values(":until", number(revocation.until.as_millis()))
            .expression_attribute_values(":end", number(revocation.until.as_seconds() + 1))
            .send()
            .await;
        match written {
            Ok(_) => Ok(revocation),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(revocation),
                _ => Err(TableError::sdk("revoking an application's tokens up to one")(error)),
            },
        }
    }

    /// Revokes every token that a key signed, until the last of them is over.
    pub async fn key(&self, kid: &str, until: Time, now: Time) -> Result<(), TableError> {
        let revocation = Revocation::new(Kind::Key, kid, now, until);
        self.table.put(&RevocationItem::of(&revocation), "revoking a key").await
    }

    /// What revokes every token that an application has, as a part of the transaction that removes it.
    pub fn client(&self, client_id: &str, now: Time) -> Result<TransactWriteItem, TableError> {
        self.along(&Revocation::new(Kind::Client, client_id, now, now + TOKENS_REVOKED))
    }

    /// What revokes every token that was got with a secret or a key, as a part of the transaction that removes that.
    pub fn credential(&self, client_id: &str, credential_id: &str, now: Time) -> Result<TransactWriteItem, TableError> {
        let id = credential(client_id, credential_id);
        self.along(&Revocation::new(Kind::Credential, &id, now, now + TOKENS_REVOKED))
    }

    fn along(&self, revocation: &Revocation) -> Result<TransactWriteItem, TableError> {
        const DOING: &str = "revoking the tokens of what is removed";
        let item = write_item(&RevocationItem::of(revocation), DOING)?;
        let put = Put::builder().table_name(&self.table.name).set_item(Some(item)).build();
        Ok(TransactWriteItem::builder().put(put.map_err(TableError::unbuilt(DOING))?).build())
    }
}

/// The entry that the revocations of an application's tokens share at this moment.
fn shared(claims: &Claims, now: Time) -> Revocation {
    let begun = Time::from_millis(now.as_millis() - now.as_millis().rem_euclid(SHARED_FOR));
    let revocation = Revocation::new(Kind::Issued, &claims.client_id, begun, begun + TOKENS_REVOKED);
    Revocation { issued_until: claims.issued, ..revocation }
}

impl RevocationSource for RevocationList {
    async fn made_since(
        &self,
        from: Option<Time>,
        now: Time,
        mut page: impl FnMut(Vec<Revocation>) + Send,
    ) -> Result<(), TableError> {
        const DOING: &str = "reading the revocations";
        // One after the other: at a cold start a second connection would cost more than a round trip.
        for shelf in [HOUR, DAY, FORMER] {
            let oldest = now - shelf.life;
            let query = self
                .table
                .client
                .query()
                .table_name(&self.table.name)
                .consistent_read(true)
                .limit(PAGE)
                .projection_expression("sk, #until, issuedUntil")
                .expression_attribute_names("#until", "until")
                .key_condition_expression("pk = :pk AND sk >= :from")
                .expression_attribute_values(":pk", text(shelf.pk))
                .expression_attribute_values(":from", text(since(from.unwrap_or(oldest).max(oldest))));
            let mut pages = query.into_paginator().send();
            while let Some(read) = pages.next().await {
                let items = read.map_err(TableError::sdk(DOING))?.items.unwrap_or_default();
                page(items.into_iter().filter_map(readable).collect());
            }
        }
        Ok(())
    }
}

/// An entry. One of a kind that only a later release knows is logged and left out, since otherwise no token could be verified.
fn readable(item: Item) -> Option<Revocation> {
    let read = read_item(item, "reading a revocation").and_then(RevocationItem::read);
    read.inspect_err(|error| tracing::error!(error = %logging::chain(error), "a revocation cannot be read")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{entity::Entities, scope::Scopes};

    const NOW: Time = Time::from_millis(1_795_167_900_123);

    fn after(seconds: u64) -> Time {
        NOW + Duration::from_secs(seconds)
    }

    fn read(item: Item) -> Revocation {
        readable(item).expect("one that can be read")
    }

    #[test]
    fn an_item_stands_at_its_time_and_comes_back_as_it_was() {
        let ids = [
            (Kind::Token, "a#b", "1795167900123#token#a#b"),
            (Kind::Client, "app1", "1795167900123#client#app1"),
            (Kind::Key, "key", "1795167900123#key#key"),
            (Kind::Credential, "app1#sec_1", "1795167900123#credential#app1#sec_1"),
        ];
        for (kind, id, sk) in ids {
            let revocation = Revocation::new(kind, id, NOW, after(3600));
            let item = write_item(&RevocationItem::of(&revocation), "").expect("an item");
            assert_eq!((&item["sk"], &item["pk"]), (&text(sk), &text("REVOKED#HOUR")));
            assert_eq!(item["expiresAt"], number(1_795_171_501));
            assert_eq!(read(item), revocation);
        }
    }

    #[test]
    fn what_lives_for_long_stands_apart_from_what_is_over_soon() {
        for (seconds, pk) in
            [(1, "REVOKED#HOUR"), (3900, "REVOKED#HOUR"), (3901, "REVOKED#DAY"), (86_400, "REVOKED#DAY")]
        {
            assert_eq!(Revocation::new(Kind::Token, "t", NOW, after(seconds)).shelf().pk, pk, "{seconds}");
        }
        assert!(TOKENS_REVOKED <= DAY.life && TOKENS_REVOKED <= FORMER.life);
    }

    #[test]
    fn what_an_earlier_release_wrote_is_read() {
        let item = serde_json::json!({
            "pk": "REVOKED", "sk": "1795167900123#client#app1", "kind": "client", "id": "app1", "until": 1_795_171_500_123_i64,
            "expiresAt": 1_795_171_501
        });
        let item = write_item(&item, "").expect("an item");
        assert_eq!(read(item), Revocation::new(Kind::Client, "app1", NOW, after(3600)));
    }

    #[test]
    fn a_kind_that_only_a_later_release_knows_is_left_out() {
        let item = serde_json::json!({ "sk": "1795167900123#planet#mars", "until": 1 });
        assert_eq!(readable(write_item(&item, "").expect("an item")), None);
    }

    #[test]
    fn the_tokens_of_an_application_that_go_together_share_an_entry_for_five_minutes() {
        let claims = |issued: Time| Claims {
            client_id: "app1".into(),
            credential_id: None,
            token_id: "t".into(),
            key_id: "kid".into(),
            scopes: Scopes::ALL,
            entities: Entities::new([]),
            issued,
            expires: after(3600),
        };
        let (first, second) = (shared(&claims(NOW), NOW), shared(&claims(after(1)), after(299)));
        assert_eq!((first.sk(), first.shelf().pk), (second.sk(), "REVOKED#DAY"));
        assert_eq!((first.issued_until, second.issued_until), (NOW, after(1)));
        assert_ne!(shared(&claims(NOW), after(300)).sk(), first.sk());
        let item = write_item(&RevocationItem::of(&second), "").expect("an item");
        assert_eq!(read(item), second);
    }

    #[test]
    fn sort_keys_are_in_the_order_of_time() {
        let times = [0, 999, 1000, 1_795_167_900_123, 9_999_999_999_999].map(Time::from_millis);
        assert!(times.map(since).is_sorted());
    }
}
