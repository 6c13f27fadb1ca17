//! Tables on a terminal: columns that align, lines of at most 100 characters.
//!
//! Text of a column that may be cut ends with `…` where it is too long. A cell of any other column is always whole: a
//! prefix with a digit missing would be another prefix. Where one is wider than its column, the rest of its row goes on
//! the next line, under its own headings.

use std::fmt::Write as _;

/// The widest line.
pub(crate) const WIDTH: usize = 100;
const GAP: usize = 2;
/// A column is never cut below this.
const LEAST: usize = 10;

/// A column.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Column {
    title: &'static str,
    right: bool,
    cut: bool,
    limit: usize,
    least: usize,
}

impl Column {
    /// Text that is always whole.
    pub(crate) const fn text(title: &'static str) -> Self {
        Self { title, right: false, cut: false, limit: WIDTH, least: 0 }
    }

    /// Text that is always whole, in a column that is never wider than `limit`.
    pub(crate) const fn narrow(title: &'static str, limit: usize) -> Self {
        Self { title, right: false, cut: false, limit, least: 0 }
    }

    /// Text that may be cut.
    pub(crate) const fn cut(title: &'static str) -> Self {
        Self { title, right: false, cut: true, limit: WIDTH, least: 0 }
    }

    /// Numbers.
    pub(crate) const fn number(title: &'static str) -> Self {
        Self { title, right: true, cut: false, limit: WIDTH, least: 0 }
    }

    /// Never narrower than this, for rows that come later than those the widths are made for.
    pub(crate) const fn at_least(mut self, least: usize) -> Self {
        self.least = least;
        self
    }
}

/// How a cell looks on a terminal that has colours.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As any other text.
    #[default]
    Plain,
    /// Something is as it should be.
    Good,
    /// Something is not.
    Bad,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// Text with a tone.
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), tone: Tone::Plain }
    }
}

/// Columns with widths. Rows that come later than those it was made for get along with them.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    columns: Vec<Column>,
    widths: Vec<usize>,
    colours: bool,
}

impl Layout {
    /// The widths that suit these rows.
    pub(crate) fn for_rows(columns: &[Column], rows: &[Vec<Cell>], colours: bool) -> Self {
        let widest = |(index, column): (usize, &Column)| {
            let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| width(&cell.text));
            cells
                .chain([width(column.title), column.least])
                .max()
                .unwrap_or(0)
                .min(column.limit.max(width(column.title)))
        };
        let mut widths: Vec<usize> = columns.iter().enumerate().map(widest).collect();
        // What is too much is taken from the columns that can be cut, from the widest first; then from other text,
        // whose rows then take two lines.
        let room = WIDTH.saturating_sub(GAP * columns.len().saturating_sub(1));
        for cut in [true, false] {
            while widths.iter().sum::<usize>() > room {
                let shrinks =
                    |column: &Column, width: usize| column.cut == cut && !column.right && width > LEAST;
                let candidates =
                    columns.iter().zip(&mut widths).filter(|(column, width)| shrinks(column, **width));
                match candidates.map(|(_, width)| width).max() {
                    Some(width) => *width -= 1,
                    None => break,
                }
            }
        }
        Self { columns: columns.to_vec(), widths, colours }
    }

    /// The headings.
    pub(crate) fn head(&self) -> String {
        let titles: Vec<Cell> = self.columns.iter().map(|column| Cell::from(column.title)).collect();
        self.row(&titles)
    }

    /// One row: mostly one line, with its line break.
    pub(crate) fn row(&self, cells: &[Cell]) -> String {
        let mut out = String::new();
        let mut used = 0;
        let mut start = 0;
        for ((column, &column_width), cell) in self.columns.iter().zip(&self.widths).zip(cells) {
            let text = if column.cut {
                cut(&cell.text, column_width.min(WIDTH - start.min(WIDTH)))
            } else {
                cell.text.clone()
            };
            if !text.is_empty() {
                if used > start {
                    // An earlier cell reaches into this column.
                    out.push('\n');
                    used = 0;
                }
                let pad = if column.right { column_width.saturating_sub(width(&text)) } else { 0 };
                let _ = write!(out, "{:1$}", "", start - used + pad);
                self.paint(&mut out, &text, cell.tone);
                used = start + pad + width(&text);
                if used > start + column_width {
                    used += GAP;
                }
            }
            start += column_width + GAP;
        }
        out.push('\n');
        out
    }

    fn paint(&self, out: &mut String, text: &str, tone: Tone) {
        let code = match tone {
            Tone::Plain => None,
            Tone::Good => Some("32"),
            Tone::Bad => Some("31"),
        };
        match code.filter(|_| self.colours) {
            Some(code) => {
                let _ = write!(out, "\x1b[{code}m{text}\x1b[0m");
            }
            None => out.push_str(text),
        }
    }
}

