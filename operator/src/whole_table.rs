//! Looking for items in the whole table, where no index leads to them: what operators ask for now and then is not worth a
//! write unit with every change.

use serde::de::DeserializeOwned;

use base::logging;
use storage::table::{Key, Scan, Scanned, Table, TableError};

/// Progress is logged each time that so many more items were looked at.
const LOGGED_EVERY: u64 = 100_000;

/// All items that a scan finds, with their keys. An item that cannot be read is logged and left out. Reads and pays for the
/// whole table, a page at a time.
pub async fn find<T: DeserializeOwned>(
    table: &Table,
    scan: Scan,
    doing: &'static str,
) -> Result<Vec<(Key, T)>, TableError> {
    let mut all = Vec::new();
    let mut looked_at = 0;
    let mut next = None;
    loop {
        let page: Scanned<T> = table.scan(scan.clone().after(next), doing).await?;
        for (key, item) in page.items {
            match item {
                Ok(item) => all.push((key, item)),
                Err(error) => tracing::warn!("an item is left out: {}", logging::chain(&error)),
            }
        }
        let before = looked_at;
        looked_at += page.looked_at;
        if looked_at / LOGGED_EVERY > before / LOGGED_EVERY {
            tracing::info!("{looked_at} items looked at, {} found", all.len());
        }
        next = page.next;
        if next.is_none() {
            return Ok(all);
        }
    }
}
