//! Pages of the list of deliveries.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    failure::Failure,
    service::{Call, Service},
};

/// The maximum number of deliveries on a page.
const PAGE: usize = 100;

/// A parameter of the list, with its value.
pub type Filter = (&'static str, String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Identified {
    id: String,
}

/// The newest deliveries that match filters.
pub struct Found {
    pub deliveries: Vec<Box<RawValue>>,
    /// Whether the list has no next page.
    pub is_complete: bool,
}

/// The newest deliveries that match all filters, without duplicates.
pub async fn newest(service: &Service, filters: &[Filter], limit: usize) -> Result<Vec<Box<RawValue>>, Failure> {
    found(service, filters, limit).await.map(|found| found.deliveries)
}

/// The newest deliveries that match all filters, without duplicates, in as many pages as the limit requires.
pub async fn found(service: &Service, filters: &[Filter], limit: usize) -> Result<Found, Failure> {
    let mut found = Vec::new();
    // A later page may repeat a delivery from the last few minutes.
    let mut known = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut has_begun_again = false;
    loop {
        let missing = limit - found.len();
        let mut query = vec![("limit", missing.min(PAGE).to_string())];
        query.extend(filters.iter().cloned());
        query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
        let page = service.call(Call { query: &query, ..Call::get(&["webhook", "delivery", "list"]) }).await;
        let page: Page = match page {
            // The operator has replaced the cursor keys.
            Err(Failure::Refused(problem)) if problem.kind == "invalid-cursor" && !has_begun_again => {
                has_begun_again = true;
                continue;
            }
            page => page?,
        };
        for delivery in page.items {
            let Identified { id } = service.read(delivery.get())?;
            if known.insert(id) {
                found.push(delivery);
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() || found.len() >= limit {
            return Ok(Found { deliveries: found, is_complete: cursor.is_none() });
        }
    }
}
