//! Tests that the takes that are kept obey the limit by themselves, whatever was refunded.

use std::sync::Arc;
use std::time::Duration;

use conformance::oracle::{self, Admitted, Oracle};
use conformance::promise::{KINDS, Promise};
use conformance::random::Random;
use tidegate::{Adjusted, Clock, Limit, Limiter, ManualClock, TrackedTake, Verdict, Zone};

use super::{Arm, IN_PROCESS, Place, clock, zone_in_file};

const OPERATIONS: u64 = 60;

/// The numbers of operations in the histories.
#[derive(Debug, Default)]
struct Met {
    takes: u64,
    denials: u64,
    refunds: u64,
    whole: u64,
    resets: u64,
}

/// One history of takes and refunds, and the list of kept takes.
struct History {
    arm: Arm,
    clock: Arc<ManualClock>,
    random: Random,
    promise: Promise,
    oracle: Box<dyn Oracle>,
    kept: Vec<Admitted>,
    /// The open takes, each with its index among the kept ones; `None` if its key was reset since.
    open: Vec<(Option<usize>, TrackedTake)>,
    met: Met,
}

impl History {
    fn new(place: &Where, kind: &str, seed: u64) -> History {
        let mut random = Random::new(seed);
        let promise = match Promise::modest(kind, &mut random) {
            // A take that is refunded may still have opened such a window.
            Promise::FixedWindow { amount, period, max_debt, .. } => {
                Promise::FixedWindow { amount, period, first_hit: false, max_debt }
            }
            other => other,
        };
        let (arm, clock) = place.arm(promise.limit(), seed);
        let oracle = oracle::of(&promise);
        History {
            arm,
            clock,
            random,
            promise,
            oracle,
            kept: Vec::new(),
            open: Vec::new(),
            met: Met::default(),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.between(0, 99) {
            0..45 => self.take(true),
            45..55 => self.take(false),
            55..80 => {
                self.refund();
                Ok(())
            }
            80..84 => {
                self.forget();
                Ok(())
            }
            84 => {
                self.reset();
                Ok(())
            }
            _ => {
                self.advance();
                Ok(())
            }
        }
    }

    fn take(&mut self, is_tracked: bool) -> Result<(), String> {
        let units = self.random.between(1, 3);
        let unit = Duration::from_nanos(self.promise.period() / 16 / 4);
        let max_wait = if self.random.percent(60) { Duration::ZERO } else { unit * 9 };
        let (decision, take) = if is_tracked {
            self.arm.take(units, max_wait)
        } else {
            (self.arm.take_untracked(units, max_wait), None)
        };
        self.met.takes += 1;
        let Verdict::Allowed { delay } = decision.verdict_in_ticks() else {
            self.met.denials += 1;
            return Ok(());
        };
        let (now, delay) = (i128::from(self.clock.now().ticks()), i128::from(delay.get()));
        let kept: Vec<_> = self.kept.iter().copied().filter(|kept| kept.units > 0).collect();
        let least = self.oracle.delay(&kept, now, units.into());
        if least.is_none_or(|least| delay < least) {
            return Err(format!("{units} passed at {now} after {delay}, kept alone {least:?}: {kept:?}"));
        }
        self.open.extend(take.map(|take| (Some(self.kept.len()), take)));
        self.kept.push(Admitted { asked: now, departs: now + delay, units: units.into() });
        self.check_spacing()
    }

    /// Checks, for limits that space every request, that each kept take departs at least the cost of the one before it,
    /// times the interval, later.
    fn check_spacing(&self) -> Result<(), String> {
        let Promise::LeakyBucket { amount, period, delay_after: Some(0), .. } = self.promise else {
            return Ok(());
        };
        let interval = i128::from(period.div_ceil(amount));
        let mut kept: Vec<_> = self.kept.iter().filter(|kept| kept.units > 0).collect();
        kept.sort_by_key(|kept| kept.departs);
        match kept.windows(2).find(|two| two[1].departs < two[0].departs + two[0].units * interval) {
            Some(two) => Err(format!("two leave too close to each other: {two:?}")),
            None => Ok(()),
        }
    }

    /// Refunds some units of some take, perhaps more than remain.
    fn refund(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let chosen = self.random.between(0, self.open.len() as u64 - 1) as usize;
        let units = self.random.between(1, 3);
        let (index, take) = &mut self.open[chosen];
        let left = take.units();
        let adjusted = take.refund_units(units);
        assert_eq!(take.units(), left - units.min(left));
        assert!(adjusted == Adjusted::Capped || units <= left, "more came back than was taken");
        let Some(index) = *index else {
            assert_eq!(adjusted, Adjusted::Capped, "units came back that were forgotten");
            return;
        };
        self.kept[index].units -= i128::from(units.min(left));
        self.met.refunds += 1;
        self.met.whole += u64::from(adjusted == Adjusted::Whole);
    }

    fn forget(&mut self) {
        if !self.open.is_empty() {
            let chosen = self.random.between(0, self.open.len() as u64 - 1) as usize;
            drop(self.open.swap_remove(chosen));
        }
    }

    fn reset(&mut self) {
        self.arm.reset();
        self.kept.clear();
        self.open.iter_mut().for_each(|(index, _)| *index = None);
        self.met.resets += 1;
    }

    fn advance(&mut self) {
        let nanos = self.promise.period() / 16;
        let span = match self.random.between(0, 9) {
            0..3 => nanos / 8,
            3..6 => self.random.between(0, nanos / 2),
            6..9 => self.random.between(0, 2 * nanos),
            _ => self.random.between(0, 20 * nanos),
        };
        self.clock.advance(Duration::from_nanos(span));
    }
}

/// The store of the histories. A file takes a while to create, so all histories share one.
enum Where {
    Alone(Place),
    Together(Zone, Arc<ManualClock>),
}

impl Where {
    fn new(place: Place) -> Where {
        match place {
            Place::File => {
                let clock = clock();
                Where::Together(zone_in_file(clock.clone()), clock)
            }
            _ => Where::Alone(place),
        }
    }

