//! What one combination came to, and what the limiter brought: inequalities over a pair of runs, without it and with it.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate::{Limit, WorstCase};

use super::{Combination, Limiter};
use crate::sale::{Books, Entry, Heard, Tally};

/// What one combination came to, by the database, the shop and the crowd.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// How pieces were taken.
    pub strategy: &'static str,
    /// Who was let to them.
    pub limiter: Limiter,
    /// The limiter's token bucket, if it was in front.
    pub limit: Option<String>,
    /// Pieces that there were.
    pub stock: u64,
    /// Who came.
    pub buyers: u64,
    /// Orders in the database.
    pub sold: u64,
    /// Those of them for which there was no piece.
    pub oversold: u64,
    /// Those beyond the first of one buyer.
    pub duplicates: u64,
    /// Orders that a buyer got and that the database does not have.
    pub lost: u64,
    /// Orders in the database that no buyer got.
    pub unreported: u64,
    /// Requests to buy that the shop has heard.
    pub requests: u64,
    /// Those that the limiter refused.
    pub refused: u64,
    /// Those that reached the database.
    pub attempts: u64,
    /// The most that the limiter may let reach it in this time; nothing without limiter.
    pub most_attempts: Option<u64>,
    /// Attempts for which another buyer was faster.
    pub conflicts: u64,
    /// Attempts at which the database failed.
    pub faults: u64,
    /// Requests without any answer.
    pub unanswered: u64,
    /// Unexpected answers, and how often they came.
    pub odd_answers: BTreeMap<String, u64>,
    /// Half of the attempts took no longer, in milliseconds.
    pub p50_ms: f64,
    /// Of a hundred attempts, one took longer.
    pub p99_ms: f64,
    /// From the first request to the last reservation, by the database's clock; nothing if something is left.
    pub sold_out_after_ms: Option<u64>,
    /// How long everything took.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_second: f64,
}

/// What figures are made of.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) combination: Combination,
    pub(super) buyers: u32,
    pub(super) limit: Limit,
    /// When the first request was sent, by the database's clock.
    pub(super) began_at: i64,
    pub(super) took: Duration,
    pub(super) heard: Heard,
    pub(super) numbers: Numbers,
    pub(super) tally: Tally,
    pub(super) books: Books,
}

/// What a shop has counted, as far as it matters here.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Numbers {
    totals: Totals,
    /// Of all attempts.
    all_latency_ms: Latency,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Totals {
    requests: u64,
    refused: u64,
    attempts: u64,
    conflicts: u64,
    faults: u64,
}

/// How long attempts took, if there were any.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Latency {
    p50: Option<f64>,
    p99: Option<f64>,
}

impl Figures {
    pub(super) fn of(found: &Found) -> Figures {
        let Found { combination, tally, numbers, heard, .. } = found;
        let seconds = found.took.as_secs_f64();
        let lines = found.books.lines.iter().filter(|(_, line)| line.entry != Entry::Returned);
        let there: HashSet<_> = lines.map(|(order, line)| (order, &line.user)).collect();
        let reported: HashSet<_> = heard.orders.iter().map(|(order, user)| (order, user)).collect();
        Figures {
            strategy: combination.strategy,
            limiter: combination.limiter,
            limit: (combination.limiter == Limiter::On).then(|| found.limit.to_string()),
            stock: tally.stock.unsigned_abs(),
            buyers: u64::from(found.buyers),
            sold: tally.live.unsigned_abs(),
            oversold: (tally.live - tally.stock).max(0).unsigned_abs(),
            duplicates: tally.duplicates.unsigned_abs(),
            lost: reported.difference(&there).count() as u64,
            unreported: there.difference(&reported).count() as u64,
            requests: numbers.totals.requests,
            refused: numbers.totals.refused,
            attempts: numbers.totals.attempts,
            most_attempts: found.most_attempts(),
            conflicts: numbers.totals.conflicts,
            faults: numbers.totals.faults,
            unanswered: heard.unanswered,
            odd_answers: heard.odd.clone(),
            p50_ms: numbers.all_latency_ms.p50.unwrap_or(0.0),
            p99_ms: numbers.all_latency_ms.p99.unwrap_or(0.0),
            sold_out_after_ms: found.sold_out_after(),
            seconds,
            requests_per_second: heard.sent as f64 / seconds.max(0.001),
        }
    }

    /// Whether the books are as they have to be: nothing sold twice, nothing lost, nothing left while there was demand.
    pub fn is_exact(&self) -> bool {
        self.sold == self.stock.min(self.buyers)
            && self.oversold == 0
            && self.duplicates == 0
            && self.lost == 0
            && self.unreported == 0
    }

    /// Whether a strategy that promises exact books has kept them.
    pub fn is_as_promised(&self) -> bool {
        !self.is_safe() || self.is_exact()
    }

    /// Whether its strategy promises exact books; the naive one promises nothing.
    pub fn is_safe(&self) -> bool {
        self.strategy != "naive"
    }
}

impl Found {
    fn most_attempts(&self) -> Option<u64> {
        match (self.combination.limiter, self.limit.worst_case(self.took)) {
            (Limiter::On, WorstCase::Units(most)) => Some(most),
            _ => None,
        }
    }

    fn sold_out_after(&self) -> Option<u64> {
        let last_at = self.tally.last_at.filter(|_| self.tally.live >= self.tally.stock)?;
        Some(last_at.saturating_sub(self.began_at).max(0).unsigned_abs())
    }
}

/// Something that a limiter should bring, and whether it did.
#[derive(Clone, Debug, Serialize)]
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
        if strategy == "pessimistic" {
            goals.push(self.faster());
        }
        if matches!(strategy, "value" | "version") {
            goals.push(self.calmer());
        }
        if self.with.is_safe() {
            goals.push(self.in_time());
        }
        goals
    }

    fn goal(&self, wanted: &'static str, found: String, is_met: bool) -> Goal {
        Goal { of: self.with.strategy, wanted, found, is_met }
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
