//! Tables and lists of members, cut to the terminal's width.

use std::fmt;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::output::{BOLD, DIM, visible_line};

/// The minimum width to which a column is cut. A column that can be cut has a title no longer than this. Widths are as a
/// terminal shows them: a Chinese or Japanese character takes two places.
const LEAST: usize = 7;
const SEPARATOR: &str = "  ";

/// How a column adapts to a narrow terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Always complete, such as an identifier, which people copy.
    Whole,
    /// Cut, with an ellipsis at its end.
    Cut,
    /// Left out.
    Optional,
}

/// A column's title, and how it behaves on a narrow terminal.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub title: &'static str,
    pub fit: Fit,
}

/// Styled text, in one line and without control characters.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub fn new(text: &str, style: Style) -> Self {
        Self { text: visible_line(text), style }
    }

    pub fn plain(text: &str) -> Self {
        Self::new(text, Style::new())
    }

    pub fn dim(text: &str) -> Self {
        Self::new(text, DIM)
    }

    fn width(&self) -> usize {
        self.text.width()
    }

    fn cut(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        // The whole beginning is measured, since some characters join the one before them.
        let mut beginning = String::new();
        for character in self.text.chars() {
            beginning.push(character);
            if beginning.width() >= width {
                beginning.pop();
                break;
            }
        }
        Self { text: format!("{beginning}…"), style: self.style }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, style } = self;
        write!(f, "{style}{text}{style:#}")
    }
}

/// Rows without titles, cut as in [`table`].
pub fn rows<const N: usize>(columns: [Column; N], rows: &[[Cell; N]], width: Option<usize>) -> String {
    lines(columns, &rows.iter().collect::<Vec<_>>(), width)
}

/// Rows below their titles. At a given width, optional columns are left out if the others do not fit, and the widest
/// ones are cut.
pub fn table<const N: usize>(columns: [Column; N], rows: &[[Cell; N]], width: Option<usize>) -> String {
    let titles = columns.map(|column| Cell::new(column.title, BOLD));
    lines(columns, &[&titles].into_iter().chain(rows).collect::<Vec<_>>(), width)
}

fn lines<const N: usize>(columns: [Column; N], lines: &[&[Cell; N]], width: Option<usize>) -> String {
    let widest = |column: usize| lines.iter().map(|line| line[column].width()).max().unwrap_or_default();
    let mut widths: [usize; N] = std::array::from_fn(widest);
    let shown = fitted(&columns, &mut widths, width.unwrap_or(usize::MAX));
    let shown_line = |line: &&[Cell; N]| {
        let last = shown.last().copied();
        let cells = shown.iter().map(|&column| {
            let cell = line[column].cut(widths[column]);
            let padding = if Some(column) == last { 0 } else { widths[column].saturating_sub(cell.width()) };
            format!("{cell}{}", " ".repeat(padding))
        });
        cells.collect::<Vec<_>>().join(SEPARATOR)
    };
    lines.iter().map(shown_line).collect::<Vec<_>>().join("\n")
}

/// The columns that are shown, with narrower widths where necessary.
fn fitted(columns: &[Column], widths: &mut [usize], width: usize) -> Vec<usize> {
    let mut shown: Vec<_> = (0..columns.len()).collect();
    let least = |column: usize| match columns[column].fit {
        Fit::Cut => widths[column].min(LEAST),
        Fit::Whole | Fit::Optional => widths[column],
    };
    while total(&shown, least) > width
        && let Some(position) = shown.iter().rposition(|&column| columns[column].fit == Fit::Optional)
    {
        shown.remove(position);
    }
    while total(&shown, |column| widths[column]) > width {
        let can_be_cut = |column: &usize| columns[*column].fit == Fit::Cut && widths[*column] > LEAST;
        let Some(widest) = shown.iter().copied().filter(can_be_cut).max_by_key(|&column| widths[column]) else {
            break;
        };
        widths[widest] -= 1;
    }
    shown
}

/// The width of these columns and the separators between them.
fn total(columns: &[usize], width: impl Fn(usize) -> usize) -> usize {
    let separators = columns.len().saturating_sub(1) * SEPARATOR.len();
    columns.iter().map(|&column| width(column)).sum::<usize>() + separators
}

/// Names and values, one pair on each line, without absent values.
pub fn members<const N: usize>(members: [(&str, Option<Cell>); N]) -> String {
    let present: Vec<_> = members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let width = present.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |(name, value): &(&str, Cell)| format!("{DIM}{name:<width$}{DIM:#}{SEPARATOR}{value}");
    present.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    const COLUMNS: [Column; 4] = [
        Column { title: "TIME", fit: Fit::Optional },
        Column { title: "NAME", fit: Fit::Cut },
        Column { title: "ADDRESS", fit: Fit::Cut },
        Column { title: "ID", fit: Fit::Whole },
    ];

    fn shown(width: Option<usize>) -> Vec<String> {
        let row = ["09:45:00", "Zürich sync", "https://hooks.example.com", "whk_1"].map(Cell::plain);
        let table = table(COLUMNS, &[row], width);
        strip_str(&table).to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_are_aligned() {
        let titles = "TIME      NAME         ADDRESS                    ID";
        let lines = [titles, "09:45:00  Zürich sync  https://hooks.example.com  whk_1"];
        assert_eq!(shown(None), lines);
        assert_eq!(shown(Some(55)), lines);
    }

    #[test]
    fn wide_and_joined_characters_are_aligned_as_a_terminal_shows_them() {
        let row = |name| ["09:45:00", name, "https://a.example", "whk_1"].map(Cell::plain);
        let shown =
            |width| strip_str(&table(COLUMNS, &[row("旅館の予約"), row("e\u{301}te\u{301}")], width)).to_string();
        assert_eq!(
            shown(None).lines().collect::<Vec<_>>(),
            [
                "TIME      NAME        ADDRESS            ID",
                "09:45:00  旅館の予約  https://a.example  whk_1",
                "09:45:00  e\u{301}te\u{301}         https://a.example  whk_1",
            ]
        );
        // Half of a wide character has no room.
        assert!(shown(Some(24)).contains("\n旅館の…   https:…  whk_1"), "{}", shown(Some(24)));
    }

    #[test]
    fn the_widest_column_is_cut_first() {
        assert_eq!(shown(Some(45))[1], "09:45:00  Zürich sync  https://hooks.…  whk_1");
        assert_eq!(shown(Some(36))[1], "09:45:00  Zürich s…  https:/…  whk_1");
    }

    #[test]
    fn an_optional_column_is_left_out_before_an_identifier_is_cut() {
        assert_eq!(shown(Some(23)), ["NAME     ADDRESS  ID", "Zürich…  https:…  whk_1"]);
        assert_eq!(shown(Some(1)), shown(Some(23)));
    }

    #[test]
    fn a_text_of_a_third_party_stays_in_its_line() {
        assert_eq!(Cell::plain("a\nb\u{1b}[2J").to_string(), "a b\u{fffd}[2J");
    }

    #[test]
    fn members_are_aligned_and_absent_ones_left_out() {
        let text =
            members([("id", Some(Cell::plain("whk_1"))), ("filter", None), ("state", Some(Cell::dim("active")))]);
        assert_eq!(strip_str(&text).to_string(), "id     whk_1\nstate  active");
    }
}
