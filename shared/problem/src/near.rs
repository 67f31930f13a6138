//! Suggestions for unknown names, by similarity.

use std::{cmp::Reverse, collections::BTreeSet};

/// The maximum number of unknown names in one request that are compared with the known ones. Comparing a name with a
/// whole catalogue takes a millisecond.
pub const MAX_COMPARED: usize = 10;
/// The maximum number of names that a message suggests.
const SUGGESTED: usize = 3;
/// The minimum similarity of a suggestion: the percentage of shared pairs of letters.
const ALIKE: u32 = 50;
/// The maximum length of a string that gets suggestions, in characters. All known names are shorter. A longer string is
/// cut in the message.
const MAX_LENGTH: usize = 60;

/// The names that are most similar to a string, ignoring case, most similar first.
pub fn nearest<N: AsRef<str> + Ord>(given: &str, names: impl IntoIterator<Item = N>) -> Vec<N> {
    if given.chars().nth(MAX_LENGTH).is_some() {
        return Vec::new();
    }
    let given = given.to_lowercase();
    let likeness = |name: &str| (strsim::sorensen_dice(&given, &name.to_lowercase()) * 100.0) as u32;
    let names = names.into_iter().map(|name| (Reverse(likeness(name.as_ref())), name));
    let alike: BTreeSet<_> = names.filter(|(likeness, _)| likeness.0 >= ALIKE).collect();
    alike.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

/// The message about a string that is none of these names: the rule `what`, the string, suggestions, and a clause that
/// says where all names are listed.
pub fn none_of<N: AsRef<str> + Ord>(
    what: &str,
    given: &str,
    names: impl IntoIterator<Item = N>,
    all_are_listed: &str,
) -> String {
    let near = suggestion(&nearest(given, names));
    let given = match given.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", &given[..end]),
        None => given.to_owned(),
    };
    format!("{what}, but `{given}` is unknown{near}; {all_are_listed}")
}

/// The message about an unknown member or parameter, with suggestions or else all known names.
pub(crate) fn not_known(what: &str, given: &str, known: &[&str]) -> String {
    format!("is not a {what} of this operation{}", hint(given, known))
}

/// The end of a message about an unknown name: suggestions, or else all known names.
pub fn hint(given: &str, known: &[&str]) -> String {
    let near = nearest(given, known);
    match known {
        [] => String::new(),
        known if near.is_empty() => format!("; it accepts {}", known.join(", ")),
        _ => suggestion(&near),
    }
}

fn suggestion<N: AsRef<str>>(near: &[N]) -> String {
    let names: Vec<_> = near.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => format!(" (did you mean {only}?)"),
        Some((last, others)) => format!(" (did you mean {} or {last}?)", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: [&str; 4] = ["name", "eventUrl", "eventList", "headers"];

    #[test]
    fn the_nearest_name_comes_first_regardless_of_case() {
        for (given, meant) in [("eventurl", "eventUrl"), ("EVENT_LIST", "eventList"), ("header", "headers")] {
            assert_eq!(nearest(given, MEMBERS).first(), Some(&meant), "{given}");
        }
        assert!(nearest("secret", MEMBERS).is_empty());
        let names = || (0..20).map(|number| format!("eventUrl{number}"));
        assert_eq!(nearest("eventUrl", names()).len(), SUGGESTED);
    }

    #[test]
    fn an_unknown_name_gets_suggestions_or_else_all_known_names() {
        let said = |given| not_known("member", given, &["type", "data"]);
        assert_eq!(said("eventType"), "is not a member of this operation (did you mean type?)");
        assert_eq!(said("payload"), "is not a member of this operation; it accepts type, data");
        assert_eq!(not_known("member", "payload", &[]), "is not a member of this operation");
    }

    #[test]
    fn a_long_text_is_cut_and_gets_no_suggestions() {
        let long = "eventUrl".repeat(10_000);
        assert!(nearest(&long, MEMBERS).is_empty());
        let message = none_of("must be a member", &"é".repeat(10_000), MEMBERS, "there are four");
        assert_eq!(message, format!("must be a member, but `{}…` is unknown; there are four", "é".repeat(MAX_LENGTH)));
    }
}
