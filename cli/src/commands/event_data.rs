//! An event's data, as `publish` and `trigger` accept it, and the service's warnings about it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::Input;
use crate::{failure::Failure, output::visible_line};

/// A value that does not conform to the schema of the event's type.
#[derive(Deserialize)]
pub struct Warning {
    pointer: String,
    detail: String,
}

/// The data from `--data`, unchanged: parsing could lose digits of numbers.
pub fn event_data(argument: &str) -> Result<Box<RawValue>, Failure> {
    let text = match Input::of_reference(argument) {
        Some(input) => input.text()?,
        None if argument == "-" => Input::Stdin.text()?,
        None => argument.to_owned(),
    };
    serde_json::from_str(text.trim()).map_err(|error| Failure::Usage(format!("--data is not JSON: {error}")))
}

/// One line per warning, each preceded by a line break.
pub fn warning_lines(warnings: &[Warning]) -> String {
    let line = |Warning { pointer, detail }: &Warning| {
        let name = if pointer.is_empty() { "data" } else { pointer };
        format!("\n  warning: `{}` {}", visible_line(name), visible_line(detail))
    };
    warnings.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn data_keep_their_digits_wherever_they_come_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.json");
        fs::write(&path, "{\"total\": 1.10}\n").expect("it can be written");
        for argument in [r#"{"total": 1.10}"#.to_owned(), format!("@{}", path.display())] {
            assert_eq!(event_data(&argument).expect("JSON").get(), r#"{"total": 1.10}"#);
        }
        for wrong in ["{", "@/nothing/there", ""] {
            assert!(event_data(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_warning_names_its_value_or_the_data_as_a_whole() {
        let warnings = r#"[{"in":"data","pointer":"/status","code":"required","detail":"is missing"},
            {"in":"data","pointer":"","code":"too-long","detail":"has too many values"}]"#;
        let warnings: Vec<Warning> = serde_json::from_str(warnings).expect("warnings");
        let lines = "\n  warning: `/status` is missing\n  warning: `data` has too many values";
        assert_eq!(warning_lines(&warnings), lines);
    }
}