    fn arm(&self, limit: Limit, seed: u64) -> (Arm, Arc<ManualClock>) {
        match self {
            Where::Alone(place) => {
                let clock = clock();
                (Arm::new(*place, limit, &clock), clock)
            }
            Where::Together(zone, clock) => {
                (Arm::Keyed(Limiter::on(zone, &seed.to_string(), limit)), clock.clone())
            }
        }
    }
}

fn hold(place: Place, histories: u64, least_whole: u64) {
    let seed = Random::seed_from_environment();
    // The price of a warming pacer depends on earlier takes, and a permit is released, not refunded.
    let kinds = KINDS.into_iter().filter(|kind| *kind != "pacer-warm-up" && *kind != "concurrency");
    for kind in kinds {
        let (mut met, place_of_all) = (Met::default(), Where::new(place));
        // The clock of a file goes on from history to history, and years would soon reach the end of time.
        let goes_on = matches!(place, Place::File) && kind == "calendar";
        let histories = if goes_on { histories.div_ceil(50) } else { histories };
        for number in 0..histories {
            let mut history =
                History::new(&place_of_all, kind, Random::new(seed.wrapping_add(number)).number());
            for _ in 0..OPERATIONS {
                if let Err(broken) = history.step() {
                    let promise = history.promise;
                    panic!("{kind} ({place:?}), history {number} of seed {seed}, {promise:?}: {broken}");
                }
            }
            met.takes += history.met.takes;
            met.denials += history.met.denials;
            met.refunds += history.met.refunds;
            met.whole += history.met.whole;
            met.resets += history.met.resets;
        }
        println!("refunds {kind} ({place:?}): {histories} histories, {met:?}, 0 broken (seed {seed})");
        assert!(met.denials > met.takes / 10 && met.refunds > met.takes / 10, "{kind}: {met:?}");
        assert!(met.resets > 0 || goes_on, "{kind}: {met:?}");
        assert!(100 * met.whole > least_whole * met.refunds, "{kind}: little came back, {met:?}");
    }
}

#[test]
fn kept_takes_obey_the_limit_on_a_zone() {
    hold(IN_PROCESS[0], crate::traces(5000), 10);
}

#[test]
fn kept_takes_obey_the_limit_on_a_map() {
    hold(IN_PROCESS[1], crate::traces(5000), 10);
}

#[test]
fn kept_takes_obey_the_limit_of_a_single() {
    hold(IN_PROCESS[2], crate::traces(5000), 10);
}

#[test]
fn kept_takes_obey_the_limit_where_processes_share_a_file() {
    hold(Place::File, crate::traces(200).min(200), 2);
}
