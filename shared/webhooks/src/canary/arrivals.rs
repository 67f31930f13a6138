//! Arrivals of the canary's events, in the table.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use base::{EventId, Time};
use storage::table::{Put, is_new};
use storage::{Table, TableError};

/// How long the table keeps an arrival: far longer than a run waits for it.
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
    /// Records the first arrival of an event.
    pub async fn record(&self, event: &EventId, now: Time) -> Result<(), TableError> {
        const DOING: &str = "recording a canary's arrival";
        let (pk, sk) = key(event);
        let item = ArrivalItem { pk, sk, arrived_date: now, expires_at: (now + KEPT).as_seconds() };
        self.0.write(Put::item(&item, DOING)?.only_if(is_new()), DOING).await.map(drop)
    }

    /// When an event arrived, if it has.
    pub async fn of(&self, event: &EventId) -> Result<Option<Time>, TableError> {
        let item: Option<ArrivalItem> = self.0.get(key(event), true, "looking for a canary's arrival").await?;
        Ok(item.map(|item| item.arrived_date))
    }
}
