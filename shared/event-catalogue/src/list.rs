//! `catalogue.json`: the keys and labels of the types, in the order in which they are listed.

use std::path::Path;

use serde_json::value::RawValue;

use crate::{
    catalogue::{RESERVED, Type},
    source::{Members, Mistake, Source},
};

/// The maximum number of types: a webhook can list each of them, and a program reads all of them.
const MAX_TYPES: usize = 1_000;
/// The maximum length of a key. The service suggests similar types for an unknown key of up to this length.
const MAX_KEY: usize = 60;

/// An entry of the list.
pub(crate) struct Entry<'a> {
    pub value: String,
    pub label: String,
    /// The whole entry in the file.
    pub at: &'a RawValue,
}

pub(crate) fn source(folder: &Path) -> Result<Source, Mistake> {
    Source::read(folder.join("catalogue.json"))
}

/// The valid entries of the list. `own` contains the types of the service, or nothing if the list is the service's.
pub(crate) fn read<'a>(source: &'a Source, own: Option<&[Type]>, mistakes: &mut Vec<Mistake>) -> Vec<Entry<'a>> {
    let given: Vec<&RawValue> = match source.parse("a list of objects") {
        Ok(given) => given,
        Err(mistake) => {
            mistakes.push(mistake);
            return Vec::new();
        }
    };
    if given.is_empty() || given.len() > MAX_TYPES {
        let message = format!("lists {} types; a catalogue has 1 to {MAX_TYPES}", given.len());
        mistakes.push(Mistake { path: source.path.clone(), line: Some(1), message });
    }
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for at in given {
        let checked = entry(at).and_then(|entry| check(&entry, own, &entries).map(|()| entry));
        match checked {
            Ok(entry) => entries.push(entry),
            Err(message) => mistakes.push(source.mistake(at, "", message)),
        }
    }
    entries
}

fn entry(at: &RawValue) -> Result<Entry<'_>, String> {
    let form = || "an entry is an object with exactly `label` and `value`, both strings".to_owned();
    let members = Members::of(at).filter(|members| members.0.len() == 2).ok_or_else(form)?;
    let text = |name| members.get(name).and_then(|text| serde_json::from_str::<String>(text.get()).ok());
    let value = text("value").ok_or_else(form)?;
    let label = text("label").ok_or_else(form)?;
    Ok(Entry { value, label, at })
}

fn check(Entry { value, label, .. }: &Entry<'_>, own: Option<&[Type]>, earlier: &[Entry<'_>]) -> Result<(), String> {
    if !is_key(value) {
        return Err(format!(
            "`{value}` is not a key: write two or three words with dots between them, such as `order.placed` or \
             `order.item.added`, of a-z, 0-9 and _, each beginning with a letter, and at most {MAX_KEY} characters"
        ));
    }
    if own.is_some()
        && let Some(prefix) = RESERVED.iter().find(|prefix| value.starts_with(**prefix))
    {
        return Err(format!(
            "`{value}`: keys that begin with `{prefix}` are reserved for the service; use another key"
        ));
    }
    if !is_label(label) {
        return Err(format!("{value}: the label `{label}` must have 3 to 80 characters and begin with a capital"));
    }
    if earlier.iter().any(|one| one.value == *value) {
        return Err(format!("`{value}` is already in the list"));
    }
    let earlier = earlier.iter().map(|one| (&one.label, &one.value));
    let own = own.into_iter().flatten().map(|one| (&one.label, &one.value));
    match earlier.chain(own).find(|(known, _)| *known == label) {
        Some((_, same)) => Err(format!("{value}: the label `{label}` is already used by {same}")),
        None => Ok(()),
    }
}

fn is_label(label: &str) -> bool {
    (3..=80).contains(&label.chars().count()) && label.starts_with(char::is_uppercase) && label.trim() == label
}

/// Two or three words of lower-case letters, digits and `_`, separated by dots.
fn is_key(value: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|letter: char| letter.is_ascii_lowercase())
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    value.len() <= MAX_KEY && (2..=3).contains(&value.split('.').count()) && value.split('.').all(word)
}
