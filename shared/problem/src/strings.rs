//! The strings in JSON, found in its text with their pointers: member names, and values.

use crate::Pointer;

/// The maximum number of found strings, the maximum length of a name in a pointer, in characters, and the maximum
/// number of steps in a pointer.
pub(crate) const MOST: usize = 100;
/// The length of a character's longest escape, a pair of surrogates, in bytes.
const LONGEST_ESCAPE: usize = 12;

/// An array or object around the string that is read.
enum Level<'a> {
    /// An object, with the current member's name, as written.
    Object(&'a str),
    /// An array, with the current element's position.
    Array(usize),
}

/// Pointers to the first wanted strings in well-formed JSON. `is_wanted` gets each string as written, without its
/// quotes, and whether it is a name. A name with an unpaired surrogate keeps its escapes in a pointer. Reads the JSON
/// once, regardless of its depth, up to `MOST` such strings.
pub(crate) fn find(json: &str, is_wanted: impl Fn(&str, bool) -> bool) -> Vec<Pointer> {
    let mut found: Vec<Pointer> = Vec::new();
    // Strings with the same pointer are counted as well, since a pointer costs more than its string.
    let mut texts = 0;
    let mut levels = Vec::new();
    let mut is_name = false;
    let mut rest = json;
    while let Some(start) = rest.find(['{', '[', '}', ']', ',', '"']).filter(|_| texts < MOST) {
        let (sign, after) = rest.split_at(start).1.split_at(1);
        rest = after;
        match sign {
            "{" => levels.push(Level::Object("")),
            "[" => levels.push(Level::Array(0)),
            "}" | "]" => drop(levels.pop()),
            "," => {
                if let Some(Level::Array(index)) = levels.last_mut() {
                    *index += 1;
                }
            }
            _ => {
                let (text, after) = rest.split_at(length_of_text(rest));
                rest = after.strip_prefix('"').unwrap_or(after);
                if let Some(Level::Object(name)) = levels.last_mut().filter(|_| is_name) {
                    *name = text;
                }
                if is_wanted(text, is_name) {
                    texts += 1;
                    let pointer = pointer(&levels);
                    // A name and its value have the same pointer.
                    if found.last() != Some(&pointer) {
                        found.push(pointer);
                    }
                }
            }
        }
        // A name follows the beginning of an object and each of the object's commas.
        is_name = matches!((sign, levels.last()), ("{" | ",", Some(Level::Object(_))));
    }
    found
}

/// The length of a string up to its closing quote, in bytes.
fn length_of_text(json: &str) -> usize {
    let mut escaped = false;
    let end = json.bytes().position(|byte| match byte {
        _ if escaped => {
            escaped = false;
            false
        }
        b'\\' => {
            escaped = true;
            false
        }
        byte => byte == b'"',
    });
    end.unwrap_or(json.len())
}

fn pointer(levels: &[Level<'_>]) -> Pointer {
    levels.iter().take(MOST).fold(Pointer::default(), |pointer, level| match level {
        Level::Object(name) => pointer.member(&beginning(name)),
        Level::Array(index) => pointer.at(*index),
    })
}

/// The beginning of a name, without its escapes. If the name has an unpaired surrogate, the escapes stay.
fn beginning(name: &str) -> String {
    let cut = &name[..name.floor_char_boundary(MOST * LONGEST_ESCAPE)];
    let is_cut = cut.len() < name.len();
    // The cut may have divided an escape.
    let shorter = (0..if is_cut { LONGEST_ESCAPE } else { 1 }).map(|less| cut.floor_char_boundary(cut.len() - less));
    let read =
        shorter.map(|length| format!("\"{}\"", &cut[..length])).find_map(|text| serde_json::from_str(&text).ok());
    read.unwrap_or_else(|| cut.to_owned()).chars().take(MOST).collect()
}
