//! What a contest found, as lines of a table and claims.

use std::time::Duration;

use super::counted::{Best, Bound, Counted, LEAST_PERCENT};
use crate::report::Report;

/// The heading of the table.
pub(super) const HEADING: &str =
    "algorithm        seed phase   good/s  best/s  at limit   ratio   p50 ms   p99 ms  too late";

/// One algorithm on one seed.
pub(super) struct Entry<'c> {
    pub(super) algorithm: &'c str,
    pub(super) seed: u64,
    pub(super) best: &'c [Best; 3],
    pub(super) phases: &'c [Counted; 3],
    pub(super) deadline: Duration,
    pub(super) phase_length: Duration,
}

impl Entry<'_> {
    /// A line per phase.
    pub(super) fn lines(&self, report: &Report) {
        for (phase, (counted, best)) in self.phases.iter().zip(self.best).enumerate() {
            let milliseconds = |part| counted.quantile(part).as_secs_f64() * 1000.0;
            report.fact(format!(
                "{:<10} {:>10} {:<6} {:>7.0} {:>7.0} {:>9} {:>5.1} % {:>8.1} {:>8.1} {:>7.2} %",
                self.algorithm,
                self.seed,
                ["full", "fifth", "full"][phase],
                counted.good as f64 / self.phase_length.as_secs_f64(),
                best.good as f64 / self.phase_length.as_secs_f64(),
                best.limit,
                best.percent(counted.good),
                milliseconds(0.5),
                milliseconds(0.99),
                counted.late_percent(),
            ));
        }
    }

    /// Whether all phases are good enough and bounded.
    pub(super) fn claims(&self, scenario: &str, report: &mut Report) {
        let phases = || self.phases.iter().zip(self.best);
        let worst = phases().map(|(counted, best)| best.percent(counted.good)).fold(f64::MAX, f64::min);
        let who = format!("{scenario}, {} seed {}", self.algorithm, self.seed);
        report.claim(
            worst >= LEAST_PERCENT,
            &format!("{who}: at least {LEAST_PERCENT} % of the best fixed limit in each phase"),
            format!("{worst:.1} %"),
        );
        let late: Vec<_> = (0..3)
            .filter(|phase| !Bound::of(*phase).holds(&self.phases[*phase], self.deadline))
            .map(|phase| format!("{:?}", Bound::of(phase)))
            .collect();
        let found = if late.is_empty() { "in each phase".to_owned() } else { late.join(", ") };
        report.claim(late.is_empty(), &format!("{who}: latency is bounded"), found);
    }
}
