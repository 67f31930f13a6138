//! The list of revocations in the table: one small item for each, in the order of time, so that whoever knows the list reads
//! only what is new.
//!
//! | item | pk / sk |
//! |---|---|
//! | a revocation | `REVOKED` / `{millis:013}#{kind}#{id}` |
//! | how many a client made lately | `REVOCATIONS#{client}` / the beginning of the window, in seconds |

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
/// How many tokens a client may revoke in one of its windows. A window is as long as a token lives, so that twice as many are
/// on the list at most.
const LIMIT: u32 = 500;

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
    fn of(revocation: &Revocation, now: Time) -> Self {
        let Revocation { kind, id, until } = revocation;
        Self {
            pk: PARTITION.to_owned(),
            sk: format!("{}{}#{id}", since(now), kind.name()),
            kind: *kind,
            id: id.clone(),
            until: until.as_millis(),
            expires_at: until.as_seconds() + 1,
        }
    }

    fn read(self) -> Revocation {
        Revocation { kind: self.kind, id: self.id, until: Time::from_millis(self.until) }
    }
}

/// What the sort keys of revocations of this moment begin with.
fn since(time: Time) -> String {
    format!("{:013}#", time.as_millis().max(0))
}

/// What came of revoking a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// It is on the list.
    Yes(Revocation),
    /// The client has revoked as many as it may until then.
    LimitUntil(Time),
}

/// Where revocations are read.
pub trait RevocationSource: Send + Sync {
    /// Those made since then, and whatever else may still count if no time is said.
    fn made_since(
        &self,
        from: Option<Time>,
        now: Time,
    ) -> impl Future<Output = Result<Vec<Revocation>, TableError>> + Send;
}

/// The list.
#[derive(Debug, Clone)]
pub struct RevocationList(Table);

impl RevocationList {
    /// The list in this table.
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// Revokes a token for a client. A client has a limited number at once, so that the list stays short.
    pub async fn token(&self, claims: &Claims, client_id: &str, now: Time) -> Result<Listed, TableError> {
        if let Some(end) = self.limited(claims, client_id, now).await? {
            return Ok(Listed::LimitUntil(end));
        }
        let revocation = Revocation { kind: Kind::Token, id: claims.token_id.clone(), until: claims.expires };
        self.0.put(&RevocationItem::of(&revocation, now), "revoking a token").await?;
        Ok(Listed::Yes(revocation))
    }

    /// Revokes every token that a key signed, until the last of them is over.
    pub async fn key(&self, kid: &str, until: Time, now: Time) -> Result<(), TableError> {
        let revocation = Revocation { kind: Kind::Key, id: kid.to_owned(), until };
        self.0.put(&RevocationItem::of(&revocation, now), "revoking a key").await
    }

    /// What revokes every token of an application, as a part of the transaction that removes it.
    pub fn client(&self, client_id: &str, now: Time) -> Result<TransactWriteItem, TableError> {
        const DOING: &str = "revoking an application's tokens";
        let revocation = Revocation { kind: Kind::Client, id: client_id.to_owned(), until: now + CLIENT_REVOKED };
        let item = write_item(&RevocationItem::of(&revocation, now), DOING)?;
        let put = Put::builder().table_name(&self.0.name).set_item(Some(item)).build();
        Ok(TransactWriteItem::builder().put(put.map_err(TableError::unbuilt(DOING))?).build())
    }

    /// Counts one more for a client; if it has had all that it may have, when it may again.
    ///
    /// Not in a transaction with the revocation: those of one client would cancel each other. What is counted and then not
    /// revoked was one attempt that failed.
    async fn limited(&self, claims: &Claims, client_id: &str, now: Time) -> Result<Option<Time>, TableError> {
        let window = claims.expires.since(claims.issued).as_secs().max(1).cast_signed();
        let begun = now.as_seconds() - now.as_seconds() % window;
        let end = Time::from_millis(begun.saturating_add(window).saturating_mul(1000));
        let call = self.0.client.update_item().table_name(&self.0.name);
        let counted = call
            .key("pk", text(format!("REVOCATIONS#{client_id}")))
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
            Err(error) => Err(TableError::sdk("counting a client's revocations")(error)),
        }
    }
}

impl RevocationSource for RevocationList {
    async fn made_since(&self, from: Option<Time>, now: Time) -> Result<Vec<Revocation>, TableError> {
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
        let mut pages = query.into_paginator().items().send();
        let mut revocations = Vec::new();
        while let Some(item) = pages.next().await {
            let item = item.map_err(TableError::sdk(DOING))?;
            revocations.push(read_item::<RevocationItem>(item, DOING)?.read());
        }
        Ok(revocations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_stands_at_its_time_and_comes_back_as_it_was() {
        let (now, until) = (Time::from_millis(1_795_167_900_123), Time::from_millis(1_795_171_500_000));
        let revocation = Revocation { kind: Kind::Client, id: "app1".to_owned(), until };
        let item = write_item(&RevocationItem::of(&revocation, now), "").expect("an item");
        assert_eq!(item["sk"], text("1795167900123#client#app1"));
        assert_eq!(item["expiresAt"], number(1_795_171_501));
        assert_eq!(read_item::<RevocationItem>(item, "").expect("one").read(), revocation);
    }

    #[test]
    fn sort_keys_are_in_the_order_of_time() {
        let times = [0, 999, 1000, 1_795_167_900_123, 9_999_999_999_999].map(Time::from_millis);
        assert!(times.map(since).is_sorted());
    }
}
