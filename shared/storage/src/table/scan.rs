//! Scans of the whole table, for operators' programs. Functions never scan.

use aws_sdk_dynamodb::{
    Client,
    operation::scan::{ScanOutput, builders::ScanFluentBuilder},
};
use futures::FutureExt;
use serde::de::DeserializeOwned;

use super::{
    Table, TableFuture,
    condition::Condition,
    error::TableError,
    expression::Expressions,
    key::{Item, Key},
    query::PageEnd,
    value::read_item,
};

/// A consistent scan of the whole table.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    filter: Vec<Condition>,
    start: Option<Item>,
}

/// A page of a scan.
#[derive(Debug)]
pub struct Scanned<T> {
    /// Each item with its key. An unreadable item is an error that names its key.
    pub items: Vec<(Key, Result<T, TableError>)>,
    /// The number of items read for it, filtered ones included.
    pub looked_at: u64,
    /// This page's end; `None` for the last one.
    pub next: Option<PageEnd>,
}

impl Scan {
    /// Only items that match this filter. The rest are still read and paid for.
    pub fn only(mut self, filter: Condition) -> Self {
        self.filter.push(filter);
        self
    }

    /// Begins after the previous page's end.
    pub fn after(self, end: Option<PageEnd>) -> Self {
        Self { start: end.map(|end| end.0), ..self }
    }

    fn call(self, client: &Client, table: &str) -> ScanFluentBuilder {
        let mut expressions = Expressions::default();
        let filter = expressions.condition(&self.filter);
        let (names, values) = expressions.into_maps();
        let call = client.scan().table_name(table).consistent_read(true).set_filter_expression(filter);
        let call = call.set_expression_attribute_names(names).set_expression_attribute_values(values);
        call.set_exclusive_start_key(self.start)
    }
}

impl Table {
    /// A page of a scan, in no particular order.
    pub async fn scan<T: DeserializeOwned>(&self, scan: Scan, doing: &'static str) -> Result<Scanned<T>, TableError> {
        let response = self.scan_page(scan, doing).await?;
        let looked_at = u64::try_from(response.scanned_count).unwrap_or_default();
        let items = response.items.unwrap_or_default().into_iter();
        let items = items.filter_map(|item| Some((Key::of(&item)?, read_item(item, doing)))).collect();
        Ok(Scanned { items, looked_at, next: response.last_evaluated_key.map(PageEnd) })
    }

    fn scan_page(&self, scan: Scan, doing: &'static str) -> TableFuture<'_, ScanOutput> {
        async move { scan.call(&self.client, &self.name).send().await.map_err(TableError::sdk(doing)) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::config::{BehaviorVersion, Config};

    use super::*;
    use crate::table::condition::{begins_with, is, present};

    #[test]
    fn a_scan_is_consistent_and_filters_in_dynamodb() {
        let client = Client::from_conf(Config::builder().behavior_version(BehaviorVersion::latest()).build());
        let end = PageEnd(Key::new("A", "B").attributes());
        let scan = Scan::default().only(begins_with("sk", "WHK#").or(is("sk", "HEAD").and(present("lease"))));
        let call = scan.after(Some(end.clone())).call(&client, "T");
        assert_eq!(call.get_consistent_read(), &Some(true));
        assert_eq!(
            call.get_filter_expression().as_deref(),
            Some("begins_with(#n0, :v0) OR (#n0 = :v1 AND attribute_exists(#n1))")
        );
        assert_eq!(call.get_exclusive_start_key().as_ref(), Some(&end.0));
    }
}
