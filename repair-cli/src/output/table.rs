//! Columns of text.

use super::text::{Emphasis, plain};

/// What stands between two columns, as kubectl has it.
const GAP: usize = 3;

/// A table. Its head may be empty.
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    indent: usize,
    headless: bool,
    /// How wide each column is at least.
    least: &'static [usize],
}

/// One cell.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    emphasis: Emphasis,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self { text: plain(text.as_ref()), emphasis: Emphasis::None }
    }

    pub(crate) fn with(text: impl AsRef<str>, emphasis: Emphasis) -> Self {
        Self { emphasis, ..Self::new(text) }
    }

    /// `-` where there is nothing.
    pub(crate) fn maybe(text: Option<impl ToString>) -> Self {
        Self::new(text.map_or_else(|| "-".into(), |text| text.to_string()))
    }

    /// The word of a status or state, in the colour that fits it.
    pub(crate) fn status(word: &str) -> Self {
        Self::with(word, Emphasis::of_status(word))
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text.to_string())
    }
}

impl Table {
    pub(crate) fn new(head: impl IntoIterator<Item = &'static str>) -> Self {
        Self { head: head.into_iter().collect(), rows: Vec::new(), indent: 0, headless: false, least: &[] }
    }

    /// Moves every line to the right.
    pub(crate) fn indent(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Hides the head; its columns stay as wide as it makes them.
    pub(crate) fn without_head(self) -> Self {
        Self { headless: true, ..self }
    }

    /// Makes columns at least so wide, so that lines line up that are printed one by one.
    pub(crate) fn at_least(self, least: &'static [usize]) -> Self {
        Self { least, ..self }
    }

    /// The lines; the last column is not padded.
    pub(crate) fn text(&self) -> String {
        let head: Vec<Cell> = self.head.iter().map(|word| Cell::with(word, Emphasis::Strong)).collect();
        let lines: Vec<&Vec<Cell>> =
            Some(&head).filter(|head| !head.is_empty()).into_iter().chain(&self.rows).collect();
        let columns = lines.iter().map(|line| line.len()).max().unwrap_or(0);
        let least = |column: usize| self.least.get(column).copied().unwrap_or(0);
        let widest = |column| lines.iter().filter_map(|line| line.get(column)).map(Cell::width).max().unwrap_or(0);
        let width = |column| widest(column).max(least(column));
        let widths: Vec<usize> = (0..columns).map(width).collect();
        lines.iter().skip(usize::from(self.headless)).map(|line| self.line(line, &widths)).collect()
    }

    fn line(&self, cells: &[Cell], widths: &[usize]) -> String {
        let mut line = " ".repeat(self.indent);
        for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
            line.push_str(&cell.emphasis.paint(&cell.text));
            if at + 1 < cells.len() {
                line.push_str(&" ".repeat(width - cell.width() + GAP));
            }
        }
        let end = line.trim_end().len();
        line.truncate(end);
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_the_colour() {
        let mut table = Table::new(["NAME", "STATUS", "X"]);
        table.row([Cell::new("web"), Cell::status("pending-upgrade"), Cell::new("1")]);
        table.row([Cell::new("longer"), Cell::status("failed"), Cell::maybe(None::<u8>)]);
        let text = anstream::adapter::strip_str(&table.text()).to_string();
        let expected = "NAME     STATUS            X\nweb      pending-upgrade   1\nlonger   failed            -\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn text_from_a_record_cannot_steer_the_terminal() {
        let mut table = Table::new([]);
        table.row([Cell::new("a\u{1b}[2Jb\nc")]);
        assert_eq!(table.text(), "a [2Jb c\n");
    }
}