/// A whole table.
pub(crate) fn table(columns: &[Column], rows: &[Vec<Cell>], colours: bool) -> String {
    let layout = Layout::for_rows(columns, rows, colours);
    let mut out = layout.head();
    for row in rows {
        out += &layout.row(row);
    }
    out
}

/// A paragraph under a table, broken between words.
pub(crate) fn paragraph(indent: usize, text: &str) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        if used > 0 && used + 1 + width(word) > WIDTH {
            out.push('\n');
            used = 0;
        }
        if used == 0 {
            let _ = write!(out, "{:indent$}{word}", "");
            used = indent + width(word);
        } else {
            let _ = write!(out, " {word}");
            used += 1 + width(word);
        }
    }
    out.push('\n');
    out
}

fn width(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(limit.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[Column::narrow("PREFIX", 20), Column::number("MED"), Column::cut("AS PATH")];

    fn rows(rows: &[[&str; 3]]) -> Vec<Vec<Cell>> {
        rows.iter().map(|row| row.iter().map(|cell| Cell::from(*cell)).collect()).collect()
    }

    #[test]
    fn columns_align_and_lines_end_with_their_text() {
        let text =
            table(COLUMNS, &rows(&[["10.0.0.0/8", "5", "65000 65001"], ["10.1.0.0/16", "1000", ""]]), false);
        assert_eq!(
            text,
            "PREFIX        MED  AS PATH\n\
             10.0.0.0/8      5  65000 65001\n\
             10.1.0.0/16  1000\n"
        );
    }

    #[test]
    fn long_text_is_cut_and_long_keys_are_not() {
        let path = "65000 ".repeat(40);
        let key = "2001:db8:1111:2222:3333:4444:5555:6666/128";
        let text = table(COLUMNS, &rows(&[[key, "7", &path], ["::/0", "8", "65000"]]), false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| width(line) <= WIDTH), "{text}");
        assert_eq!(lines[1], key);
        assert_eq!(&lines[2][..25], "                        7", "{text}");
        assert!(lines[2].ends_with('…'));
        assert!(lines[3].starts_with("::/0                    8  65000"), "{text}");
    }

    #[test]
    fn a_layout_serves_later_rows() {
        let layout = Layout::for_rows(COLUMNS, &rows(&[["10.0.0.0/8", "5", "65000"]]), false);
        assert_eq!(layout.row(&rows(&[["192.0.2.0/24", "5", "1"]])[0]), "192.0.2.0/24\n              5  1\n");
    }

    #[test]
    fn colours_do_not_move_columns() {
        let columns = [Column::text("STATE"), Column::text("FAMILY")];
        let row = vec![Cell::toned("up", Tone::Good), Cell::from("ipv4")];
        let text = table(&columns, &[row], true);
        assert_eq!(text, "STATE  FAMILY\n\x1b[32mup\x1b[0m     ipv4\n");
    }

    #[test]
    fn paragraphs_stay_within_the_width() {
        let text = paragraph(4, &"word ".repeat(60));
        assert!(text.lines().all(|line| line.starts_with("    word") && width(line) <= WIDTH), "{text}");
        assert!(text.lines().count() > 2);
    }
}
