//! The worst case of a limit: the most that it allows in an interval, and the memory of a key.
//!
//! The numbers are exact upper bounds that can be reached. They answer two questions before a rule is in force: how
//! much load it can cause, and how much memory its keys need.

use std::fmt;
use std::time::Duration;

use tidegate::{Algorithm, Limit, SECOND, WorstCase};
use tidegate_rules::{Mode, Policy, Rule, StaticVerdict};

use crate::explained::{bytes_per_key, disk_bytes_per_key};
use crate::spans::{number, span};

/// The second length of an interval, after one second.
const MINUTE: Duration = Duration::from_secs(60);

/// The most in one instant, a second, a minute, and the time after which the quota is full again, as a sentence.
///
/// For `10/s burst 20` it is `20 at one instant, 29 in any 1s, 39 in any 2s, 619 in any 1m`. A concurrency limit
/// has no rate, so only the number in flight is shown.
pub(super) struct WorstCaseRow<'a>(pub(super) &'a Limit);

impl fmt::Display for WorstCaseRow<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.worst_case(Duration::ZERO) {
            WorstCase::InFlight(most) => {
                return write!(out, "{} at a time, however many come and go", number(most));
            }
            WorstCase::Units(most) => {
                let accepts = if leaves_evenly(self.0) { "accepts " } else { "" };
                write!(out, "{accepts}{} at one instant", number(most))?;
            }
            WorstCase::UnitsAndOneGrant(most) => {
                write!(out, "{} and one request of any cost at one instant", number(most))?;
            }
            _ => return out.write_str("without a bound"),
        }
        let mut spans = vec![SECOND, MINUTE, self.0.time_to_full()];
        spans.sort_unstable();
        spans.dedup();
        for time in spans.into_iter().filter(|time| !time.is_zero()) {
            match self.0.worst_case_trailing(time) {
                WorstCase::Units(most) => write!(out, ", {} in any {}", number(most), span(time))?,
                WorstCase::UnitsAndOneGrant(most) => {
                    write!(out, ", {} and one in any {}", number(most), span(time))?;
                }
                _ => {}
            }
        }
        if leaves_evenly(self.0) { out.write_str("; they leave evenly") } else { Ok(()) }
    }
}

/// Returns true if accepted requests leave one by one.
///
/// That is a leaky bucket without `delay-after`: it accepts a queue at once, and lets it leave at its rate.
fn leaves_evenly(limit: &Limit) -> bool {
    limit.algorithm() == Algorithm::LeakyBucket && !limit.to_string().contains("delay-after")
}

/// The worst case of every rule of a policy, as a table.
///
/// ```text
/// rule      limit            at once  any 1s  any 1m  in its period  bytes per key  on disk
/// api       10/s burst 20         20      29     619       39 in 2s             24       24
/// scrapers  always denies
/// ```
pub(super) struct WorstCaseTable<'a>(pub(super) &'a Policy);

/// The headings of the table.
const HEAD: [&str; 8] =
    ["rule", "limit", "at once", "any 1s", "any 1m", "in its period", "bytes per key", "on disk"];
/// The mark for one request that a pacer grants at any cost.
const GRANT: &str = "+1";
/// The number of text columns; the others are numbers, and right-aligned.
const WORDS: usize = 2;

impl fmt::Display for WorstCaseTable<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = vec![HEAD.map(str::to_owned)];
        self.0.rules().iter().for_each(|rule| of_rule(rule, &mut rows));
        let denies = self.0.unmatched() == StaticVerdict::Deny;
        if rows.len() == 1 {
            return out.write_str(match denies {
                true => "no rules, and [rules] has unmatched = \"deny\": every request is denied",
                false => "no rules: every request is allowed",
            });
        }
        let widths: Vec<_> = (0..HEAD.len())
            .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        let lines: Vec<String> = rows.iter().map(|row| aligned(row, &widths)).collect();
        out.write_str(&lines.join("\n"))?;
        let has_grants = rows.iter().flatten().any(|cell| cell.contains(GRANT));
        if has_grants {
            write!(out, "\n\n{GRANT} is one request of any cost")?;
        }
        if denies {
            out.write_str(
                "\n\n[rules] has unmatched = \"deny\": a request to which no rule applies is denied",
            )?;
        }
        Ok(())
    }
}

