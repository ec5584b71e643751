//! What was seen in many rounds.

use harness::{Report, thousands};
use tidegate::{Decision, ZoneCounts};

/// Something that must not happen: how often it did, and the first time.
#[derive(Debug, Default)]
struct Breaches {
    count: u64,
    first: Option<String>,
}

impl Breaches {
    fn add(&mut self, seed: u64, describe: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("round of seed {seed}: {}", describe()));
    }

    fn append(&mut self, other: Breaches) {
        self.count += other.count;
        self.first = self.first.take().or(other.first);
    }

    fn claim(&self, claim: &str, report: &mut Report) {
        let first = self.first.as_ref().map_or_else(String::new, |first| format!(", the first: {first}"));
        report.claim(self.count == 0, claim, format!("{} exceptions{first}", self.count));
    }
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breach {
    /// The zone has admitted what the subject's own state refuses.
    TooMuch,
    /// The zone has admitted more than true time allows.
    BeyondTrueTime,
    /// A request was denied for good.
    Never,
    /// The zone has decided otherwise than a state kept apart.
    Differs,
    /// The reported wait was longer than the bound.
    Waits,
    /// A request after the reported wait was denied, or one before it was admitted.
    EarlyOrLate,
}

/// The breaches that count only if every subject kept its cell.
const OF_CELLS: [Breach; 3] = [Breach::Differs, Breach::Waits, Breach::EarlyOrLate];

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Judged {
    asked: u64,
    admitted: u64,
    jumps: u64,
    shared: u64,
    /// Rounds in which every subject kept its cell.
    exact_rounds: u64,
    /// By [`Breach`].
    breaches: [Breaches; 6],
    /// The longest wait as a share of what it may be, of rounds in which every subject kept its cell.
    longest_wait: f64,
    waits_checked: u64,
    round: Round,
    /// The seed of the round.
    seed: u64,
}

/// What counts only if every subject kept its cell, which is known at the end of the round.
#[derive(Debug, Default)]
struct Round {
    /// By [`Breach`].
    breaches: [Breaches; 6],
    longest_wait: f64,
    waits_checked: u64,
}

impl Judged {
    pub(super) fn begin_round(&mut self, seed: u64) {
        self.seed = seed;
    }

    pub(super) fn asked(&mut self, decision: &Decision) {
        self.asked += 1;
        self.admitted += u64::from(decision.is_allowed());
    }

    pub(super) fn jumped(&mut self) {
        self.jumps += 1;
    }

    /// Something happened that must not.
    pub(super) fn found(&mut self, breach: Breach, describe: impl FnOnce() -> String) {
        let of_all = if OF_CELLS.contains(&breach) { &mut self.round.breaches } else { &mut self.breaches };
        of_all[breach as usize].add(self.seed, describe);
    }

    /// Records a reported wait.
    pub(super) fn waits(&mut self, wait: u64, longest: u64, describe: impl FnOnce() -> String) {
        self.round.longest_wait = self.round.longest_wait.max(wait as f64 / longest as f64);
        if wait > longest {
            self.found(Breach::Waits, describe);
        }
    }

    /// Records if a reported wait was needed, and enough.
    pub(super) fn waited(&mut self, was_exact: bool, describe: impl FnOnce() -> String) {
        self.round.waits_checked += 1;
        if !was_exact {
            self.found(Breach::EarlyOrLate, describe);
        }
    }

    /// The end of a round in which so many subjects were ever admitted.
    pub(super) fn end_round(&mut self, counts: &ZoneCounts, subjects: u64) {
        self.shared += counts.shared_decisions;
        let round = std::mem::take(&mut self.round);
        if counts.inserts == subjects && counts.shared_decisions == 0 {
            self.exact_rounds += 1;
            self.breaches.iter_mut().zip(round.breaches).for_each(|(all, round)| all.append(round));
            self.longest_wait = self.longest_wait.max(round.longest_wait);
            self.waits_checked += round.waits_checked;
        }
    }

    pub(super) fn facts(&self) -> String {
        format!(
            "{} jumps, {} asks, {} admitted, {} decided sharing; in {} rounds everybody kept a cell",
            thousands(self.jumps),
            thousands(self.asked),
            thousands(self.admitted),
            thousands(self.shared),
            thousands(self.exact_rounds),
        )
    }

    pub(super) fn claim(&self, name: &str, report: &mut Report) {
        let mut claim = |claim: &str, breach: Breach| {
            self.breaches[breach as usize].claim(&format!("{name}: {claim}"), report);
        };
        claim("no key is admitted what its own state denies by the same readings", Breach::TooMuch);
        if self.jumps > 0 {
            let jump = "a jump forwards gives one more burst at most, a jump back nothing";
            claim(jump, Breach::BeyondTrueTime);
        }
        claim("no request is denied for good", Breach::Never);
        claim("who keeps a cell is decided like a state kept apart, to the tick", Breach::Differs);
        let share = self.longest_wait * 100.0;
        let waits = format!("who keeps a cell waits no longer than it may (the longest {share:.1} %)");
        claim(&waits, Breach::Waits);
        let checked = thousands(self.waits_checked);
        if self.waits_checked > 0 {
            let exact = format!(
                "a request after the reported wait passes, and not a nanosecond earlier ({checked} times)"
            );
            claim(&exact, Breach::EarlyOrLate);
        }
        report.claim(
            self.shared > self.asked / 50,
            &format!("{name}: many do share"),
            thousands(self.shared),
        );
    }
}
