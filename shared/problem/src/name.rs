//! Names that people give to what they make, and know it by.

use crate::unseen::is_unseen;

/// A text as a name of so many characters at most. A name without a visible character is refused: it looks like no name.
/// Invisible characters beside visible ones are accepted, since some languages and pictures are written with them.
///
/// # Errors
/// The fault, as the second half of a sentence that begins with the field's name.
pub fn checked(text: &str, longest: usize) -> Result<String, String> {
    let is_seen = |character: char| !character.is_whitespace() && !is_unseen(character);
    let is_good = text.chars().count() <= longest && text.chars().any(is_seen) && !text.chars().any(char::is_control);
    is_good.then(|| text.to_owned()).ok_or_else(|| {
        format!("must have 1 to {longest} characters, at least one of them visible, and no control characters")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_something_and_has_no_control_characters() {
        for good in
            ["n", "Channel manager", "Zürich Süd", "ホテル", "\u{1f469}\u{200d}\u{1f4bb}", "می\u{200c}خواهم", "éééé"]
        {
            assert_eq!(checked(good, 20).as_deref(), Ok(good));
        }
        for bad in
            ["", " ", "\u{200b}", "\u{a0}\u{200d}\u{3164}", "\u{2800}\u{feff}", "a\nb", "\u{7}a", &"é".repeat(21)]
        {
            let message = checked(bad, 20).expect_err(bad);
            assert!(message.contains("1 to 20 characters"), "{bad:?}: {message}");
        }
    }
}
