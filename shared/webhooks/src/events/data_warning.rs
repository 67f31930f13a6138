//! Warnings about an event's data, such as violations of its type's schema.

use problem::{InputPart, Pointer, Rule, Violation, cut};

/// The maximum number of warnings about one event in a response.
pub(super) const MAX_WARNINGS: usize = 10;
/// The maximum number of warnings that are stored with an event: every KiB of an event costs a write unit.
const MAX_STORED: usize = 5;
/// The maximum length of a stored warning, in bytes.
const MAX_STORED_DETAIL: usize = 80;
/// The maximum length of a warning in a response, in bytes.
const MAX_DETAIL: usize = 250;

/// A warning about a value in the data.
pub(super) fn warning(pointer: Pointer, rule: Rule, detail: &str) -> Violation {
    Violation::new(InputPart::Data, pointer, rule, cut(detail, MAX_DETAIL))
}

/// The warnings as they are stored with their event: few and short.
pub(super) fn stored(warnings: &[Violation]) -> Vec<Violation> {
    let short = |warning: &Violation| Violation { detail: cut(&warning.detail, MAX_STORED_DETAIL), ..warning.clone() };
    warnings.iter().take(MAX_STORED).map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_warnings_are_few_and_short() {
        let warnings: Vec<_> =
            (0..20).map(|at| warning(Pointer::from("a").at(at), Rule::Invalid, &"ü".repeat(300))).collect();
        assert!(warnings.iter().all(|warning| warning.detail.len() <= MAX_DETAIL && warning.detail.ends_with('…')));
        let stored = stored(&warnings);
        assert_eq!(stored.len(), MAX_STORED);
        assert!(stored.iter().all(|warning| warning.detail.len() <= MAX_STORED_DETAIL), "{stored:?}");
        let short = [warning(Pointer::default(), Rule::Required, "is missing")];
        assert_eq!(super::stored(&short), short);
    }
}
