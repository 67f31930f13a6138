//! Names that people choose.

use crate::unseen::is_unseen;

/// Checks a name of at most `longest` characters. Invisible characters, and characters that change the direction of the
/// text, are refused: they could make one name look like another. Joiners and selectors that some languages and emoji
/// need are accepted in their usual positions.
///
/// # Errors
/// The fault, as the second half of a sentence that begins with the field's name.
pub fn checked(text: &str, longest: usize) -> Result<String, String> {
    let characters: Vec<_> = text.chars().collect();
    let is_good = characters.len() <= longest
        && characters.iter().any(|character| is_seen(*character))
        && (0..characters.len()).all(|index| !is_unseen(characters[index]) || joins_or_selects(&characters, index));
    is_good.then(|| text.to_owned()).ok_or_else(|| {
        format!(
            "must have 1 to {longest} characters, at least one of them visible, and no invisible characters or \
             characters that change the direction of text"
        )
    })
}

fn is_seen(character: char) -> bool {
    !character.is_whitespace() && !is_unseen(character)
}

/// Whether an invisible character belongs to its neighbours: a joiner between Persian letters or between emoji, or an
/// emoji's variation selector.
fn joins_or_selects(characters: &[char], index: usize) -> bool {
    const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
    const SELECTORS: [char; 2] = ['\u{fe0e}', '\u{fe0f}'];
    let previous = index.checked_sub(1).map(|previous| characters[previous]);
    let next = characters.get(index + 1).copied();
    let is_beyond_ascii = |character: char| is_seen(character) && !character.is_ascii();
    match characters[index] {
        joiner if JOINERS.contains(&joiner) => {
            let follows = previous.is_some_and(|previous| is_beyond_ascii(previous) || SELECTORS.contains(&previous));
            follows && next.is_some_and(is_beyond_ascii)
        }
        selector if SELECTORS.contains(&selector) => previous.is_some_and(is_seen),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_something_and_has_no_control_characters() {
        for good in [
            "n",
            "Channel manager",
            "Zürich Süd",
            "ホテル",
            "\u{1f469}\u{200d}\u{1f4bb}",
            "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
            "1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "éééé",
        ] {
            assert_eq!(checked(good, 20).as_deref(), Ok(good));
        }
        for bad in [
            "",
            " ",
            "\u{200b}",
            "\u{a0}\u{200d}\u{3164}",
            "\u{2800}\u{feff}",
            "a\nb",
            "\u{7}a",
            "Pay\u{200b}ments",
            "Pay\u{200d}ments",
            "Pay\u{ad}ments",
            "\u{202e}stnemyaP",
            "a\u{2066}b\u{2069}",
            "é\u{200d}\u{200d}é",
            "é\u{200d}",
            &"é".repeat(21),
        ] {
            let message = checked(bad, 20).expect_err(bad);
            assert!(message.contains("1 to 20 characters"), "{bad:?}: {message}");
        }
    }
}
