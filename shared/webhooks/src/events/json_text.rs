//! Processes JSON text character by character, so that nothing but white space changes. The crate `event-catalogue`
//! includes this file, so it must not use other files.

/// The characters of JSON, each with a flag for whether it is within a string. The closing quote counts as within the
/// string, but the opening one does not.
pub(crate) fn letters(json: &str) -> impl Iterator<Item = (char, bool)> {
    let mut in_text = false;
    let mut escaped = false;
    json.chars().map(move |letter| {
        let was_in_text = in_text;
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = in_text,
            '"' => in_text = !in_text,
            _ => {}
        }
        (letter, was_in_text)
    })
}

/// JSON without the white space between its tokens. The order of members does not change.
pub(crate) fn without_space(json: &str) -> String {
    let stays = |(letter, in_text): &(char, bool)| *in_text || !letter.is_ascii_whitespace();
    letters(json).filter(stays).map(|(letter, _)| letter).collect()
}
