//! The canary's events that have arrived, in the table.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use base::{EventId, Time};
use storage::table::{Put, is_new};
use storage::{Table, TableError};

/// How long the table keeps an arrival: the run that waits for it looks for a minute at most.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// The arrivals in the table.
#[derive(Debug, Clone)]
pub(super) struct Arrivals(pub Table);

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArrivalItem {
    pk: String,
    sk: String,
    arrived_date: Time,
    expires_at: i64,
}

fn key(event: &EventId) -> (String, String) {
    (format!("CANARY#{event}"), "ARRIVAL".to_owned())
}

impl Arrivals {
    /// Notes an arrival; of several of one event, the first.
    pub async fn note(&self, event: &EventId, now: Time) -> Result<(), TableError> {
        const DOING: &str = "noting the arrival of a canary";
        let (pk, sk) = key(event);
        let item = ArrivalItem { pk, sk, arrived_date: now, expires_at: (now + KEPT).as_seconds() };
        self.0.write(Put::item(&item, DOING)?.only_if(is_new()), DOING).await.map(drop)
    }

    /// When an event has arrived, if it has.
    pub async fn of(&self, event: &EventId) -> Result<Option<Time>, TableError> {
        let item: Option<ArrivalItem> = self.0.get(key(event), true, "looking for the arrival of a canary").await?;
        Ok(item.map(|item| item.arrived_date))
    }
}
