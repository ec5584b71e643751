//! What became of the calls of one phase, and what is asked of that.

use std::time::Duration;

use harness::{Report, quantile};

/// Good answers are at least this share of those of the best fixed limit.
pub(super) const LEAST_PERCENT: f64 = 85.0;

/// The calls of one phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) offered: u64,
    pub(super) admitted: u64,
    /// Answered in time.
    pub(super) good: u64,
    /// Let in, but their callers gave up.
    pub(super) late: u64,
    /// From letting in to the end of the work, also where the caller had gone.
    pub(super) latencies: Vec<Duration>,
}

impl Counted {
    /// How many in a hundred of those let in came too late.
    pub(super) fn late_percent(&self) -> f64 {
        100.0 * self.late as f64 / self.admitted.max(1) as f64
    }

    pub(super) fn quantile(&self, part: f64) -> Duration {
        quantile(self.latencies.clone(), part)
    }
}

/// The best of several fixed limits for one phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Best {
    pub(super) limit: u64,
    pub(super) good: u64,
}

impl Best {
    /// The better of this and another.
    pub(super) fn or(self, limit: u64, good: u64) -> Best {
        if good > self.good { Best { limit, good } } else { self }
    }

    /// How many in a hundred of its good answers these are.
    pub(super) fn percent(&self, good: u64) -> f64 {
        100.0 * good as f64 / self.good.max(1) as f64
    }
}

/// The same, but the last phase has to be as good as the first: what a fixed limit that is too high for the phase
/// between them leaves behind is no excuse.
pub(super) fn strict([full, fifth, again]: [Best; 3]) -> [Best; 3] {
    [full, fifth, again.or(full.limit, full.good)]
}

/// How late the calls of a phase may be, in parts of the deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) median: f64,
    pub(super) p99: f64,
    pub(super) late_percent: f64,
}

/// While capacity stands or rises.
const STEADY: Bound = Bound { median: 0.6, p99: 1.5, late_percent: 3.0 };
/// Where capacity drops: what was let in before has to be worked off by a fifth of the workers.
const DROP: Bound = Bound { median: 0.7, p99: 6.0, late_percent: 10.0 };

impl Bound {
    pub(super) fn of(phase: usize) -> Bound {
        if phase == 1 { DROP } else { STEADY }
    }

    pub(super) fn holds(&self, counted: &Counted, deadline: Duration) -> bool {
        counted.quantile(0.5) <= deadline.mul_f64(self.median)
            && counted.quantile(0.99) <= deadline.mul_f64(self.p99)
            && counted.late_percent() <= self.late_percent
    }
}

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
