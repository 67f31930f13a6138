//! The list of revocations in the table: one small item for each, in the order of time, so that whoever knows the list reads
//! only what is new.
//!
//! | item | pk / sk |
//! |---|---|
//! | a revocation | `REVOKED` / `{millis:013}#{kind}#{id}` |
//! | how many were made for an owner lately | `REVOCATIONS#{owner}` / the beginning of the window, in seconds |

use std::{future::Future, time::Duration};

use aws_sdk_dynamodb::{
    operation::update_item::UpdateItemError,
    types::{Put, TransactWriteItem},
};
use serde::{Deserialize, Serialize};

use crate::{
    auth::token::Claims,
    clock::Time,
    table::{Table, TableError, number, read_item, text, write_item},
};

const PARTITION: &str = "REVOKED";
/// How long a removed application's tokens are revoked: the longest that a token may live, and some minutes for those that
/// were being issued.
const CLIENT_REVOKED: Duration = Duration::from_secs(24 * 60 * 60 + 5 * 60);
/// No revocation is needed for longer than this, so that nothing older has to be read.
const LONGEST: Duration = Duration::from_secs(25 * 60 * 60);
/// How many tokens and applications may be revoked for an owner in an hour, so that the list stays short.
const LIMIT: u32 = 1000;
/// The hour in which they are counted, in seconds.
const WINDOW: i64 = 60 * 60;

/// What a revocation is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One token, by its `jti`.
    Token,
    /// Every token of an application, by its client identifier.
    Client,
    /// Every token that a key signed, by the key's name.
    Key,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Client => "client",
            Self::Key => "key",
        }
    }
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
    /// When what is revoked is over anyway.
    pub until: Time,
}

/// The item in the table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RevocationItem {
    pk: String,
    sk: String,
    kind: Kind,
    id: String,
    /// In milliseconds.
    until: i64,
    expires_at: i64,
}

impl RevocationItem {
    fn of(revocation: &Revocation) -> Self {
        let Revocation { kind, id, made, until } = revocation;
        Self {
            pk: PARTITION.to_owned(),
            sk: format!("{}{}#{id}", since(*made), kind.name()),
            kind: *kind,
            id: id.clone(),
            until: until.as_millis(),
            expires_at: until.as_seconds() + 1,
        }
    }

    fn read(self) -> Result<Revocation, TableError> {
        let made = self.sk.split('#').next().and_then(|millis| millis.parse().ok()).map(Time::from_millis);
        let made = made.ok_or(TableError::Missing("the time of a revocation"))?;
        Ok(Revocation { kind: self.kind, id: self.id, made, until: Time::from_millis(self.until) })
    }
}

/// What the sort keys of revocations of this moment begin with.
fn since(time: Time) -> String {
    format!("{:013}#", time.as_millis().max(0))
}

/// When the hour of this moment began, in seconds, and when it ends.
fn window(now: Time) -> (i64, Time) {
    let begun = now.as_seconds() - now.as_seconds() % WINDOW;
    (begun, Time::from_millis((begun + WINDOW) * 1000))
}

/// What came of revoking a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// It is on the list.
    Yes(Revocation),
    /// As many were revoked for the owner as may be until then.
    LimitUntil(Time),
}

/// Where revocations are read.
pub trait RevocationSource: Send + Sync {
    /// Hands over those made since then, or whatever else may still count if no time is said: in the order of time, page by
    /// page as they are read.
    fn made_since(
        &self,
        from: Option<Time>,
        now: Time,
        page: impl FnMut(Vec<Revocation>) + Send,
    ) -> impl Future<Output = Result<(), TableError>> + Send;
}

/// The list.
#[derive(Debug, Clone)]
pub struct RevocationList(Table);

impl RevocationList {
    /// The list in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Revokes a token for an owner, unless that had all revocations that it may have for now.
    pub async fn token(&self, claims: &Claims, owner: &str, now: Time) -> Result<Listed, TableError> {
        if let Some(end) = self.limited(owner, now).await? {
            return Ok(Listed::LimitUntil(end));
        }
        let revocation =
            Revocation { kind: Kind::Token, id: claims.token_id.clone(), made: now, until: claims.expires };
        self.0.put(&RevocationItem::of(&revocation), "revoking a token").await?;
        Ok(Listed::Yes(revocation))
    }

