//! What a drill says: facts as they are counted, claims that hold or do not, and the end.

use std::fmt::Display;
use std::process::ExitCode;

use crate::Outcome;
use crate::options::Options;

/// The claims of one drill so far.
#[derive(Debug)]
pub(crate) struct Report {
    name: &'static str,
    held: usize,
    broken: Vec<String>,
}

impl Report {
    pub(crate) fn begin(name: &'static str, options: &Options) -> Report {
        println!("drill {name}: scale {}, seed {}", options.scale, options.seed);
        Report { name, held: 0, broken: Vec::new() }
    }

    /// The drill's name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a claim did not hold so far.
    pub(crate) fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Says what was done or counted.
    pub(crate) fn fact(&self, fact: impl Display) {
        println!("  {fact}");
    }

    /// Says what was claimed and what was found, and whether that is the same.
    pub(crate) fn claim(&mut self, holds: bool, claim: &str, found: impl Display) {
        println!("  {} {claim}: {found}", if holds { "held  " } else { "BROKEN" });
        if holds {
            self.held += 1;
        } else {
            self.broken.push(format!("{claim}: {found}"));
        }
    }

    /// Says whether all of it held.
    pub(crate) fn end(mut self, outcome: Outcome) -> ExitCode {
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

/// A whole number with its thousands apart.
pub(crate) fn thousands(number: u64) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let options = Options { scale: 1.0, seed: 0, count: None, plot: false, part: None };
        Report::begin("example", &options)
    }

    #[test]
    fn a_drill_holds_if_every_claim_does() {
        let mut report = report();
        report.claim(true, "nobody passes", 0);
        assert_eq!(report.verdict(), "drill example: held");
        report.claim(false, "nobody passes twice", 3);
        assert_eq!(report.verdict(), "drill example: BROKEN nobody passes twice: 3");
    }

    #[test]
    fn a_drill_that_cannot_be_done_did_not_hold() {
        let mut held = report();
        held.claim(true, "nobody passes", 0);
        assert_eq!(held.end(Ok(())), ExitCode::SUCCESS);
        assert_eq!(report().end(Err("no disk".to_owned())), ExitCode::FAILURE);
        assert_eq!(report().end(Ok(())), ExitCode::FAILURE, "it claimed nothing");
    }

    #[test]
    fn thousands_are_apart() {
        let texts = [0, 999, 1000, 65_536, 100_000_000].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "65,536", "100,000,000"]);
    }
}
