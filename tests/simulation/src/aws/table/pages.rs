//! Queries and scans, page by page.

use std::{borrow::Cow, ops::Bound, sync::Arc};

use serde_json::{Value, json};

use super::{
    Conditions, Item, ItemKey,
    condition::Condition,
    parser::{Parser, Placeholders, Token},
    range::Range,
    reads::view,
    refusal::{Checked, Invalid, Refusal},
    request::Request,
    schema::Index,
    store::{Store, Stored, View},
    value::{item_size, object},
};

/// DynamoDB's limit on the size of the items read for a page, in bytes.
const LARGEST_PAGE: usize = 1024 * 1024;

const NAMES: &str = "ExpressionAttributeNames";
const VALUES: &str = "ExpressionAttributeValues";

/// The part of a request that queries and scans have in common.
struct PageRequest<'a> {
    index: Option<&'a Index>,
    view: View,
    filter: Option<Condition<'a>>,
    attributes: Option<Vec<&'a str>>,
    limit: usize,
    counts: bool,
}

type Found<'s> = (&'s ItemKey, &'s Stored);

/// Handles `Query`.
pub(super) fn query(
    store: &Store,
    request: &Value,
    now: u64,
    conditions: &mut dyn Conditions,
) -> Result<Value, Refusal> {
    let known = [
        "TableName",
        "IndexName",
        "KeyConditionExpression",
        "FilterExpression",
        "ProjectionExpression",
        NAMES,
        VALUES,
        "Limit",
        "ScanIndexForward",
        "ConsistentRead",
        "ExclusiveStartKey",
        "Select",
    ];
    let request = Request::of(request, &known)?;
    let mut placeholders = Placeholders::of(request.0)?;
    let key = request.condition("KeyConditionExpression", &mut placeholders)?;
    let key = key.ok_or_else(|| Invalid("a query needs a KeyConditionExpression".to_owned()))?;
    let page = PageRequest::read(store, request, placeholders)?;
    let schema = &store.schema;
    let [partition, sort] =
        page.index.map_or([&schema.partition, &schema.sort], |index| [&index.partition, &index.sort]);
    if page
        .filter
        .as_ref()
        .is_some_and(|filter| filter.attributes().iter().any(|name| name == partition || name == sort))
    {
        return Err(Invalid("Filter Expression can only contain non-primary key attributes".to_owned()).into());
    }
    let range = Range::of(key, partition, sort)?;
    let start = request.member("ExclusiveStartKey").map(|start| page.start(store, start)).transpose()?;
    let started = request.member("ExclusiveStartKey").and_then(|start| start[partition]["S"].as_str());
    if start.as_ref().is_some_and(|(sort, _)| started != Some(range.partition) || !range.has(sort)) {
        let message = "The provided starting key is outside query boundaries based on provided conditions";
        return Err(Invalid(message.to_owned()).into());
    }
    let throttled = (range.partition.to_owned(), String::new());
    if conditions.throttles(&throttled, page.index.map(|index| index.name.as_str()), false) {
        return Err(Refusal::throttled());
    }
    let forward = request.flag("ScanIndexForward")?.unwrap_or(true);
    let found = page.in_range(store, &range, start, forward, now);
    Ok(page.answer(store, found, conditions))
}

/// Handles `Scan`, in key order.
pub(super) fn scan(
    store: &Store,
    request: &Value,
    now: u64,
    conditions: &mut dyn Conditions,
) -> Result<Value, Refusal> {
    let known = ["TableName", "FilterExpression", NAMES, VALUES, "Limit", "ConsistentRead", "ExclusiveStartKey"];
    let request = Request::of(request, &known)?;
    let page = PageRequest::read(store, request, Placeholders::of(request.0)?)?;
    let start = match request.member("ExclusiveStartKey") {
        Some(start) => Bound::Excluded(store.schema.key(start)?),
        None => Bound::Unbounded,
    };
    if conditions.throttles(&ItemKey::default(), None, false) {
        return Err(Refusal::throttled());
    }
    let rows = store.rows.range((start, Bound::Unbounded));
    let found = rows.filter_map(|(key, row)| Some((key, row.seen(page.view, now)?)));
    Ok(page.answer(store, found, conditions))
}

