//! The result of a command on standard output: words for people, or one JSON value for programs.

use std::{
    fmt::Display,
    io::{Write, stdout},
};

use serde::Serialize;

use crate::failure::Failure;

/// The form in which a result is written.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Whether it is JSON.
    pub json: bool,
}

impl Output {
    /// Writes the result of a command, in one of its two forms.
    pub fn write(self, json: impl Serialize, text: impl Display) -> Result<(), Failure> {
        let text = if self.json { serde_json::to_string(&json)? } else { text.to_string() };
        writeln!(stdout().lock(), "{text}").map_err(Failure::Output)
    }
}
