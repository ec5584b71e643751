//! The asks of one key in a row, and what they say about it.

use tidegate::{Clock, Limiter, ManualClock, Timestamp, Verdict};

use crate::account::{Account, Prices};

/// What is known about one key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    account: Account,
    /// The end of its reported wait.
    refused_until: Timestamp,
}

/// What became of many asks.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) asked: u64,
    pub(super) admitted: u64,
    /// Admissions beyond the bound.
    pub(super) above: u64,
    /// Admissions before the time that a refusal had named.
    pub(super) let_back: u64,
    /// Refusals for good.
    pub(super) never: u64,
    first_above: Option<String>,
    first_let_back: Option<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Tally) {
        self.asked += other.asked;
        self.admitted += other.admitted;
        self.above += other.above;
        self.let_back += other.let_back;
        self.never += other.never;
        self.first_above = self.first_above.take().or(other.first_above);
        self.first_let_back = self.first_let_back.take().or(other.first_let_back);
    }

    /// How many admissions were beyond the bound, with the first.
    pub(super) fn first_above(&self) -> String {
        described(self.above, self.first_above.as_ref())
    }

    /// How many admissions came too early, with the first.
    pub(super) fn first_let_back(&self) -> String {
        described(self.let_back, self.first_let_back.as_ref())
    }
}

fn described(count: u64, first: Option<&String>) -> String {
    first.map_or_else(|| count.to_string(), |first| format!("{count}, the first: {first}"))
}

/// Asks for keys and keeps their accounts.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub(super) limiter: &'a Limiter,
    pub(super) clock: &'a ManualClock,
    pub(super) prices: Prices,
}

impl Asker<'_> {
    /// So many asks of one key.
    #[inline]
    pub(super) fn turn(&self, key: u64, asks: u64, standing: &mut Standing, tally: &mut Tally) {
        let name = key.to_le_bytes();
        for _ in 0..asks {
            let before = self.clock.now();
            let decision = self.limiter.admit(&name[..]);
            let after = self.clock.now();
            match decision.verdict_in_ticks() {
                Verdict::Allowed { .. } => {
                    tally.admitted += 1;
                    self.admitted(key, standing, tally, (before, after));
                }
                Verdict::Denied { retry_after } => {
                    standing.refused_until = standing.refused_until.max(before.saturating_add(retry_after));
                }
                Verdict::Impossible => tally.never += 1,
            }
        }
        tally.asked += asks;
    }

    fn admitted(
        &self,
        key: u64,
        standing: &mut Standing,
        tally: &mut Tally,
        (before, after): (Timestamp, Timestamp),
    ) {
        if after < standing.refused_until {
            tally.let_back += 1;
            tally
                .first_let_back
                .get_or_insert_with(|| format!("key {key} at {before:?}..{after:?}, {standing:?}"));
        }
        if !standing.account.admit(&self.prices, before, after) {
            tally.above += 1;
            tally
                .first_above
                .get_or_insert_with(|| format!("key {key} at {before:?}..{after:?}, {standing:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate::{MINUTE, SECOND, Zone};

    use super::*;
    use crate::account::Bucket;

    const MINUTELY: Bucket = Bucket::new(5, MINUTE, 5);

    /// Asks seven times of one key under a limit, as if it were five per minute; twelve seconds later again.
    fn turns(limit: &Limiter, clock: &ManualClock) -> Tally {
        let asker = Asker { limiter: limit, clock, prices: MINUTELY.prices() };
        let (mut standing, mut tally) = (Standing::default(), Tally::default());
        asker.turn(1, 7, &mut standing, &mut tally);
        clock.advance(12 * SECOND);
        asker.turn(1, 7, &mut standing, &mut tally);
        tally
    }

    fn limiter(bucket: Bucket) -> (Limiter, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new());
        clock.advance(MINUTE);
        (Limiter::on(&Zone::with_clock(4096, clock.clone()), "", bucket.limit()), clock)
    }

    #[test]
    fn a_key_within_its_bound_is_accused_of_nothing() {
        let (limiter, clock) = limiter(MINUTELY);
        let tally = turns(&limiter, &clock);
        assert_eq!((tally.asked, tally.admitted, tally.above, tally.let_back), (14, 6, 0, 0));
    }

    #[test]
    fn a_key_that_is_admitted_more_is_seen() {
        let (limiter, clock) = limiter(Bucket::new(6, MINUTE, 6));
        let tally = turns(&limiter, &clock);
        assert_eq!((tally.admitted, tally.above), (7, 2));
        assert!(tally.first_above().starts_with("2, the first: key 1"), "{}", tally.first_above());
    }

    #[test]
    fn a_key_that_is_forgotten_while_refused_is_seen() {
        let (limiter, clock) = limiter(MINUTELY);
        let asker = Asker { limiter: &limiter, clock: &clock, prices: MINUTELY.prices() };
        let (mut standing, mut tally) = (Standing::default(), Tally::default());
        asker.turn(1, 7, &mut standing, &mut tally);
        limiter.reset(&1_u64.to_le_bytes()[..]);
        asker.turn(1, 1, &mut standing, &mut tally);
        assert_eq!((tally.above, tally.let_back), (1, 1));
    }
}
