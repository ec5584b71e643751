//! What happened in each round, and whether that is within what a cluster may forget.

use std::time::Duration;

use harness::{Report, thousands};
use testbed::{Bound, Breach, Decided, Judge};

use crate::fleet::Heard;

const SECOND: Duration = Duration::from_secs(1);
/// How soon decisions come again: nodes take two seconds to notice.
const SOON: Duration = Duration::from_secs(5);
/// The clock of the Redis is another one than ours.
const DOUBT: Duration = Duration::from_millis(5);

/// What happened in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) outage: Option<Outage>,
    pub(super) began: Duration,
    pub(super) ended: Duration,
    /// How many failovers there may have been.
    pub(super) failovers: u64,
}

/// A primary was killed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    pub(super) gone: Duration,
    /// When another one had its place.
    pub(super) replaced: Duration,
    /// When decisions had come to every store again.
    pub(super) resumed: Duration,
}

impl Outage {
    /// When something may have been forgotten.
    fn span(self) -> (Duration, Duration) {
        (self.gone, self.resumed.max(self.replaced))
    }

    pub(super) fn lasted(&self) -> Duration {
        self.resumed - self.gone
    }
}

/// What the shared subject of a round has spent, where that is certain.
#[derive(Debug, Default)]
pub(super) struct Shared {
    judged: u64,
    passed: u64,
    spent: u64,
    /// More passed than was spent.
    too_little: Vec<String>,
    /// More was spent than passed, and than may have.
    too_much: Vec<String>,
}

impl Shared {
    /// Compares the replies about a key with what it has spent.
    pub(super) fn compare(&mut self, name: &str, log: Vec<Decided>, spent: u64) {
        self.judged += 1;
        self.passed += log.iter().filter(|decided| decided.is_allowed).count() as u64;
        self.spent += spent;
        match Judge::new(log).charged(name, spent) {
            Err(Breach::Charged { charged, at_least, .. }) if charged < at_least => {
                self.too_little.push(format!("{name} has spent {charged} of {at_least}"));
            }
            Err(breach) => self.too_much.push(breach.to_string()),
            Ok(()) => {}
        }
    }

    pub(super) fn say(&self, report: &mut Report) {
        let Shared { judged, passed, spent, too_little, too_much } = self;
        report.fact(format!(
            "what all share: {} passed and {} spent in {judged} rounds",
            thousands(*passed),
            thousands(*spent)
        ));
        let first = |some: &[String]| some.first().map(|first| format!(", {first}")).unwrap_or_default();
        report.claim(
            too_little.is_empty() && *judged > 0,
            "what all share has spent all that passed",
            format!("{} rounds otherwise{}", too_little.len(), first(too_little)),
        );
        report.claim(
            too_much.is_empty() && *judged > 0,
            "and nothing else, but what may have passed",
            format!("{} rounds otherwise{}", too_much.len(), first(too_much)),
        );
    }
}

pub(super) fn say(rounds: &[Round], heard: &Heard, report: &mut Report) {
    let outages: Vec<_> = rounds.iter().filter_map(|round| round.outage).collect();
    let longest = outages.iter().map(Outage::lasted).max().unwrap_or_default();
    let failovers: u64 = rounds.iter().map(|round| round.failovers).sum();
    report.fact(format!(
        "{} rounds, {} with a death, {failovers} failovers at most",
        rounds.len(),
        outages.len()
    ));
    heard.say(report);
    let average = |time: fn(&Outage) -> Duration| {
        outages.iter().map(time).sum::<Duration>() / outages.len().max(1) as u32
    };
    report.fact(format!(
        "on average another one had its place after {:?}, and decisions came again after {:?}",
        average(|outage| outage.replaced - outage.gone),
        average(Outage::lasted),
    ));
    report.claim(longest <= SOON, "decisions come again within 5 s", format!("{longest:?} at the longest"));
    for (number, round) in (1..).zip(rounds) {
        if round.outage.is_some_and(|outage| outage.lasted() > SOON) {
            report.fact(format!("round {number} was too long: {round:?}"));
        }
    }
}

pub(super) fn judge(rounds: &[Round], heard: &Heard, report: &mut Report) {
    let limits = [("bucket", Bound::new(50, 20, SECOND)), ("person", Bound::new(10, 5, SECOND))];
    for (name, bound) in limits {
        let log = heard.log.iter().filter(|decided| decided.key.starts_with(name)).cloned();
        let bound = rounds.iter().fold(bound.slack(DOUBT), |mut bound, round| {
            for nth in 0..round.failovers {
                let outage = round.outage.filter(|_| nth == 0).map(Outage::span);
                let (from, to) = outage.unwrap_or((round.began, round.ended));
                bound = bound.loss(from, to);
            }
            bound
        });
        let found = Judge::new(log).shared(&bound);
        report.claim(
            found.as_ref().is_ok_and(|seen| seen.admitted > 0),
            &format!("each {name}: one burst more per failover at most, in every interval"),
            found.map_or_else(
                |breach| breach.to_string(),
                |seen| {
                    let room = seen.room.unwrap_or_default();
                    let (keys, admitted) = (seen.keys, thousands(seen.admitted));
                    format!("{admitted} admitted of {keys}, room for {room} in the fullest")
                },
            ),
        );
    }
}
