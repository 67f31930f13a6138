//! Log lines are for operators: no value is written in Rust's `Debug` format.

use std::{
    fs,
    path::{Path, PathBuf},
};

const MACROS: [&str; 6] = ["trace!(", "debug!(", "info!(", "warn!(", "error!(", "_span!("];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let found = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|kind| kind == "rs")).collect()
}

/// The arguments of each log macro in a source file.
fn lines_of(source: &str) -> Vec<&str> {
    let calls = source.match_indices("tracing::").filter_map(|(start, _)| {
        let call = &source[start..];
        let open = call.find('(')?;
        MACROS.iter().any(|name| call[..=open].ends_with(name)).then(|| arguments(&call[open..]))
    });
    calls.collect()
}

/// The text between this parenthesis and its match; strings in between may contain pairs of parentheses.
fn arguments(text: &str) -> &str {
    let mut depth = 0;
    for (place, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..=place];
        }
    }
    text
}

/// Whether a value is written in its `Debug` format: `?value`, or `{value:?}`.
fn has_debug_form(arguments: &str) -> bool {
    let by_mark = arguments.match_indices('?').any(|(place, _)| {
        let is_prefix = arguments[..place].ends_with(['(', ' ', '\n']);
        is_prefix && arguments[place + 1..].starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '*')
    });
    by_mark || arguments.contains("?}")
}

#[test]
fn no_line_of_the_log_has_a_debug_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    let mut faults = Vec::new();
    for path in ["shared", "functions", "operator", "local"].iter().flat_map(|folder| sources(&root.join(folder))) {
        let source = fs::read_to_string(&path).expect("a source is text");
        let lines = lines_of(&source);
        seen += lines.len();
        faults.extend(
            lines.into_iter().filter(|line| has_debug_form(line)).map(|line| format!("{}: {line}", path.display())),
        );
        // Its `Display` text ends with the error in `Debug` format and the whole response; `storage::aws::CallError`
        // has the code and the message.
        if source.contains("DisplayErrorContext") {
            faults.push(format!("{}: DisplayErrorContext", path.display()));
        }
    }
    assert!(seen > 50, "only {seen} lines are found");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_marks_of_a_debug_form_are_known() {
    let lines =
        lines_of("tracing::info!(a = ?b, \"x\"); tracing::warn!(error = %f(g()), \"why?\"); tracing::error!(?c);");
    assert_eq!(lines.iter().map(|line| has_debug_form(line)).collect::<Vec<_>>(), [true, false, true]);
    assert!(has_debug_form("(\"within {limit:?}\")") && !has_debug_form("(a()?, \"b\")"));
}
