//! Regression tests of interleavings that once admitted too much, one interleaving each.
//!
//! ```text
//!   reading 0, 1, 2 ...   the clock runs an action of another caller before this reading
//! ```
//!
//! A decision reads the clock between its reads and its write of cells. An action before a reading is therefore another
//! thread that is faster at exactly that step. Each test repeats a scenario for every reading, and then counts what one
//! key was admitted.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cell::{Content, Fingerprint, Kind};
use super::change::Take;
use super::core::CellOp;
use super::table::BUCKET;
use super::*;
use crate::limit::AlgorithmParams;
use crate::store::bound::BoundLimit;
use crate::store::state_key::Namespace;
use crate::{
    Adjusted, Ask, Cost, Decision, HOUR, Key, Limiter, MILLISECOND, ManualClock, SECOND, Subject, Ticks,
    Timestamp,
};
use crate::{admit_all, ask};

/// A clock that runs an action before one of its readings.
struct Hook {
    /// The time, which only the action and the test move.
    clock: ManualClock,
    /// The number of readings before the one that runs the action.
    readings_left: AtomicUsize,
    /// The action, which runs once.
    action: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Hook {
    /// Creates a clock an hour after its epoch, without an action.
    fn new() -> Arc<Hook> {
        let clock = ManualClock::new();
        clock.advance(HOUR);
        Arc::new(Hook { clock, readings_left: AtomicUsize::new(usize::MAX), action: Mutex::new(None) })
    }

    /// Sets the action, to be run before the reading with this number, counted from now on.
    fn arm(&self, reading: usize, action: impl FnOnce() + Send + 'static) {
        *self.action.lock().expect("no thread panics") = Some(Box::new(action));
        self.readings_left.store(reading, Ordering::SeqCst);
    }

    /// Disarms the hook. Returns true if the action has run.
    fn disarm(&self) -> bool {
        self.action.lock().expect("no thread panics").take().is_none()
    }
}

impl Clock for Hook {
    fn now(&self) -> Timestamp {
        if self.readings_left.fetch_sub(1, Ordering::SeqCst) == 0 {
            let action = self.action.lock().expect("no thread panics").take();
            action.into_iter().for_each(|action| action());
        }
        self.clock.now()
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Hook")
    }
}

/// The times at which one key was admitted.
#[derive(Clone, Default)]
struct AdmittedTimes(Arc<Mutex<Vec<Timestamp>>>);

impl AdmittedTimes {
    /// Asks once, and records the time if it was allowed.
    fn admit(&self, limiter: &Limiter, key: u32, hook: &Hook) {
        if limiter.admit(key).is_allowed() {
            self.0.lock().expect("no thread panics").push(hook.clock.now());
        }
    }

