//! A table of text for people: columns of one width, two spaces apart.

use std::fmt;

/// A table with a line of headings.
pub(super) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// Creates a table with these headings.
    pub(super) fn new(headings: [&str; COLUMNS]) -> Table<COLUMNS> {
        Table { rows: vec![headings.map(str::to_owned)] }
    }

    /// Appends a row.
    pub(super) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }
}

impl<const COLUMNS: usize> fmt::Display for Table<COLUMNS> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let characters = |cell: &String| cell.chars().count();
        let width =
            |column: usize| self.rows.iter().map(|row| characters(&row[column])).max().unwrap_or_default();
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        for (nth, row) in self.rows.iter().enumerate() {
            if nth > 0 {
                writeln!(out)?;
            }
            let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            out.write_str(cells.collect::<Vec<_>>().join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["RULE", "N"]);
        table.row(["k\u{e4}se".to_owned(), "10".to_owned()]);
        table.row(["everybody".to_owned(), String::new()]);
        assert_eq!(table.to_string(), "RULE       N\nk\u{e4}se       10\neverybody");
    }
}
