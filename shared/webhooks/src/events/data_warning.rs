//! Warnings about the data of an event that do not conform to the schema of its type.

use serde::{Deserialize, Serialize};

/// The most warnings about one event, in an answer.
pub(super) const MAX_WARNINGS: usize = 10;
/// The most warnings that are stored with an event: each 1 KiB of an event costs a write unit.
const MAX_STORED: usize = 5;
/// The longest stored warning, in bytes.
const MAX_STORED_LENGTH: usize = 120;
/// The longest part of a warning in an answer, in bytes: a publisher chooses the names in its data.
const MAX_LENGTH: usize = 250;

/// A value of an event's data that does not conform, without the value itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataWarning {
    /// The JSON Pointer of the value in the data; empty for the data as a whole.
    pub pointer: String,
    /// The rule that the value breaks.
    pub detail: String,
}

impl DataWarning {
    pub(super) fn new(pointer: &str, detail: &str) -> Self {
        Self { pointer: cut(pointer, MAX_LENGTH), detail: cut(detail, MAX_LENGTH) }
    }
}

/// The warnings as they are stored with their event: few and short.
pub(super) fn stored(warnings: &[DataWarning]) -> Vec<String> {
    let text = |warning: &DataWarning| match warning.pointer.as_str() {
        "" => warning.detail.clone(),
        pointer => format!("{pointer}: {}", warning.detail),
    };
    warnings.iter().take(MAX_STORED).map(|warning| cut(&text(warning), MAX_STORED_LENGTH)).collect()
}

/// A text of at most `longest` bytes: the beginning of a longer one, with a mark.
pub(super) fn cut(text: &str, longest: usize) -> String {
    const MARK: &str = "…";
    match text.len() {
        length if length <= longest => text.to_owned(),
        _ => format!("{}{MARK}", &text[..text.floor_char_boundary(longest - MARK.len())]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_warnings_are_few_and_short() {
        let warnings: Vec<_> =
            (0..20).map(|at| DataWarning::new(&format!("/{}{at}", "ü".repeat(300)), "is odd")).collect();
        assert!(warnings.iter().all(|warning| warning.pointer.len() <= MAX_LENGTH && warning.pointer.ends_with('…')));
        let stored = stored(&warnings);
        assert_eq!(stored.len(), MAX_STORED);
        assert!(stored.iter().all(|text| text.len() <= MAX_STORED_LENGTH && text.ends_with('…')), "{stored:?}");
        let short = [DataWarning::new("", "lacks `a`"), DataWarning::new("/a", "is no text")];
        assert_eq!(super::stored(&short), ["lacks `a`", "/a: is no text"]);
    }
}
