//! Invisible characters, which can carry a message to a program or a model without people seeing it.

use std::ops::RangeInclusive;

/// Invisible characters, in ascending order (Unicode 16). Programs do not display unassigned code points in these
/// ranges either (`Default_Ignorable_Code_Point`).
const UNSEEN: [RangeInclusive<char>; 19] = [
    // The soft hyphen is visible only at the end of a line.
    '\u{ad}'..='\u{ad}',
    // The grapheme joiner has no glyph.
    '\u{34f}'..='\u{34f}',
    // The Arabic letter mark sets a direction.
    '\u{61c}'..='\u{61c}',
    // Hangul fillers replace a letter.
    '\u{115f}'..='\u{1160}',
    // Inherent Khmer vowels are not written.
    '\u{17b4}'..='\u{17b5}',
    // Mongolian selectors choose a form of the previous letter.
    '\u{180b}'..='\u{180f}',
    // Zero-width characters, and directions.
    '\u{200b}'..='\u{200f}',
    // Ends of lines and paragraphs, and directions.
    '\u{2028}'..='\u{202e}',
    // Invisible operators, directions, and shapes.
    '\u{2060}'..='\u{206f}',
    // The Braille pattern without dots looks like a space.
    '\u{2800}'..='\u{2800}',
    // The Hangul filler for other encodings.
    '\u{3164}'..='\u{3164}',
    // Variation selectors choose a form of the previous character, and can encode bytes.
    '\u{fe00}'..='\u{fe0f}',
    // The byte order mark.
    '\u{feff}'..='\u{feff}',
    // The half-width Hangul filler.
    '\u{ffa0}'..='\u{ffa0}',
    // Reserved code points that are ignored, and interlinear annotation marks.
    '\u{fff0}'..='\u{fffb}',
    // Egyptian controls position their neighbours.
    '\u{13430}'..='\u{1343f}',
    // Shorthand controls join and move their neighbours.
    '\u{1bca0}'..='\u{1bca3}',
    // Musical controls begin and end beams and slurs.
    '\u{1d173}'..='\u{1d17a}',
    // Tags encode ASCII; further variation selectors encode bytes.
    '\u{e0000}'..='\u{e0fff}',
];

/// Whether a character is invisible: a control character (line ends included), or a character without glyph or width.
pub fn is_unseen(character: char) -> bool {
    character.is_control() || UNSEEN.iter().any(|range| range.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_invisible_characters_is_known() {
        let unseen = [
            "\n\t\u{0}\u{7f}\u{85}\u{ad}\u{34f}\u{61c}\u{1160}\u{17b5}\u{180e}\u{200b}\u{2028}\u{202e}\u{2060}",
            "\u{2066}\u{2800}\u{3164}\u{fe0f}\u{feff}\u{ffa0}\u{fff0}\u{fff8}\u{fff9}\u{fffb}\u{13430}",
            "\u{1343f}\u{1bca0}\u{1bca3}\u{1d173}\u{e0001}\u{e0041}\u{e01ef}",
        ];
        for unseen in unseen.iter().flat_map(|text| text.chars()) {
            assert!(is_unseen(unseen), "{unseen:?}");
        }
        for seen in " aé\u{27ff}\u{2801}\u{28ff}\u{ffef}\u{fffc}\u{1342f}\u{13440}\u{1bc9f}\u{1bca4}😀".chars() {
            assert!(!is_unseen(seen), "{seen:?}");
        }
    }

    #[test]
    fn the_ranges_of_unseen_characters_are_sorted() {
        assert!(UNSEEN.iter().all(|range| !range.is_empty()));
        assert!(UNSEEN.windows(2).all(|pair| pair[0].end() < pair[1].start()));
    }
}
