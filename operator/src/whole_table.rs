//! Scans the whole table for items that have no index. An index would cost a write unit with every change, which an
//! operator's rare queries do not justify.

use serde::de::DeserializeOwned;

use base::logging;
use storage::table::{Key, Scan, Scanned, Table, TableError};

/// The number of examined items between two progress lines in the log.
const LOGGED_EVERY: u64 = 100_000;

/// All items that a scan finds, with their keys. Unreadable items are logged and skipped. This reads the whole table,
/// one page at a time, and AWS charges for it.
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
                Err(error) => tracing::warn!("skipped an unreadable item: {}", logging::chain(&error)),
            }
        }
        let before = looked_at;
        looked_at += page.looked_at;
        if looked_at / LOGGED_EVERY > before / LOGGED_EVERY {
            tracing::info!("{looked_at} items examined, {} found", all.len());
        }
        next = page.next;
        if next.is_none() {
            return Ok(all);
        }
    }
}
