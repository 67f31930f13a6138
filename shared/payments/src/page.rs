//! Pages of lists. This crate's lists are short and sorted, so a page is cut from the whole list. A cursor is the
//! encoded key of the last item before its page, so that clients are not tempted to construct one from a name.

use std::fmt::Display;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Serialize;

use problem::{Problem, Query};

/// How many items a page has by default.
const DEFAULT_LIMIT: usize = 25;
/// The maximum number of items that a page may have.
const MAX_LIMIT: usize = 100;

/// A request for a page of a list whose items have keys of this type.
#[derive(Debug)]
pub struct PageRequest<K> {
    limit: usize,
    after: Option<K>,
}

/// A page of a list, as a client sees it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl<K> PageRequest<K> {
    /// Reads a query's parameters. `parse` reads the key in a cursor.
    pub fn read(mut query: Query<'_>, parse: impl FnOnce(&str) -> Option<K>) -> Result<Self, Problem> {
        let limit = query.number("limit", "a number from 1 to 100", limit).unwrap_or(DEFAULT_LIMIT);
        let cursor = query.optional("cursor", "a single string", Some);
        query.finish()?;
        let key = |cursor: &str| parse(std::str::from_utf8(&BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?);
        let after = cursor.map(|cursor| key(cursor).ok_or_else(Problem::invalid_cursor)).transpose()?;
        Ok(Self { limit, after })
    }
}

impl<T> Page<T> {
    /// Cuts a page from the whole list. `follows` says whether the item with the first key comes after the one with the
    /// second.
    pub(crate) fn cut<K: Display>(
        list: Vec<T>,
        request: &PageRequest<K>,
        key: impl Fn(&T) -> &K,
        follows: impl Fn(&K, &K) -> bool,
    ) -> Self {
        let is_after = |item: &T| request.after.as_ref().is_none_or(|after| follows(key(item), after));
        let mut items: Vec<T> = list.into_iter().filter(is_after).take(request.limit + 1).collect();
        let has_more = items.len() > request.limit;
        items.truncate(request.limit);
        let next_cursor =
            items.last().filter(|_| has_more).map(|item| BASE64_URL_SAFE_NO_PAD.encode(key(item).to_string()));
        Self { items, next_cursor }
    }
}

/// Reads the number of items on a page, in digits only.
fn limit(text: &str) -> Option<usize> {
    let digits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let limit = digits.then(|| text.parse().ok())??;
    (1..=MAX_LIMIT).contains(&limit).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use problem::ProblemKind;

    fn page(limit: usize, after: Option<u8>) -> Page<u8> {
        // 5 was removed after its cursor was issued.
        Page::cut(vec![9, 7, 4, 1], &PageRequest { limit, after }, |item| item, |item, after| item < after)
    }

    fn expected(items: &[u8], next: Option<&str>) -> Page<u8> {
        Page { items: items.to_vec(), next_cursor: next.map(str::to_owned) }
    }

    #[test]
    fn pages_cover_the_list_once_even_if_the_item_of_a_cursor_is_gone() {
        assert_eq!(page(2, None), expected(&[9, 7], Some("Nw")));
        assert_eq!(page(2, Some(7)), expected(&[4, 1], None));
        assert_eq!(page(2, Some(5)), expected(&[4, 1], None));
        assert_eq!(page(1, Some(5)), expected(&[4], Some("NA")));
        assert_eq!(page(4, None), expected(&[9, 7, 4, 1], None));
        assert_eq!(page(2, Some(1)), expected(&[], None));
    }

    #[test]
    fn a_query_may_have_a_limit_and_a_cursor() {
        let read = |pairs: &[(&'static str, &'static str)]| {
            PageRequest::read(Query::new(pairs.iter().copied()), |text| text.parse::<u8>().ok())
        };
        let usual = read(&[]).expect("a request");
        assert_eq!((usual.limit, usual.after), (25, None));
        let given = read(&[("limit", "100"), ("cursor", "Nw")]).expect("a request");
        assert_eq!((given.limit, given.after), (100, Some(7)));
        for bad in [("limit", "0"), ("limit", "101"), ("limit", "+1"), ("page", "1")] {
            assert_eq!(read(&[bad]).expect_err("a violation").kind, ProblemKind::InvalidRequest, "{bad:?}");
        }
        for bad in [("cursor", "7"), ("cursor", "eA"), ("cursor", "")] {
            assert_eq!(read(&[bad]).expect_err("no cursor").kind, ProblemKind::InvalidCursor, "{bad:?}");
        }
    }
}
