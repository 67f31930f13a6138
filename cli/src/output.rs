//! Standard output: text for people, coloured on a terminal, or JSON for programs.

use std::{
    fmt::Display,
    io::{self, Write},
};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use serde::Serialize;

/// The style for less important parts.
pub const DIM: Style = Style::new().dimmed();
/// The style of titles.
pub const BOLD: Style = Style::new().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default();

/// The output format of results.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub json: bool,
}

impl Output {
    /// Writes a result as JSON or as text.
    pub fn write(self, json: impl Serialize, text: impl Display) -> io::Result<()> {
        if self.json { self.raw(serde_json::to_string(&json)?) } else { self.text(text) }
    }

    /// Writes text, without its colours if standard output is not a terminal.
    pub fn text(self, text: impl Display) -> io::Result<()> {
        writeln!(anstream::stdout(), "{text}")
    }

    /// Writes text as it is.
    pub fn raw(self, text: impl Display) -> io::Result<()> {
        writeln!(io::stdout(), "{text}")
    }

    /// Writes a notice for the user to standard error.
    pub fn remark(self, text: impl Display) {
        remark(text);
    }
}

/// Writes a notice for the user to standard error.
pub fn remark(text: impl Display) {
    to_stderr(format_args!("{text}\n"));
}

/// Writes text to standard error, without a line break.
pub fn to_stderr(text: impl Display) {
    // A closed or full standard error must not end the program.
    drop(write!(anstream::stderr(), "{text}"));
}

/// Third-party text for a terminal, without control characters, which could move the cursor or change the text's
/// direction. Line breaks are kept.
pub fn visible(text: &str) -> String {
    let hidden = |letter: char| {
        let directs =
            matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        directs || letter.is_control() && !['\n', '\t'].contains(&letter)
    };
    text.chars().map(|letter| if hidden(letter) { '\u{fffd}' } else { letter }).collect()
}

/// Third-party text in one line.
pub fn visible_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// Third-party text as one word of a command to paste.
pub fn shell_word(text: &str) -> String {
    let text = visible_line(text);
    let is_plain = |letter: char| letter.is_alphanumeric() || ['-', '_', '.', ':', '/', '@'].contains(&letter);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The colour of an HTTP status; `None` if a request did not complete.
pub fn colour_of_answer(status: Option<u64>) -> Style {
    match status {
        Some(200..=299) => GREEN,
        _ => RED,
    }
}

/// The colour of a delivery's status or of a webhook's state.
pub fn colour_of(status: &str) -> Style {
    match status {
        "delivered" | "active" => GREEN,
        "failed" | "failing" => RED,
        "retrying" | "pending" | "paused" => YELLOW,
        _ => DIM,
    }
}

/// One of the service's times in the form `2026-11-20 09:45:00Z`.
pub fn short_time(time: &str) -> String {
    match (time.get(..10), time.get(11..19), time.ends_with('Z')) {
        (Some(date), Some(clock), true) => format!("{date} {clock}Z"),
        _ => time.to_owned(),
    }
}

/// One of the service's sentences, with its times in the form of [`short_time`].
pub fn with_short_times(sentence: &str) -> String {
    let word = |word: &str| {
        let time = word.trim_end_matches(['.', ',', ';', ':']);
        let is_time = time.parse::<Timestamp>().is_ok();
        if is_time { format!("{}{}", short_time(time), &word[time.len()..]) } else { word.to_owned() }
    };
    sentence.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// JSON with line breaks and indentation, and otherwise unchanged: parsing could change the digits of numbers.
pub fn pretty_json(json: &str) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut last = ' ';
    for letter in json.chars() {
        if in_string {
            in_string = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
            text.push(letter);
            last = letter;
            continue;
        }
        match letter {
            ' ' | '\n' | '\t' | '\r' => continue,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Break lines before the first member, after each comma, and before the end. Empty objects stay on one line.
        let closes = matches!(letter, '}' | ']');
        let opened = matches!(last, '{' | '[');
        if last == ',' || opened != closes && (opened || closes) {
            text.push('\n');
            text.push_str(&"  ".repeat(depth));
        }
        text.push(letter);
        match letter {
            '{' | '[' => depth += 1,
            ':' => text.push(' '),
            '"' => in_string = true,
            _ => {}
        }
        last = letter;
    }
    text
}

/// JSON without white space between its tokens, and otherwise unchanged.
pub fn compact_json(json: &str) -> String {
    let mut in_string = false;
    let mut escaped = false;
    let is_kept = |letter: &char| {
        if in_string {
            in_string = escaped || *letter != '"';
            escaped = !escaped && *letter == '\\';
            return true;
        }
        in_string = *letter == '"';
        ![' ', '\n', '\t', '\r'].contains(letter)
    };
    json.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_third_parties_cannot_control_the_terminal() {
        assert_eq!(visible("a\u{1b}[2Jb\u{9b}c\u{202e}d\ne"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\ne");
        assert_eq!(visible_line("a\nb\tc"), "a b c");
    }

    #[test]
    fn a_word_of_a_command_is_quoted_if_a_shell_would_change_it() {
        for (text, word) in [
            ("B-1017", "B-1017"),
            ("#1017", "'#1017'"),
            ("B 1017", "'B 1017'"),
            ("O'Hara", r"'O'\''Hara'"),
            ("$(id)\u{1b}", "'$(id)\u{fffd}'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }

    #[test]
    fn only_white_space_of_json_changes() {
        let json = r#"{"a": {}, "b":[1.10,"x, {\"y\" \\"],"c":[ ],"d":{"e":null}}"#;
        let pretty = "{\n  \"a\": {},\n  \"b\": [\n    1.10,\n    \"x, {\\\"y\\\" \\\\\"\n  ],\n  \"c\": [],\n  \"d\": {\n    \"e\": null\n  }\n}";
        assert_eq!(pretty_json(json), pretty);
        let compact = r#"{"a":{},"b":[1.10,"x, {\"y\" \\"],"c":[],"d":{"e":null}}"#;
        assert_eq!((compact_json(json).as_str(), compact_json(pretty).as_str()), (compact, compact));
    }

    #[test]
    fn a_time_is_shown_without_its_milliseconds() {
        assert_eq!(short_time("2026-11-20T09:45:00.123Z"), "2026-11-20 09:45:00Z");
        assert_eq!(short_time("soon"), "soon");
        let sentence = "Every attempt has failed since 2026-11-20T09:45:00.123Z.";
        assert_eq!(with_short_times(sentence), "Every attempt has failed since 2026-11-20 09:45:00Z.");
        assert_eq!(with_short_times("The endpoint answered 410 Gone."), "The endpoint answered 410 Gone.");
    }
}
