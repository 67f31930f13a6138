//! A command's result on standard output: text for people, or one JSON value for programs.

use std::{
    fmt::Display,
    io::{Write, stdout},
};

use serde::Serialize;

use crate::failure::Failure;

/// The output format of results.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub json: bool,
}

impl Output {
    /// Writes a command's result as JSON or as text.
    pub fn write(self, json: impl Serialize, text: impl Display) -> Result<(), Failure> {
        let text = if self.json { serde_json::to_string(&json)? } else { text.to_string() };
        writeln!(stdout().lock(), "{text}").map_err(Failure::Output)
    }
}
