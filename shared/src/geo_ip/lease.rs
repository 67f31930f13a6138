//! One update of an edition at a time, by an item of the table. A lease that nobody gives back ends by itself.

use std::time::Duration;

use aws_sdk_dynamodb::{operation::put_item::PutItemError, types::ReturnValuesOnConditionCheckFailure as OnConflict};
use serde::{Deserialize, Serialize};

use super::edition::EditionName;
use crate::{
    clock::{SharedClock, Time},
    random::{self, SharedRandom},
    table::{Table, TableError, read_item, text, write_item},
};

const TAKING: &str = "taking the lease of a geo-IP edition";
const RETURNING: &str = "giving back the lease of a geo-IP edition";

/// The leases of all editions.
#[derive(Clone)]
pub struct Leases {
    /// Where they are.
    pub table: Table,
    /// When they end.
    pub clock: SharedClock,
    /// Whose they are.
    pub random: SharedRandom,
}

/// The right to update an edition, for a while.
#[derive(Debug)]
pub struct Lease {
    key: String,
    owner: String,
}

/// What became of the wish.
#[derive(Debug)]
pub enum Taken {
    /// Nobody else updates the edition until the lease's end.
    Lease(Lease),
    /// Somebody else does, since then.
    HeldSince(Time),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    pk: String,
    sk: String,
    owner: String,
    since: Time,
    until: Time,
    expires_at: i64,
}

impl Leases {
    /// Takes the lease of an edition, unless somebody has it.
    pub async fn take(&self, edition: &EditionName, length: Duration) -> Result<Taken, TableError> {
        let (now, owner) = (self.clock.now(), random::uuid(&*self.random));
        let (key, until) = (format!("GEOIP#{edition}"), now + length);
        let item = Item {
            pk: key.clone(),
            sk: "LEASE".to_owned(),
            owner: owner.clone(),
            since: now,
            until,
            // Kept a day longer, for whoever wants to know when the last update was.
            expires_at: until.as_seconds() + 86_400,
        };
        let put = self.table.client.put_item().table_name(&self.table.name).set_item(Some(write_item(&item, TAKING)?));
        let put = put
            .condition_expression("attribute_not_exists(pk) OR #until <= :now")
            .expression_attribute_names("#until", "until")
            .expression_attribute_values(":now", text(now))
            .return_values_on_condition_check_failure(OnConflict::AllOld);
        let Err(error) = put.send().await else { return Ok(Taken::Lease(Lease { key, owner })) };
        match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(held)) => {
                let held = held.item.clone().map(|item| read_item::<Item>(item, TAKING)).transpose()?;
                Ok(Taken::HeldSince(held.map_or(now, |held| held.since)))
            }
            _ => Err(TableError::sdk(TAKING)(error)),
        }
    }

    /// Gives a lease back. One that somebody else took over after its end is theirs.
    pub async fn give_back(&self, lease: Lease) -> Result<(), TableError> {
        let delete = self.table.client.delete_item().table_name(&self.table.name);
        let delete = delete
            .key("pk", text(&lease.key))
            .key("sk", text("LEASE"))
            .condition_expression("#owner = :owner")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", text(&lease.owner));
        match delete.send().await {
            Err(error)
                if !error.as_service_error().is_some_and(|error| error.is_conditional_check_failed_exception()) =>
            {
                Err(TableError::sdk(RETURNING)(error))
            }
            _ => Ok(()),
        }
    }
}