    /// Returns true if in every interval no more than the burst and the refill were admitted.
    fn is_within(&self, burst: u64, interval: std::time::Duration) -> bool {
        let passed = self.0.lock().expect("no thread panics");
        (0..passed.len()).all(|from| {
            passed[from..].iter().zip(1..).all(|(at, count)| {
                let came_back = at.since(passed[from]).get() / Ticks::saturating_from(interval).get();
                count <= burst + came_back
            })
        })
    }
}

/// An undo once subtracted its take from a debt that time had repaid meanwhile. The caller pauses for 900 ms at each
/// reading while another caller takes from the same key.
///
/// ```text
///   limit     1/s burst 2 for the user, 1/h for "z", which is asked twice and denies the second time
///   caller    take from the user | pause 900 ms | denied by "z" | undo the take
///   other                        | take from the user
///   bound     in every interval: 2 + the seconds in it
/// ```
#[test]
fn an_undo_after_a_pause_forgives_only_what_is_still_owed() {
    for reading in (0..40).step_by(if cfg!(miri) { 9 } else { 1 }) {
        let (hook, passed) = (Hook::new(), AdmittedTimes::default());
        let zone = Zone::with_clock(1 << 16, hook.clone());
        let user = Limiter::on(&zone, "user", Limit::per_second(1).burst(2));
        let once = Limiter::on(&zone, "once", Limit::per_hour(1));
        let (other, by, inner) = (user.clone(), passed.clone(), hook.clone());
        hook.arm(reading, move || {
            inner.clock.advance(900 * MILLISECOND);
            by.admit(&other, 1, &inner);
        });
        // The second "z" is always denied after the first: the user's take is undone.
        assert!(!admit_all([user.ask(1_u32), once.ask("z"), once.ask("z")]).is_allowed());
        if !hook.disarm() {
            break;
        }
        for _ in 0..if cfg!(miri) { 4 } else { 400 } {
            passed.admit(&user, 1, &hook);
            hook.clock.advance(10 * MILLISECOND);
        }
        assert!(passed.is_within(2, SECOND), "reading {reading}");
    }
}

/// In a zone without free cells, an undone take of a shared cell must be given back once, even if another key has
/// charged the cell between the take and the undo.
///
/// ```text
///   zone      all cells taken by keys of 300 ms, so "user" shares a cell
///   limit     one per 5 s, burst 4; two are taken before
///   other     a take of the same key, 450 ms later, between the take and its undo
///   bound     4 in all: no debt of five seconds is repaid meanwhile
/// ```
#[test]
fn what_is_shared_is_given_back_once() {
    let all = (0..4_u32).flat_map(|key| (0..80).map(move |reading| (key, reading)));
    for (key, reading) in all.step_by(if cfg!(miri) { 97 } else { 1 }) {
        let (hook, passed) = (Hook::new(), AdmittedTimes::default());
        let zone = Zone::with_clock(0, hook.clone());
        let before = Limiter::on(&zone, "before", Limit::token_bucket(1, 300 * MILLISECOND));
        assert!((0..2 * BUCKET as u32).all(|key| before.admit(key).is_allowed()));
        let user = Limiter::on(&zone, "user", Limit::token_bucket(1, 5 * SECOND).burst(4));
        let other_zone = Zone::with_clock(1 << 12, hook.clone());
        let once = Limiter::on(&other_zone, "once", Limit::per_hour(1));
        (0..2).for_each(|_| passed.admit(&user, key, &hook));
        let (other, by, inner) = (user.clone(), passed.clone(), hook.clone());
        hook.arm(reading, move || {
            inner.clock.advance(450 * MILLISECOND);
            by.admit(&other, key, &inner);
        });
        assert!(!admit_all([user.ask(key), once.ask("z"), once.ask("z")]).is_allowed());
        if hook.disarm() {
            (0..8).for_each(|_| passed.admit(&user, key, &hook));
            assert!(passed.is_within(4, 5 * SECOND), "key {key}, reading {reading}");
        }
    }
}

/// A batch decides as of one reading. If its thread is suspended between two asks, a take by another caller must still
/// count against the later ones, for a short pause (40 ms) and a long one (450 ms).
///
/// ```text
///   batch     key, key + 1, key, key + 2, key as of one instant
///   other     a take of the key | pause | a take of the key, between two asks
///   bound     4 in all: the batch and the other caller together
/// ```
#[test]
fn a_batch_that_is_paused_between_its_asks_admits_no_key_too_much() {
    let all = (0..4_u32).flat_map(|key| (0..60).map(move |reading| (key, reading)));
    for ((key, reading), slept) in
        all.flat_map(|one| [40, 450].map(|ms| (one, ms))).step_by(if cfg!(miri) { 97 } else { 1 })
    {
        let (hook, passed) = (Hook::new(), AdmittedTimes::default());
        let zone = Zone::with_clock(0, hook.clone());
        let before = Limiter::on(&zone, "before", Limit::token_bucket(1, 300 * MILLISECOND));
        assert!((0..2 * BUCKET as u32).all(|key| before.admit(key).is_allowed()));
        let user = Limiter::on(&zone, "user", Limit::token_bucket(1, 5 * SECOND).burst(4));
        let (other, by, inner) = (user.clone(), passed.clone(), hook.clone());
        hook.arm(reading, move || {
            by.admit(&other, key, &inner);
            inner.clock.advance(slept * MILLISECOND);
            by.admit(&other, key, &inner);
        });
        let batch = user.admit_each([key, key + 1, key, key + 2, key]).step_by(2);
        let batched = batch.filter(Decision::is_allowed).count();
        if hook.disarm() {
            (0..8).for_each(|_| passed.admit(&user, key, &hook));
            let all = batched + passed.0.lock().expect("no thread panics").len();
            assert!(all <= 4, "key {key}, reading {reading}, {slept} ms: {all} passed");
        }
    }
}

/// A cell of `ana` becomes shared after her take. Her receipt is for a cell of her own, so nothing may be given back
/// from the shared cell, whose debt is then that of `bob` as well.
///
/// ```text
///   ana       buckets 0 and 1, has taken 3 in a cell of her own
///   bob       buckets 0 and 2, shares a cell of bucket 0, has taken 3
///   nick      buckets 1 and 2, finds no free cell and makes ana's cell shared
/// ```
#[test]
fn a_take_of_ones_own_is_not_given_back_out_of_what_others_share() {
    let clock = Arc::new(ManualClock::new());
    clock.advance(HOUR);
    let zone = Zone::with_clock(3 * BUCKET_BYTES, clock.clone());
    let table = &zone.inner.core.table;
    let limit = Limit::token_bucket(1, 5 * SECOND).burst(4);
    let limiter = Limiter::on(&zone, "", limit);
    const TINY: Limit = Limit::per_second(1000).burst(1);
    let tiny = Limiter::on(&zone, "tiny", TINY);
    let in_buckets = |namespace: &str, limit: &Limit, buckets: (usize, usize)| {
        let namespace = Namespace::new(namespace);
        let prefix = StatePrefix::new(zone.limits().seed(), &limit.terms().pack(), namespace.bytes());
        let is_there = |name: &String| prefix.spot(table, name.as_str()).buckets() == buckets;
        (0..2000).map(|name| format!("k{name}")).find(is_there).expect("one of so many")
    };
    let (ana, bob) = (in_buckets("", &limit, (0, 1)), in_buckets("", &limit, (0, 2)));
    let nick = in_buckets("tiny", &TINY, (1, 2));
    // The first bucket has shared cells with little debt, the second has one free cell, and all other cells have much
    // debt.
    let after = |span| clock.now().saturating_add(Ticks::saturating_from(span)).ticks();
    for (bucket, index) in (0..3).flat_map(|bucket| (0..BUCKET).map(move |index| (bucket, index))) {
        let stranger = Fingerprint::new((bucket * BUCKET + index + 1) as u64 * 64);
        let content = match (bucket, index) {
            (0, 0) => Content::shared(after(SECOND)),
            (1, 7) => continue,
            _ => Content::own(stranger, Kind::Own, after(HOUR / 2)),
        };
        assert!(table.put(bucket, index, content));
    }
    let ana = Key::new(ana.as_str());
    let (taken, receipt) = zone.take(Subject::new("", &ana, &limit), Ask::new(Cost::of(3)));
    assert!(taken.is_allowed());
    assert!(limiter.admit(ask(bob.as_str()).cost(3)).is_allowed(), "bob shares");
    assert!(!tiny.admit(nick.as_str()).is_allowed(), "he makes ana's cell shared");
    let receipt = receipt.expect("she has taken");
    assert_eq!(zone.give_back(Subject::new("", &ana, &limit), receipt), Adjusted::Capped);
    assert!(!limiter.admit(ask(bob.as_str()).cost(3)).is_allowed(), "bob passed six of a burst of four");
}

/// A decision as of a reading that is 20 s old, while the key has a late charge, must not shorten the debt of the
/// charge.
#[test]
fn a_clock_reading_from_before_a_pause_forgives_no_debt() {
    let clock = Arc::new(ManualClock::new());
    clock.advance(HOUR);
    let zone = Zone::with_clock(1 << 12, clock.clone());
    let limit = Limit::per_second(1).burst(5);
    let limiter = Limiter::on(&zone, "", limit);
    let before = clock.now();
    clock.advance(20 * SECOND);
    assert_eq!(limiter.charge(ask("ana").cost(10)), Adjusted::Whole);
    let bound = BoundLimit::of_rule(zone.limits(), "", &limit, before);
    let spot = bound.name().prefix.spot(&zone.inner.core.table, "ana");
    let AlgorithmParams::TokenBucket(terms) = limit.terms() else { unreachable!("it is one") };
    let who =
        CellOp { spot: &spot, terms, limit: &bound, key: None, when_full: WhenFull::Share, at: Some(before) };
    assert!(!zone.inner.core.settle(&who, &Take(Ask::ONE)).0.is_allowed());
    assert_eq!(limiter.peek("ana").reset_after(), 10 * SECOND);
}

/// A cell written while the rule forgot its keys gets the new kind with the next write, so a crowd of new keys does not
/// evict it.
#[test]
fn a_rule_that_no_longer_forgets_keeps_its_cells() {
    let clock = Arc::new(ManualClock::new());
    clock.advance(HOUR);
    let zone = Zone::with_clock(0, clock);
    let limiter = Limiter::builder(Limit::per_minute(2)).on(&zone, "").when_full(WhenFull::Forget).build();
    assert!(limiter.admit("ana").is_allowed());
    limiter.set_when_full(WhenFull::Share);
    assert!(limiter.admit("ana").is_allowed());
    assert!((0..40_u32).any(|key| !limiter.admit(key).is_allowed()));
    assert_eq!(zone.counts().forgotten, 0);
    assert!(!limiter.admit("ana").is_allowed(), "she was forgotten under a rule that shares");
}