/// Returns one line of the table, with columns of these widths.
///
/// Trailing spaces are removed, so that the output can be pasted into documents.
fn aligned(row: &[String; HEAD.len()], widths: &[usize]) -> String {
    let mut line = String::new();
    for (column, (cell, wide)) in row.iter().zip(widths).enumerate() {
        let gap = if column == 0 { "" } else { "  " };
        line += &match column < WORDS {
            true => format!("{gap}{cell:<wide$}"),
            false => format!("{gap}{cell:>wide$}"),
        };
    }
    line.trim_end().to_owned()
}

/// The maximum number of single values of one rule in the table.
const MAX_VALUES: usize = 20;

/// Appends the rows of one rule: its own limit, and one row for each schedule window and each value of `limit_for`.
fn of_rule(rule: &Rule, rows: &mut Vec<[String; HEAD.len()]>) {
    let kind = match (rule.candidate_for(), rule.mode()) {
        (Some(_), _) => " (candidate)",
        (None, Mode::Shadow) => " (shadow)",
        (None, Mode::Enforce) => "",
    };
    let name = format!("{}{kind}", rule.name());
    match rule.decision() {
        Some(StaticVerdict::Allow) => rows.push(words(name, "always allows")),
        Some(StaticVerdict::Deny) => rows.push(words(name, "always denies")),
        None => rows.extend(rule.limit().map(|limit| of_limit(name, rule, limit))),
    }
    let scheduled = rule.schedule();
    rows.extend(scheduled.map(|then| of_limit(format!("  {}", then.window), rule, then.limit)));
    let part = rule.key().next().unwrap_or_default();
    let mut values = rule.limit_for();
    let shown = values.by_ref().take(MAX_VALUES);
    rows.extend(shown.map(|(value, limit)| of_limit(format!("  {part} = {value:?}"), rule, limit)));
    match values.count() {
        0 => {}
        more => rows.push(words(format!("  {more} more values of limit_for"), "")),
    }
}

/// Returns the row of a rule without a limit.
fn words(name: String, says: &str) -> [String; HEAD.len()] {
    let mut row: [String; HEAD.len()] = Default::default();
    (row[0], row[1]) = (name, says.to_owned());
    row
}

/// Returns the row of a limit.
///
/// A dash stands for a number that does not exist, such as the rate of a concurrency limit.
fn of_limit(name: String, rule: &Rule, limit: &Limit) -> [String; HEAD.len()] {
    let period = limit.time_to_full();
    let in_period = match limit.worst_case_trailing(period) {
        WorstCase::Units(_) | WorstCase::UnitsAndOneGrant(_) => {
            format!("{} in {}", cell(limit.worst_case_trailing(period)), span(period))
        }
        _ => "-".to_owned(),
    };
    [
        name,
        limit.to_string(),
        match limit.worst_case(Duration::ZERO) {
            WorstCase::InFlight(most) => number(most),
            most => cell(most),
        },
        cell(limit.worst_case_trailing(SECOND)),
        cell(limit.worst_case_trailing(MINUTE)),
        in_period,
        number(bytes_per_key(rule, limit) as u64),
        disk_bytes_per_key(rule, limit).map_or_else(|| "-".to_owned(), |bytes| number(bytes as u64)),
    ]
}

/// Formats a table cell. A dash stands for "no bound".
fn cell(most: WorstCase) -> String {
    match most {
        WorstCase::Units(most) => number(most),
        WorstCase::UnitsAndOneGrant(most) => format!("{}{GRANT}", number(most)),
        _ => "-".to_owned(),
    }
}
