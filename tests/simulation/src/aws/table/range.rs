//! A query's key condition: a partition, and a range of sort keys.

use super::{
    condition::{Comparison, Condition},
    refusal::{Checked, Invalid},
    value::text,
};

/// The partition and the sort keys that a query reads, from the first string (inclusive) to the second (exclusive).
/// Every form of condition is such a range, because the next string after a string is the same string with a zero byte
/// appended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Range<'a> {
    pub partition: &'a str,
    pub from: String,
    pub to: Option<String>,
}

impl<'a> Range<'a> {
    /// The range that a condition on these two attributes describes.
    pub fn of(condition: Condition<'a>, partition: &str, sort: &str) -> Checked<Self> {
        let mut parts = condition.parts();
        let position = parts.iter().position(|part| part.demanded(partition).is_some());
        let found = position.and_then(|position| parts.remove(position).demanded(partition)).and_then(text);
        let Some(partition) = found.filter(|text| !text.is_empty()) else {
            return Err(Invalid(format!("Query condition missed key schema element: {partition}")));
        };
        let (from, to) = match parts.pop() {
            None => (String::new(), None),
            Some(part) => bounds(&part, sort)?,
        };
        match parts.pop() {
            None => Ok(Self { partition, from, to }),
            Some(other) => Err(Invalid::unknown("key condition", format_args!("{other:?}"))),
        }
    }

    pub fn has(&self, sort: &str) -> bool {
        self.from.as_str() <= sort && self.to.as_deref().is_none_or(|to| sort < to)
    }
}

fn bounds(condition: &Condition<'_>, sort: &str) -> Checked<(String, Option<String>)> {
    let unknown = || Invalid::unknown("key condition", format_args!("{condition:?}"));
    let path = match condition {
        Condition::Is(path, ..) | Condition::Between(path, ..) | Condition::BeginsWith(path, _) => path,
        _ => return Err(unknown()),
    };
    if path.root != sort || !path.steps.is_empty() {
        return Err(unknown());
    }
    Ok(match condition {
        Condition::Is(_, comparison, value) => {
            let value = text(value).ok_or_else(unknown)?.to_owned();
            match comparison {
                Comparison::Equal => (value.clone(), Some(after(&value))),
                Comparison::Less => (String::new(), Some(value)),
                Comparison::AtMost => (String::new(), Some(after(&value))),
                Comparison::More => (after(&value), None),
                Comparison::AtLeast => (value, None),
            }
        }
        Condition::Between(_, from, to) => {
            (text(from).ok_or_else(unknown)?.to_owned(), Some(after(text(to).ok_or_else(unknown)?)))
        }
        Condition::BeginsWith(_, prefix) => {
            let prefix = text(prefix).ok_or_else(unknown)?;
            (prefix.to_owned(), after_prefix(prefix))
        }
        _ => return Err(unknown()),
    })
}

/// The next string after this one.
fn after(text: &str) -> String {
    format!("{text}\0")
}

/// The first string after all strings with this prefix; `None` if there is none.
fn after_prefix(prefix: &str) -> Option<String> {
    let mut rest = prefix.to_owned();
    while let Some(last) = rest.pop() {
        if let Some(next) = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32) {
            rest.push(next);
            return Some(rest);
        }
    }
    None
}
