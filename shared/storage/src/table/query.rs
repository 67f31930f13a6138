//! Queries of a partition or an index.

use aws_sdk_dynamodb::{Client, operation::query::builders::QueryFluentBuilder};

use base::Time;

use super::{
    condition::Condition,
    expression::Expressions,
    key::{Item, Key},
    value::Value,
};

/// A query of a partition of the table or of an index, with an optional range of its sort key.
#[derive(Debug, Clone)]
pub struct Query {
    index: Option<&'static str>,
    partition: (&'static str, Value),
    range: Option<Range>,
    filter: Vec<Condition>,
    attributes: Option<&'static [&'static str]>,
    limit: Option<i32>,
    newest_first: bool,
    consistent: bool,
    start: Option<Item>,
    pub(super) skips_unreadable: bool,
}

#[derive(Debug, Clone)]
enum Range {
    Between(&'static str, Value, Value),
    From(&'static str, Value),
    BeginsWith(&'static str, Value),
}

/// The end of a page, after which the next one begins.
#[derive(Debug, Clone, PartialEq)]
pub struct PageEnd(pub(super) Item);

impl PageEnd {
    /// The position of the item with this key in the table, or in an index whose key has these attributes.
    pub fn new<'a>(key: &Key, index: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut position = key.attributes();
        position.extend(index.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value).0)));
        Self(position)
    }

    /// The text of one of the position's attributes.
    pub fn text(&self, attribute: &str) -> Option<&str> {
        self.0.get(attribute)?.as_s().ok().map(String::as_str)
    }
}

/// One page of a query.
#[derive(Debug)]
pub struct Page<T> {
    /// The items, in order.
    pub entries: Vec<T>,
    /// This page's end; `None` for the last one.
    pub next: Option<PageEnd>,
}

/// The number of items that one page of a query finds.
#[derive(Debug)]
pub struct Count {
    /// The number of matching items.
    pub found: usize,
    /// The number of items read, filtered ones included.
    pub looked_at: usize,
    /// The end of this page of the count; `None` if all items were counted.
    pub next: Option<PageEnd>,
}

impl Query {
    /// A partition of the table, read consistently: the result includes every previously acknowledged write, at twice
    /// the price.
    pub fn partition(partition: impl Into<Value>) -> Self {
        Self { consistent: true, ..Self::new(None, ("pk", partition.into())) }
    }

    /// A partition of an index, whose key is this attribute. An index is eventually consistent.
    pub fn index(index: &'static str, attribute: &'static str, partition: impl Into<Value>) -> Self {
        Self::new(Some(index), (attribute, partition.into()))
    }

    /// The due items of a shard of the `byDue` index, longest overdue first. Unreadable entries are logged and left
    /// out, so that they do not block others.
    pub fn due_by(shard: impl Into<Value>, now: Time) -> Self {
        Self::index("byDue", "dueShard", shard).between("dueAt", "0", now).skipping_unreadable()
    }

    fn new(index: Option<&'static str>, partition: (&'static str, Value)) -> Self {
        Self {
            index,
            partition,
            range: None,
            filter: Vec::new(),
            attributes: None,
            limit: None,
            newest_first: false,
            consistent: false,
            start: None,
            skips_unreadable: false,
        }
    }

    /// Reads eventually consistently, at half the price: the result may lack the most recent writes.
    pub fn eventually_consistent(self) -> Self {
        Self { consistent: false, ..self }
    }

    /// Items between these two values, both included.
    pub fn between(self, attribute: &'static str, from: impl Into<Value>, to: impl Into<Value>) -> Self {
        Self { range: Some(Range::Between(attribute, from.into(), to.into())), ..self }
    }

    /// Items from this value on.
    pub fn starting_at(self, attribute: &'static str, from: impl Into<Value>) -> Self {
        Self { range: Some(Range::From(attribute, from.into())), ..self }
    }

    /// Items with this prefix.
    pub fn beginning_with(self, attribute: &'static str, prefix: impl Into<Value>) -> Self {
        Self { range: Some(Range::BeginsWith(attribute, prefix.into())), ..self }
    }

    /// Only items that match this filter. The rest are still read and paid for.
    pub fn only(mut self, filter: Condition) -> Self {
        self.filter.push(filter);
        self
    }

    /// Only these attributes.
    pub fn attributes(self, attributes: &'static [&'static str]) -> Self {
        Self { attributes: Some(attributes), ..self }
    }

    /// Reads at most this many items for a page.
    pub fn limit(self, limit: i32) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Largest sort key first.
    pub fn newest_first(self) -> Self {
        Self { newest_first: true, ..self }
    }

    /// Begins after the previous page's end.
    pub fn after(self, end: Option<PageEnd>) -> Self {
        Self { start: end.map(|end| end.0), ..self }
    }

    /// Logs unreadable items and leaves them out, so that they do not block others.
    pub fn skipping_unreadable(self) -> Self {
        Self { skips_unreadable: true, ..self }
    }

    pub(super) fn call(self, client: &Client, table: &str) -> QueryFluentBuilder {
        let mut expressions = Expressions::default();
        let key = expressions.key(&self.partition, self.range.as_ref().map(Range::parts));
        let filter = expressions.condition(&self.filter);
        let projection = self.attributes.map(|attributes| expressions.projection(attributes));
        let (names, values) = expressions.into_maps();
        let call = client.query().table_name(table).set_index_name(self.index.map(str::to_owned));
        let call = call.key_condition_expression(key).set_filter_expression(filter);
        let call = call.set_expression_attribute_names(names).set_expression_attribute_values(values);
        let call = call.set_projection_expression(projection).set_limit(self.limit);
        let call = call.scan_index_forward(!self.newest_first).consistent_read(self.consistent);
        call.set_exclusive_start_key(self.start)
    }
}

impl Range {
    /// The condition with `#` for the attribute and `?` for each value, the attribute, and the values.
    fn parts(&self) -> (&'static str, &'static str, Vec<Value>) {
        match self {
            Self::Between(name, from, to) => ("# BETWEEN ? AND ?", name, vec![from.clone(), to.clone()]),
            Self::From(name, from) => ("# >= ?", name, vec![from.clone()]),
            Self::BeginsWith(name, prefix) => ("begins_with(#, ?)", name, vec![prefix.clone()]),
        }
    }
}
