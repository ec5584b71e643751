//! What a limiter is for, in four inequalities over a pair of runs: without it, and with it.

use std::fmt;

use serde::Serialize;

use super::figures::Figures;
use super::plan::Limiter;
use crate::strategy::Strategy;

/// Something that a limiter should bring, and whether it did.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Goal {
    /// The strategy.
    pub of: &'static str,
    /// What should be.
    pub wanted: &'static str,
    /// What is.
    pub found: String,
    /// Whether that is enough.
    pub is_met: bool,
}

impl fmt::Display for Goal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_met { "met   " } else { "missed" };
        write!(out, "{word}  {:<12} {}: {}", self.of, self.wanted, self.found)
    }
}

/// The goals of every strategy that was run both ways.
pub fn goals(figures: &[Figures]) -> Vec<Goal> {
    let with = figures.iter().filter(|figures| figures.limiter == Limiter::On);
    with.filter_map(|with| {
        let is_pair = |other: &&Figures| other.limiter == Limiter::Off && other.strategy == with.strategy;
        Some(Pair { without: figures.iter().find(is_pair)?, with })
    })
    .flat_map(|pair| pair.goals())
    .collect()
}

struct Pair<'f> {
    without: &'f Figures,
    with: &'f Figures,
}

impl Pair<'_> {
    fn goals(&self) -> Vec<Goal> {
        let strategy = self.with.strategy;
        let mut goals = vec![self.bounded()];
        if strategy == Strategy::Pessimistic {
            goals.push(self.faster());
        }
        if matches!(strategy, Strategy::Value | Strategy::Version) {
            goals.push(self.calmer());
        }
        if strategy.is_safe() {
            goals.push(self.in_time());
        }
        goals
    }

    fn goal(&self, wanted: &'static str, found: String, is_met: bool) -> Goal {
        Goal { of: self.with.strategy.name(), wanted, found, is_met }
    }

    fn bounded(&self) -> Goal {
        let (attempts, most) = (self.with.attempts, self.with.most_attempts.unwrap_or(0));
        let found = format!("{attempts} of at most {most}; without limiter {}", self.without.attempts);
        self.goal("attempts no more than burst + rate × time", found, attempts <= most)
    }

    fn faster(&self) -> Goal {
        let (without, with) = (self.without.p99_ms, self.with.p99_ms);
        let found = format!("{with:.1} ms instead of {without:.1} ms");
        self.goal("p99 of attempts at most half", found, 2.0 * with <= without)
    }

    fn calmer(&self) -> Goal {
        let (without, with) = (self.without.conflicts, self.with.conflicts);
        let found = format!("{with} instead of {without}");
        self.goal("conflicts at most a fifth", found, 5 * with <= without)
    }

    fn in_time(&self) -> Goal {
        let wanted = "sold out within 1.5 × the time";
        match (self.without.sold_out_after_ms, self.with.sold_out_after_ms) {
            (Some(without), Some(with)) => {
                self.goal(wanted, format!("{with} ms instead of {without} ms"), 2 * with <= 3 * without)
            }
            _ => self.goal(wanted, "it was not sold out".to_owned(), false),
        }
    }
}
