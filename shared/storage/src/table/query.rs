//! Queries of a partition, or of an index.

use aws_sdk_dynamodb::{Client, operation::query::builders::QueryFluentBuilder};

use base::Time;

use super::{
    condition::Condition,
    expression::Expressions,
    key::{Item, Key},
    value::Value,
};

/// A query: a partition of the table or of an index, and a range of its sort key.
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

/// Where a page ended, for the next one to begin after it.
#[derive(Debug, Clone, PartialEq)]
pub struct PageEnd(pub(super) Item);

impl PageEnd {
    /// The place of the item with this key in the table, or in an index with these attributes as its own key.
    pub fn new<'a>(key: &Key, index: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut place = key.attributes();
        place.extend(index.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value).0)));
        Self(place)
    }

    /// The text of one of its attributes.
    pub fn text(&self, attribute: &str) -> Option<&str> {
        self.0.get(attribute)?.as_s().ok().map(String::as_str)
    }
}

/// One page of a query.
#[derive(Debug)]
pub struct Page<T> {
    /// The items, in order.
    pub entries: Vec<T>,
    /// Where the next page begins; nothing after the last one.
    pub next: Option<PageEnd>,
}

/// How many items a query finds.
#[derive(Debug)]
pub struct Count {
    /// As many were found.
    pub found: usize,
    /// As many were looked at for it, wanted or not.
    pub looked_at: usize,
    /// Where to go on counting; nothing when all were counted.
    pub next: Option<PageEnd>,
}

impl Query {
    /// A partition of the table, read consistently: every write that was acknowledged before is seen, at twice the
    /// price.
    pub fn partition(partition: impl Into<Value>) -> Self {
        Self { consistent: true, ..Self::new(None, ("pk", partition.into())) }
    }

    /// A partition of an index, by the name of its key's attribute. An index may lag behind a little.
    pub fn index(index: &'static str, attribute: &'static str, partition: impl Into<Value>) -> Self {
        Self::new(Some(index), (attribute, partition.into()))
    }

    /// A shard of the index `byDue`, between two of its keys, both included. An entry that cannot be read is logged and
    /// left out, so that it holds up no other.
    pub fn due(shard: impl Into<Value>, (from, to): (impl Into<Value>, impl Into<Value>)) -> Self {
        Self::index("byDue", "dueShard", shard).between("dueAt", from, to).skipping_unreadable()
    }

    /// The items of a shard that are due by now, the longest due first.
    pub fn due_by(shard: impl Into<Value>, now: Time) -> Self {
        Self::due(shard, ("0", now))
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

    /// Perhaps without the writes of the last moments, at half the price.
    pub fn eventually_consistent(self) -> Self {
        Self { consistent: false, ..self }
    }

    /// Items between these two, both included.
    pub fn between(self, attribute: &'static str, from: impl Into<Value>, to: impl Into<Value>) -> Self {
        Self { range: Some(Range::Between(attribute, from.into(), to.into())), ..self }
    }

    /// Items from here on.
    pub fn starting_at(self, attribute: &'static str, from: impl Into<Value>) -> Self {
        Self { range: Some(Range::From(attribute, from.into())), ..self }
    }

    /// Items that begin so.
    pub fn beginning_with(self, attribute: &'static str, prefix: impl Into<Value>) -> Self {
        Self { range: Some(Range::BeginsWith(attribute, prefix.into())), ..self }
    }

    /// Only items for which this holds. The others are read and paid for all the same.
    pub fn only(mut self, filter: Condition) -> Self {
        self.filter.push(filter);
        self
    }

    /// Only these attributes.
    pub fn attributes(self, attributes: &'static [&'static str]) -> Self {
        Self { attributes: Some(attributes), ..self }
    }

    /// At most so many are looked at for a page.
    pub fn limit(self, limit: i32) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The largest sort key first.
    pub fn newest_first(self) -> Self {
        Self { newest_first: true, ..self }
    }

    /// Begins after this end of a page.
    pub fn after(self, end: Option<PageEnd>) -> Self {
        Self { start: end.map(|end| end.0), ..self }
    }

    /// Leaves out and logs items that cannot be read, so that one holds up no other.
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
    /// The condition with `#` for the attribute and `?` for each value, and both.
    fn parts(&self) -> (&'static str, &'static str, Vec<Value>) {
        match self {
            Self::Between(name, from, to) => ("# BETWEEN ? AND ?", name, vec![from.clone(), to.clone()]),
            Self::From(name, from) => ("# >= ?", name, vec![from.clone()]),
            Self::BeginsWith(name, prefix) => ("begins_with(#, ?)", name, vec![prefix.clone()]),
        }
    }
}