impl<'a> PageRequest<'a> {
    fn read(store: &'a Store, request: Request<'a>, mut placeholders: Placeholders<'a>) -> Checked<Self> {
        request.needed("TableName")?;
        let position = request.text("IndexName")?.map(|name| store.schema.index(name)).transpose()?;
        let index = position.map(|position| &store.schema.indexes[position]);
        let view = match (position, view(request)?) {
            (Some(_), View::Present) => {
                return Err(Invalid("Consistent reads are not supported on global secondary indexes".to_owned()));
            }
            (Some(position), _) => View::Index(position),
            (None, view) => view,
        };
        let filter = request.condition("FilterExpression", &mut placeholders)?;
        let attributes = match request.text("ProjectionExpression")? {
            Some(text) => Some(projection(store, index, &mut Parser::new(text, &mut placeholders))?),
            None => None,
        };
        placeholders.finish()?;
        let counts = request.one_of("Select", &["COUNT"])?.is_some();
        let limit = match request.member("Limit") {
            Some(limit) => limit.as_u64().and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0),
            None => Some(usize::MAX),
        };
        let limit = limit.ok_or_else(|| Invalid("the Limit must be at least 1".to_owned()))?;
        Ok(Self { index, view, filter, attributes, limit, counts })
    }

    fn start(&self, store: &Store, start: &Value) -> Checked<(String, ItemKey)> {
        let wrong = || Invalid(format!("The provided starting key is invalid: {start}"));
        let members = start.as_object().ok_or_else(wrong)?;
        let key = store.schema.key_of(|name| members.get(name))?;
        let Some(index) = self.index else {
            return if members.len() == 2 { Ok((key.1.clone(), key)) } else { Err(wrong()) };
        };
        let sort = start[&index.sort]["S"].as_str().filter(|_| members.len() == 4).ok_or_else(wrong)?;
        Ok((sort.to_owned(), key))
    }

    /// The items in a range, in order, that come after or before a position.
    fn in_range<'s>(
        &self,
        store: &'s Store,
        range: &Range<'_>,
        start: Option<(String, ItemKey)>,
        forward: bool,
        now: u64,
    ) -> Box<dyn Iterator<Item = Found<'s>> + 's> {
        let partition = range.partition.to_owned();
        let view = self.view;
        let (after, before) = if forward { (start, None) } else { (None, start) };
        if let View::Index(position) = view {
            let Some(candidates) = store.candidates[position].get(range.partition) else {
                return Box::new(std::iter::empty());
            };
            let first = |sort: &String| (sort.clone(), ItemKey::default());
            let bounds = bounds(after, before, Some(first(&range.from)), range.to.as_ref().map(first));
            let Some(bounds) = bounds else { return Box::new(std::iter::empty()) };
            let index = &store.schema.indexes[position];
            let found = candidates.range(bounds).filter_map(move |(sort, key)| {
                let seen = store.seen(key, view, now)?;
                (index.entry(&seen.item) == Some((&partition, sort))).then_some((key, seen))
            });
            return if forward { Box::new(found) } else { Box::new(found.rev()) };
        }
        let to =
            range.to.clone().map_or_else(|| (format!("{partition}\0"), String::new()), |to| (partition.clone(), to));
        let [after, before] = [after, before].map(|position| position.map(|(_, key)| key));
        let Some(bounds) = bounds(after, before, Some((partition, range.from.clone())), Some(to)) else {
            return Box::new(std::iter::empty());
        };
        let found = store.rows.range(bounds).filter_map(move |(key, row)| Some((key, row.seen(view, now)?)));
        if forward { Box::new(found) } else { Box::new(found.rev()) }
    }

    /// The response with a page of these items.
    fn answer<'s>(
        &self,
        store: &Store,
        found: impl Iterator<Item = Found<'s>>,
        conditions: &mut dyn Conditions,
    ) -> Value {
        let mut items = Vec::new();
        let mut count = 0;
        let mut scanned = 0;
        let mut size = 0;
        let mut last = None;
        let mut has_more = false;
        for (key, stored) in found {
            if scanned > 0 && conditions.leaves_out() {
                has_more = true;
                break;
            }
            let item = match self.index {
                Some(index) => Cow::Owned(store.schema.projected(index, &stored.item)),
                None => Cow::Borrowed(stored.item.as_ref()),
            };
            size += if self.index.is_some() { item_size(&item) } else { stored.size };
            if scanned > 0 && size > LARGEST_PAGE {
                has_more = true;
                break;
            }
            scanned += 1;
            last = Some((key, &stored.item));
            if self.filter.as_ref().is_none_or(|filter| filter.holds(Some(&item))) {
                count += 1;
                if !self.counts {
                    items.push(self.shown(&item));
                }
            }
            // DynamoDB does not check whether another item follows, so the next page may be empty.
            if scanned == self.limit {
                has_more = true;
                break;
            }
        }
        let mut response = json!({ "Count": count, "ScannedCount": scanned });
        if !self.counts {
            response["Items"] = Value::Array(items);
        }
        if let Some((key, item)) = last.filter(|_| has_more) {
            response["LastEvaluatedKey"] = self.position(store, key, item);
        }
        response
    }

    fn shown(&self, item: &Item) -> Value {
        match &self.attributes {
            Some(attributes) => {
                let found =
                    attributes.iter().filter_map(|name| Some(((*name).to_owned(), Value::clone(item.get(*name)?))));
                Value::Object(found.collect())
            }
            None => object(item),
        }
    }

    fn position(&self, store: &Store, key: &ItemKey, item: &Arc<Item>) -> Value {
        let mut position = store.schema.key_item(key);
        if let Some(index) = self.index {
            for name in [&index.partition, &index.sort] {
                position.extend(item.get_key_value(name.as_str()).map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        object(&position)
    }
}

/// The bounds of the range after or before a position; `None` if the range is empty, since maps reject empty ranges.
fn bounds<T: Ord>(after: Option<T>, before: Option<T>, from: Option<T>, to: Option<T>) -> Option<(Bound<T>, Bound<T>)> {
    let lower = match (after, from) {
        (Some(after), _) => Bound::Excluded(after),
        (None, from) => from.map_or(Bound::Unbounded, Bound::Included),
    };
    let upper = before.or(to).map_or(Bound::Unbounded, Bound::Excluded);
    let is_empty = match (&lower, &upper) {
        (Bound::Included(lower) | Bound::Excluded(lower), Bound::Excluded(upper)) => lower >= upper,
        _ => false,
    };
    (!is_empty).then_some((lower, upper))
}

/// The requested top-level attributes, which must be in the table or the index.
fn projection<'a>(store: &Store, index: Option<&Index>, parser: &mut Parser<'a, '_>) -> Checked<Vec<&'a str>> {
    let mut attributes = Vec::new();
    loop {
        let path = parser.path()?;
        if !path.steps.is_empty() || attributes.contains(&path.root) {
            return Err(parser.unknown("path in a projection"));
        }
        if index.is_some_and(|index| !store.schema.has(index, path.root)) {
            return Err(Invalid(format!("Global secondary index does not project [{}]", path.root)));
        }
        attributes.push(path.root);
        if !parser.takes(Token::Sign(","))? {
            parser.end()?;
            return Ok(attributes);
        }
    }
}
