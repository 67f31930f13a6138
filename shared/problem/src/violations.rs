//! Violations, collected so that a response lists all of them.

use std::fmt;

use crate::{InputPart, Pointer, Problem, Rule, Violation, duplicates, surrogates};

/// The maximum number of violations in a response.
pub(crate) const MAX_VIOLATIONS: usize = 100;

/// The violations found so far in a part of the input.
#[derive(Debug, Default)]
pub struct Violations {
    part: InputPart,
    list: Vec<Violation>,
}

impl Violations {
    /// No violations yet in this part of the input.
    pub fn of(part: InputPart) -> Self {
        Self { part, list: Vec::new() }
    }

    /// Adds a violation by the value at the pointer.
    pub fn add(&mut self, pointer: impl Into<Pointer>, rule: Rule, detail: impl Into<String>) {
        self.push(Violation::new(self.part, pointer, rule, detail));
    }

    /// Adds a violation, which may be in another part of the input.
    pub fn push(&mut self, violation: Violation) {
        if self.list.len() < MAX_VIOLATIONS {
            self.list.push(violation);
        }
    }

    /// Returns a checked value, or adds its error as a violation.
    pub fn note<T, E: fmt::Display>(
        &mut self,
        pointer: impl Into<Pointer>,
        rule: Rule,
        checked: Result<T, E>,
    ) -> Option<T> {
        checked.map_err(|error| self.add(pointer, rule, error.to_string())).ok()
    }

    /// Adds a violation for each string in a member's JSON that has an unpaired surrogate, and returns whether there
    /// are any.
    pub fn note_surrogates(&mut self, name: &str, json: &str) -> bool {
        let unpaired = surrogates::unpaired(json);
        for pointer in &unpaired {
            self.add(Pointer::from(name).within(pointer), Rule::InvalidFormat, surrogates::MESSAGE);
        }
        !unpaired.is_empty()
    }

    /// Adds a violation for each duplicate member within a member's JSON, and returns whether there are any.
    pub(crate) fn note_duplicates(&mut self, name: &str, json: &str) -> bool {
        let duplicates = duplicates::find(json, MAX_VIOLATIONS);
        for pointer in &duplicates {
            self.add(Pointer::from(name).within(pointer), Rule::Duplicate, "must be given only once");
        }
        !duplicates.is_empty()
    }

    /// All violations.
    pub fn into_list(self) -> Vec<Violation> {
        self.list
    }

    /// Fails with all violations, if there are any.
    pub fn check(self) -> Result<(), Problem> {
        if self.list.is_empty() { Ok(()) } else { Err(Problem::invalid(self.list)) }
    }
}
