//! Comments, documents, strings and function names use none of the phrases that docs/style.md refuses.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

const STYLE: &str = "docs/style.md";
const HEADING: &str = "## Phrases that a test refuses";
const ENDINGS: [&str; 6] = ["rs", "md", "yaml", "js", "py", "toml"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

struct Phrase {
    /// The phrase's words, in lower case.
    words: Vec<String>,
    /// Whether the phrase is refused only at the beginning of a sentence: the table then capitalizes it.
    begins_sentence: bool,
    instead: String,
}

/// The phrases in docs/style.md's table: a cell may have several, separated by semicolons.
fn phrases() -> Vec<Phrase> {
    let style = fs::read_to_string(root().join(STYLE)).expect("the project has a style");
    let (_, section) = style.split_once(HEADING).expect("docs/style.md lists phrases");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_matches('|').split_once('|'));
    cells
        .flat_map(|(refused, instead)| {
            let phrase = |text: &str| Phrase {
                words: text.split_whitespace().map(str::to_lowercase).collect(),
                begins_sentence: text.trim().starts_with(char::is_uppercase),
                instead: instead.trim().to_owned(),
            };
            refused.split(';').map(phrase).collect::<Vec<_>>()
        })
        .collect()
}

/// A word, or a punctuation mark that ends a sentence, with its line number.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    text: String,
    line: usize,
}

/// A file's prose: each line of a document, or a program's comments, strings with spaces, and function names.
fn prose(path: &str, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut marker_before = "";
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        let (marker, rest) = without_marker(line.trim_start());
        if rest.trim().is_empty() || marker != marker_before {
            tokens.push(Token { text: ".".to_owned(), line: line_number });
        }
        marker_before = marker;
        let is_code = path.ends_with(".rs") && marker.is_empty();
        let parts = if is_code { parts_of_code(rest) } else { vec![rest.to_owned()] };
        for part in parts {
            tokens.extend(words(&part).into_iter().map(|text| Token { text, line: line_number }));
            if is_code {
                tokens.push(Token { text: ".".to_owned(), line: line_number });
            }
        }
    }
    tokens
}

/// The marker of a comment, list item or heading at the beginning of a line, and the text after it.
fn without_marker(line: &str) -> (&str, &str) {
    let markers = ["//! ", "/// ", "// ", "# ", "* ", "- ", "> "];
    markers.iter().find_map(|marker| Some((*marker, line.strip_prefix(marker)?))).unwrap_or(("", line))
}

/// The prose in a line of Rust: strings with spaces, the comment, and the name of a function declared there.
fn parts_of_code(line: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut code = String::new();
    for (index, part) in line.split('"').enumerate() {
        if index % 2 == 0 {
            code.push_str(part);
        } else if part.contains(' ') {
            parts.push(part.to_owned());
        }
    }
    if let Some((_, comment)) = code.split_once("// ") {
        parts.push(comment.to_owned());
    }
    if let Some((_, name)) = code.split_once("fn ") {
        let name = name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default();
        parts.push(name.replace('_', " "));
    }
    parts
}

/// The words of some text, and the marks that end its sentences. Code between backticks is one word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            words.push("`".to_owned());
            continue;
        }
        let mut word = String::new();
        for letter in part.chars().chain([' ']) {
            if letter.is_alphabetic() || (!word.is_empty() && ['-', '\''].contains(&letter)) {
                word.push(letter);
                continue;
            }
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if !letter.is_whitespace() && letter != '_' {
                words.push(letter.to_string());
            }
        }
    }
    words
}

/// The files with prose in a folder, except those that tools install or write.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    const NOT_OURS: [&str; 5] = ["target", "node_modules", "corpus", "artifacts", "generated"];
    for entry in fs::read_dir(folder).expect("the project's folders can be read").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !NOT_OURS.contains(&name.as_str()) && (!name.starts_with('.') || name == ".ci") {
                collect(&path, found);
            }
        } else if name == "Makefile"
            || folder.file_name().is_some_and(|folder| folder == ".ci")
            || ENDINGS.iter().any(|ending| name.ends_with(&format!(".{ending}")))
        {
            found.push(path);
        }
    }
}

/// The refused phrases in some text, by line.
fn faults(path: &str, text: &str, phrases: &[Phrase]) -> Vec<String> {
    let tokens = prose(path, text);
    let mut faults = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        for phrase in phrases {
            let following = tokens[index..].iter().map(|token| token.text.to_lowercase());
            if !phrase.words.iter().eq(following.take(phrase.words.len()).collect::<Vec<_>>().iter()) {
                continue;
            }
            let ends = |token: &Token| [".", ":", "?", "!", "|", ";"].contains(&token.text.as_str());
            let begins = index == 0 || ends(&tokens[index - 1]);
            let is_question = tokens[index..].iter().find(|token| ends(token)).is_some_and(|token| token.text == "?");
            if phrase.begins_sentence && !(begins && token.text.starts_with(char::is_uppercase))
                || is_question && phrase.words[0] == "what"
            {
                continue;
            }
            let mut fault = format!("{path}:{}: \"{}\"", token.line, phrase.words.join(" "));
            write!(fault, ", write: {}", phrase.instead).expect("a String takes all");
            faults.push(fault);
        }
    }
    faults
}

#[test]
fn no_text_has_a_phrase_that_the_style_refuses() {
    let phrases = phrases();
    assert!(phrases.len() > 30, "docs/style.md lists only {} phrases", phrases.len());
    let mut texts = Vec::new();
    collect(&root(), &mut texts);
    assert!(texts.len() > 500, "only {} files were found", texts.len());
    let mut found = Vec::new();
    for path in texts {
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let is_exempt = name == STYLE || name.ends_with("architecture/language.rs");
        if !is_exempt {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
            found.extend(faults(&name, &text, &phrases));
        }
    }
    assert!(found.is_empty(), "{} phrases that docs/style.md refuses:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_phrase_is_found_across_lines_and_in_names() {
    let phrases = phrases();
    let count = |path: &str, text: &str| faults(path, text, &phrases).len();
    assert_eq!(count("a.md", "The value stands\nin the table, and goes on.\n\nWhat is kept is small."), 3);
    assert_eq!(count("a.md", "## What is a scope?\n\nIt says what it allows; `goes on` is code."), 0);
    assert_eq!(count("a.rs", "/// The job goes\n/// on later.\nfn it_stands_in() {} // anew"), 3);
    assert_eq!(count("a.rs", "let text = \"it goes on\"; let code = goes.on();"), 1);
}
