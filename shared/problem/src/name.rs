//! Names that people choose.

use std::ops::RangeInclusive;

use crate::unseen::is_unseen;

/// The flag of a region, such as Scotland's, is a black flag, the region's code in tags, and the last tag (UTS #51,
/// `emoji_tag_sequence`).
const BLACK_FLAG: char = '\u{1f3f4}';
/// The tags for the letters of a region's code.
const TAGS: RangeInclusive<char> = '\u{e0061}'..='\u{e007a}';
const LAST_TAG: char = '\u{e007f}';
/// The length of a region's code: two letters of the country, and up to four of its subdivision (UTS #35). Codes with
/// digits, which no flag in use has, are refused.
const REGION_CODE: RangeInclusive<usize> = 3..=6;

/// Checks a name of at most `longest` characters. Invisible characters, and characters that change the direction of the
/// text, are refused: they could make one name look like another. Joiners, selectors and tags that some languages and
/// emoji need are accepted in their usual positions.
///
/// # Errors
/// The fault, as the second half of a sentence that begins with the field's name.
pub fn checked(text: &str, longest: usize) -> Result<String, String> {
    let characters: Vec<_> = text.chars().collect();
    let is_good = characters.len() <= longest
        && characters.iter().any(|character| is_seen(*character))
        && (0..characters.len()).all(|index| {
            !is_unseen(characters[index]) || joins_or_selects(&characters, index) || is_in_flag(&characters, index)
        });
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

/// Whether an invisible character belongs to its neighbours: a joiner between Persian letters or between emoji, or the
/// variation selector of an emoji or of a Chinese character.
fn joins_or_selects(characters: &[char], index: usize) -> bool {
    const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];
    const SELECTORS: [char; 2] = ['\u{fe0e}', '\u{fe0f}'];
    const IDEOGRAPHIC_SELECTORS: RangeInclusive<char> = '\u{e0100}'..='\u{e01ef}';
    let previous = index.checked_sub(1).map(|previous| characters[previous]);
    let next = characters.get(index + 1).copied();
    let is_beyond_ascii = |character: char| is_seen(character) && !character.is_ascii();
    match characters[index] {
        joiner if JOINERS.contains(&joiner) => {
            let follows = previous.is_some_and(|previous| is_beyond_ascii(previous) || SELECTORS.contains(&previous));
            follows && next.is_some_and(is_beyond_ascii)
        }
        selector if SELECTORS.contains(&selector) => previous.is_some_and(is_seen),
        selector if IDEOGRAPHIC_SELECTORS.contains(&selector) => previous.is_some_and(is_ideograph),
        _ => false,
    }
}

/// Whether this is a Chinese character: a CJK unified or compatibility ideograph.
fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}'
    )
}

/// Whether the character is a tag of a region's flag.
fn is_in_flag(characters: &[char], index: usize) -> bool {
    let is_letter = |character: &char| TAGS.contains(character);
    let (before, rest) = characters.split_at(index);
    let first = before.iter().rposition(|character| !is_letter(character));
    let Some(first) = first.filter(|first| before[*first] == BLACK_FLAG) else { return false };
    let letters = before.len() - first - 1 + rest.iter().take_while(|character| is_letter(character)).count();
    REGION_CODE.contains(&letters) && characters.get(first + 1 + letters) == Some(&LAST_TAG)
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
            "Skye \u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            "\u{1f3f4}\u{e0075}\u{e0073}\u{e0074}\u{e0078}\u{e007f}\u{1f3f4}",
            "葛\u{e0100}飾区",
            "\u{20bb7}\u{e01ef}野家",
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
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e007f}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0061}\u{e0061}\u{e0061}\u{e0061}\u{e0061}\u{e007f}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e007f}\u{e007f}",
            "\u{1f3f4}\u{e007f}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0031}\u{e007f}",
            "\u{1f600}\u{e0067}\u{e0062}\u{e0073}\u{e007f}",
            "a\u{e0067}\u{e0062}\u{e0073}\u{e007f}",
            "a\u{e0100}",
            "ホ\u{e0100}",
            "葛\u{e0100}\u{e0100}",
            "\u{e0100}葛",
            &"é".repeat(21),
        ] {
            let message = checked(bad, 20).expect_err(bad);
            assert!(message.contains("1 to 20 characters"), "{bad:?}: {message}");
        }
    }
}