    /// Revokes every token that a key signed, until the last of them is over.
    pub async fn key(&self, kid: &str, until: Time, now: Time) -> Result<(), TableError> {
        let revocation = Revocation { kind: Kind::Key, id: kid.to_owned(), made: now, until };
        self.0.put(&RevocationItem::of(&revocation), "revoking a key").await
    }

    /// What revokes every token that an application has, as a part of the transaction that removes it. It is not counted.
    pub fn client(&self, client_id: &str, now: Time) -> Result<TransactWriteItem, TableError> {
        const DOING: &str = "revoking an application's tokens";
        let until = now + CLIENT_REVOKED;
        let revocation = Revocation { kind: Kind::Client, id: client_id.to_owned(), made: now, until };
        let item = write_item(&RevocationItem::of(&revocation), DOING)?;
        let put = Put::builder().table_name(&self.0.name).set_item(Some(item)).build();
        Ok(TransactWriteItem::builder().put(put.map_err(TableError::unbuilt(DOING))?).build())
    }

    /// Counts one more for an owner; if that has had all that it may have, when it may again.
    ///
    /// Not in a transaction with the revocation: those of one owner would cancel each other. What is counted and then not
    /// revoked was one attempt that failed.
    pub async fn limited(&self, owner: &str, now: Time) -> Result<Option<Time>, TableError> {
        let (begun, end) = window(now);
        let call = self.0.client.update_item().table_name(&self.0.name);
        let counted = call
            .key("pk", text(format!("REVOCATIONS#{owner}")))
            .key("sk", text(format!("{begun:010}")))
            .update_expression("SET expiresAt = :end ADD #count :one")
            .condition_expression("attribute_not_exists(#count) OR #count < :limit")
            .expression_attribute_names("#count", "count")
            .expression_attribute_values(":end", number(end.as_seconds() + 1))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":limit", number(LIMIT))
            .send()
            .await;
        match counted {
            Ok(_) => Ok(None),
            Err(error)
                if matches!(error.as_service_error(), Some(UpdateItemError::ConditionalCheckFailedException(_))) =>
            {
                Ok(Some(end))
            }
            Err(error) => Err(TableError::sdk("counting an owner's revocations")(error)),
        }
    }
}

impl RevocationSource for RevocationList {
    async fn made_since(
        &self,
        from: Option<Time>,
        now: Time,
        mut page: impl FnMut(Vec<Revocation>) + Send,
    ) -> Result<(), TableError> {
        const DOING: &str = "reading the revocations";
        let query = self
            .0
            .client
            .query()
            .table_name(&self.0.name)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND sk >= :from")
            .expression_attribute_values(":pk", text(PARTITION))
            .expression_attribute_values(":from", text(since(from.unwrap_or(now - LONGEST))));
        let mut pages = query.into_paginator().send();
        while let Some(read) = pages.next().await {
            let items = read.map_err(TableError::sdk(DOING))?.items.unwrap_or_default().into_iter();
            page(items.map(|item| read_item::<RevocationItem>(item, DOING)?.read()).collect::<Result<_, _>>()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_stands_at_its_time_and_comes_back_as_it_was() {
        let (now, until) = (Time::from_millis(1_795_167_900_123), Time::from_millis(1_795_171_500_000));
        let revocation = Revocation { kind: Kind::Client, id: "app1".to_owned(), made: now, until };
        let item = write_item(&RevocationItem::of(&revocation), "").expect("an item");
        assert_eq!(item["sk"], text("1795167900123#client#app1"));
        assert_eq!(item["expiresAt"], number(1_795_171_501));
        assert_eq!(read_item::<RevocationItem>(item, "").expect("one").read().expect("its time"), revocation);
    }

    #[test]
    fn revocations_are_counted_by_the_hour() {
        let (hour, end) = (1_795_165_200, Time::from_millis(1_795_168_800_000));
        for millis in [1_795_165_200_000, 1_795_167_900_123, 1_795_168_799_999] {
            assert_eq!(window(Time::from_millis(millis)), (hour, end));
        }
        assert_eq!(window(end).0, hour + WINDOW);
    }

    #[test]
    fn sort_keys_are_in_the_order_of_time() {
        let times = [0, 999, 1000, 1_795_167_900_123, 9_999_999_999_999].map(Time::from_millis);
        assert!(times.map(since).is_sorted());
    }
}
