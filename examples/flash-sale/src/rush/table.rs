//! The figures as a table, for a terminal and for a document.

use std::iter;

use tidegate_plot::short_number;

use super::figures::Figures;

const HEADINGS: [&str; 13] = [
    "strategy",
    "limiter",
    "sold",
    "oversold",
    "duplicates",
    "lost",
    "conflicts",
    "refused",
    "attempts",
    "p50 ms",
    "p99 ms",
    "sold out ms",
    "requests/s",
];

/// The table in columns.
pub fn text(figures: &[Figures]) -> String {
    let rows: Vec<[String; 13]> =
        iter::once(HEADINGS.map(str::to_owned)).chain(figures.iter().map(cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; 13] = std::array::from_fn(width);
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ") + "\n"
    });
    lines.collect()
}

/// The table in Markdown.
pub fn markdown(figures: &[Figures]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|---|---|{}\n", "--:|".repeat(11));
    let head = line(&HEADINGS.map(str::to_owned)) + &rule;
    iter::once(head).chain(figures.iter().map(|figures| line(&cells(figures)))).collect()
}

/// The table in HTML; nothing in it is a word of anybody else.
pub(super) fn html(figures: &[Figures]) -> String {
    let line = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>")).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = figures.iter().map(|figures| line("td", &cells(figures))).collect();
    format!(
        "<table>\n<thead>\n{}</thead>\n<tbody>\n{body}</tbody>\n</table>",
        line("th", &HEADINGS.map(str::to_owned))
    )
}

fn cells(figures: &Figures) -> [String; 13] {
    [
        figures.strategy.to_string(),
        figures.limiter.to_string(),
        figures.sold.to_string(),
        figures.oversold.to_string(),
        figures.duplicates.to_string(),
        figures.lost.to_string(),
        figures.conflicts.to_string(),
        figures.refused.to_string(),
        figures.attempts.to_string(),
        short_number(figures.p50_ms),
        short_number(figures.p99_ms),
        figures.sold_out_after_ms.map_or_else(|| "never".to_owned(), |after| after.to_string()),
        format!("{:.0}", figures.requests_per_second),
    ]
}
