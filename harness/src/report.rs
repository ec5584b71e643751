//! What is said: facts as they are counted, claims that hold or do not, goals, progress, columns.

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::options::Options;
use crate::stopwatch::Stopwatch;

/// Between two lines of progress.
const EVERY: Duration = Duration::from_secs(3);

/// The claims of one drill so far.
#[derive(Debug)]
pub struct Report {
    name: &'static str,
    held: usize,
    broken: Vec<String>,
}

impl Report {
    /// Begins a drill of this name.
    pub fn begin(name: &'static str, options: &Options) -> Report {
        println!("drill {name}: scale {}, seed {}", options.scale, options.seed);
        Report { name, held: 0, broken: Vec::new() }
    }

    /// Returns the drill's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether a claim did not hold so far.
    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Says what was done or counted.
    pub fn fact(&self, fact: impl Display) {
        println!("  {fact}");
    }

    /// Says what was claimed and what was found, and whether that is the same.
    pub fn claim(&mut self, holds: bool, claim: &str, found: impl Display) {
        println!("  {} {claim}: {found}", if holds { "held  " } else { "BROKEN" });
        if holds {
            self.held += 1;
        } else {
            self.broken.push(format!("{claim}: {found}"));
        }
    }

    /// Says whether all of it held.
    pub fn end(mut self, outcome: Result<(), String>) -> ExitCode {
        if let Err(problem) = outcome {
            self.broken.push(format!("it could not be done: {problem}"));
        } else if self.held + self.broken.len() == 0 {
            self.broken.push("nothing was claimed".to_owned());
        }
        println!("{}", self.verdict());
        println!("{} passed, {} failed", self.held, self.broken.len());
        ExitCode::from(u8::from(!self.broken.is_empty()))
    }

    fn verdict(&self) -> String {
        match self.broken.as_slice() {
            [] => format!("drill {}: held", self.name),
            broken => format!("drill {}: BROKEN {}", self.name, broken.join("; ")),
        }
    }
}

/// The value that was measured for a goal, and what it should be.
#[derive(Clone, Debug)]
pub struct Goal {
    name: &'static str,
    measured: f64,
    target: f64,
    aim: f64,
    is_least: bool,
}

impl Goal {
    /// A goal that is met by no more than the target.
    pub fn at_most(name: &'static str, measured: f64, target: f64, aim: f64) -> Goal {
        Goal { name, measured, target, aim, is_least: false }
    }

    /// A goal that is met by no less than the target.
    pub fn at_least(name: &'static str, measured: f64, target: f64, aim: f64) -> Goal {
        Goal { is_least: true, ..Goal::at_most(name, measured, target, aim) }
    }

    /// Prints a line per goal. Returns whether all were met.
    pub fn print_all(goals: &[Goal]) -> bool {
        goals.iter().for_each(|goal| println!("{}", goal.line()));
        goals.iter().all(Goal::is_met)
    }

    fn is_met(&self) -> bool {
        // What is not a number meets nothing.
        if self.is_least { self.measured >= self.target } else { self.measured <= self.target }
    }

    fn line(&self) -> String {
        let Goal { name, measured, target, aim, is_least } = self;
        let (sign, word) =
            (if *is_least { '\u{2265}' } else { '\u{2264}' }, if self.is_met() { "met" } else { "missed" });
        format!("goal: {name} measured {measured:.3} target {sign} {target} aim {aim} {word}")
    }
}

/// How far a part of a drill has come, a line every few seconds; any of its threads may say so.
#[derive(Debug)]
pub struct Progress {
    name: String,
    total: u64,
    watch: Stopwatch,
    /// When the next line is due, in milliseconds.
    next: AtomicU64,
}

impl Progress {
    /// Begins something of this many steps.
    pub fn new(name: impl Into<String>, total: u64) -> Progress {
        let next = AtomicU64::new(EVERY.as_millis() as u64);
        Progress { name: name.into(), total, watch: Stopwatch::start(), next }
    }

    /// Returns whether a line is due: for one only of those who ask at once.
    pub fn is_due(&self) -> bool {
        let now = self.watch.elapsed().as_millis() as u64;
        let next = self.next.load(Ordering::Relaxed);
        let later = now + EVERY.as_millis() as u64;
        now >= next && self.next.compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Says how far it has come, whether due or not.
    pub fn say(&self, done: u64, detail: impl Display) {
        eprintln!("{}", self.line(done, detail, self.watch.elapsed()));
    }

    /// Says how far it has come, if a line is due.
    pub fn at(&self, done: u64, detail: impl Display) {
        if self.is_due() {
            self.say(done, detail);
        }
    }

    fn line(&self, done: u64, detail: impl Display, elapsed: Duration) -> String {
        let percent = done * 100 / self.total.max(1);
        let (done, total) = (thousands(done), thousands(self.total));
        format!("{}: {done} of {total} ({percent} %) after {} s {detail}", self.name, elapsed.as_secs())
    }
}

/// Returns a whole number with its thousands apart.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns rows in columns of even width: the first columns flush left, so many of them, the others flush right.
pub fn columns<const N: usize>(rows: &[[String; N]], left: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column < left {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ") + "\n"
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::begin("example", &Options::new(0))
    }

    #[test]
    fn a_drill_holds_if_every_claim_does() {
        let mut report = report();
        report.claim(true, "no request passes", 0);
        assert_eq!(report.verdict(), "drill example: held");
        report.claim(false, "no request passes twice", 3);
        assert_eq!(report.verdict(), "drill example: BROKEN no request passes twice: 3");
    }

    #[test]
    fn a_drill_that_cannot_be_done_did_not_hold() {
        let mut held = report();
        held.claim(true, "no request passes", 0);
        assert_eq!(held.end(Ok(())), ExitCode::SUCCESS);
        assert_eq!(report().end(Err("no disk".to_owned())), ExitCode::FAILURE);
        assert_eq!(report().end(Ok(())), ExitCode::FAILURE, "it claimed nothing");
    }

    #[test]
    fn a_goal_is_met_by_its_target_and_missed_by_what_was_not_measured() {
        let met = |goal: Goal| (goal.is_met(), goal.line().ends_with(" met"));
        assert_eq!(met(Goal::at_most("a", 1.2, 1.2, 1.0)), (true, true));
        assert_eq!(met(Goal::at_least("a", 1.1, 1.2, 1.3)), (false, false));
        assert_eq!(met(Goal::at_most("a", f64::NAN, 1.2, 1.0)), (false, false));
        assert_eq!(
            Goal::at_most("a/b", 1.0, 1.2, 1.0).line(),
            "goal: a/b measured 1.000 target \u{2264} 1.2 aim 1 met"
        );
    }

    #[test]
    fn a_line_says_how_much_of_what_and_none_is_due_at_once() {
        let progress = Progress::new("flood", 4000);
        let line = progress.line(1000, "live 16/16", Duration::from_millis(3200));
        assert_eq!(line, "flood: 1,000 of 4,000 (25 %) after 3 s live 16/16");
        assert!(!progress.is_due());
    }

    #[test]
    fn thousands_are_apart_and_columns_are_even() {
        let texts = [0, 999, 1000, 65_536, 100_000_000].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "65,536", "100,000,000"]);
        let rows = [["a", "bc"], ["def", "g"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(&rows, 1), "a    bc\ndef   g\n");
    }
}
