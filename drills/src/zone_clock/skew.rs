//! Readers of one clock that are up to a second apart, taking turns.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use conformance::random::Random;
use conformance::ticks;
use tidegate::{Clock, HOUR, Limiter, ManualClock, SECOND, Ticks, Timestamp, Zone};

use super::judge::Judged;
use super::limits::{ALL, OUT_OF_ORDER};
use super::member::{Member, Moment};

/// How far the slowest and the fastest are apart, when they are.
pub(super) const APART: Duration = SECOND;
pub(super) const READERS: u64 = 4;

/// By how much a reader is ahead of the slowest, of whom the fastest is so far ahead.
pub(super) fn ahead(reader: u64, apart: Duration) -> Ticks {
    ticks(Ticks::saturating_from(apart).get() * reader / (READERS - 1))
}

/// One round of readers that are as far apart as readings may be out of order.
pub(super) fn slightly(seed: u64, size: usize, steps: u64, judged: &mut Judged) {
    round((seed, OUT_OF_ORDER), size, steps, judged);
}

/// One round of readers that are a second apart.
pub(super) fn widely(seed: u64, size: usize, steps: u64, judged: &mut Judged) {
    round((seed, APART), size, steps, judged);
}

/// So many steps of a new zone of this size.
fn round((seed, apart): (u64, Duration), size: usize, steps: u64, judged: &mut Judged) {
    let mut random = Random::new(seed);
    let clock = Arc::new(ManualClock::new());
    clock.advance(HOUR);
    let zone = Zone::with_clock(size, Arc::new(Disagreeing(clock.clone())));
    let bounded = ALL.into_iter().filter(|terms| terms.outlasts(apart));
    let limits: Vec<_> =
        bounded.map(|terms| (terms, Limiter::on(&zone, &terms.limit().to_string(), terms.limit()))).collect();
    let count = random.between(10, super::most_subjects(size));
    let mut members: Vec<_> = (0..count)
        .map(|key| {
            let (terms, limiter) = &limits[random.between(0, limits.len() as u64 - 1) as usize];
            Member::new(*terms, limiter, key).read_apart(apart)
        })
        .collect();
    for _ in 0..steps {
        if random.percent(20) {
            clock.advance(ticks(random.sized(0, 1 << 36)).to_duration());
            continue;
        }
        let by = ahead(random.between(0, READERS - 1), apart);
        read_ahead(by);
        let member = &mut members[random.between(0, count - 1) as usize];
        member.may_be_forgotten(clock.now().saturating_add(ahead(READERS - 1, apart)));
        let at = Moment { reading: clock.now().saturating_add(by), passed: None };
        let cost = random.between(1, 3).min(member.terms.burst());
        for _ in 0..random.sized(1, 16) {
            if !member.ask(cost, Ticks::ZERO, at, judged).is_allowed() {
                break;
            }
        }
    }
    read_ahead(Ticks::ZERO);
    let subjects = members.iter().filter(|member| member.was_admitted).count();
    judged.end_round(&zone.counts(), subjects as u64);
}

thread_local! {
    static AHEAD: Cell<Ticks> = const { Cell::new(Ticks::ZERO) };
}

/// Says by how much this thread reads too late a time from now on.
pub(super) fn read_ahead(by: Ticks) {
    AHEAD.set(by);
}

/// A clock set by hand, as this thread reads it.
#[derive(Debug)]
pub(super) struct Disagreeing(pub(super) Arc<ManualClock>);

impl Clock for Disagreeing {
    fn now(&self) -> Timestamp {
        self.0.now().saturating_add(AHEAD.get())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tidegate::SECOND;

    use super::*;

    #[test]
    fn each_thread_reads_its_own_time() {
        let clock = Disagreeing(Arc::new(ManualClock::new()));
        clock.0.advance(SECOND);
        read_ahead(Ticks::saturating_from(SECOND));
        assert_eq!(clock.now(), Timestamp::after_epoch(2 * SECOND));
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(clock.now(), Timestamp::after_epoch(SECOND)));
        });
    }
}
