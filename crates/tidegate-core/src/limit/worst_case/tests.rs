//! All sequences of asks on limits of a few ticks, and many random ones with a max wait.

use std::collections::HashMap;
use std::num::NonZeroU64;

use super::*;
use crate::algorithm::{
    FixedWindow, LeakyBucket, PacerParams, SlidingLog, SlidingWindow, State, TokenBucket,
};
use crate::limit::{Alignment, DelayAfter, LimitBuilder, Pay, Problem, WindowMode};
use crate::{Ask, Cost, SECOND, Timestamp};

/// Returns a limit of so few ticks that no text can express it.
fn tiny<T>(kind: fn(T) -> AlgorithmParams, terms: Result<T, Problem>) -> Limit {
    let terms = kind(terms.expect("numbers that hold"));
    Limit { terms, draft: LimitBuilder::new(terms.algorithm(), 1, SECOND) }
}

fn every(ticks: u64) -> NonZeroU64 {
    NonZeroU64::new(ticks).expect("an interval")
}

fn bucket(interval: u64, burst: u64) -> Limit {
    tiny(AlgorithmParams::TokenBucket, TokenBucket::new(every(interval), burst, 3))
}

fn queue(interval: u64, queue: u64, delay_after: DelayAfter) -> Limit {
    tiny(AlgorithmParams::LeakyBucket, LeakyBucket::new(every(interval), queue, delay_after, None))
}

fn fixed(amount: u64, period: u64, alignment: Alignment) -> Limit {
    tiny(AlgorithmParams::FixedWindow, FixedWindow::new(amount, Ticks::new(period), alignment, 1))
}

fn log(amount: u64, period: u64, count_denied: bool) -> Limit {
    tiny(AlgorithmParams::SlidingLog, SlidingLog::new(amount, Ticks::new(period), count_denied))
}

fn sliding(amount: u64, width: u64, slots: u64, mode: WindowMode) -> Limit {
    tiny(
        AlgorithmParams::SlidingWindow,
        SlidingWindow::new(amount, Ticks::new(width * slots), slots, mode, 1),
    )
}

fn steady(interval: u64, savings: u64, pay: Pay) -> Limit {
    tiny(AlgorithmParams::Pacer, PacerParams::steady(Some(every(interval)), Ticks::new(savings), pay))
}

fn warming(interval: u64, length: u64, cold_factor: u64, pay: Pay) -> Limit {
    tiny(
        AlgorithmParams::Pacer,
        PacerParams::warming_up(Some(every(interval)), Ticks::new(length), cold_factor, pay),
    )
}

/// The reachable states of one key, each with the most that has passed on the way to it.
#[derive(Clone)]
struct Ways(HashMap<String, (State, u64)>);

impl Ways {
    fn new() -> Ways {
        let mut ways = Ways(HashMap::new());
        ways.add(State::default(), 0);
        ways
    }

    fn add(&mut self, state: State, passed: u64) {
        let most = &mut self.0.entry(format!("{state:?}")).or_insert((state, 0)).1;
        *most = passed.max(*most);
    }

    /// Asks for one unit any number of times at this instant, until it is denied.
    fn ask(&self, limit: &Limit, now: u64, max_wait: Ticks) -> Ways {
        let mut ways = self.clone();
        for (state, passed) in self.0.values() {
            let (mut state, mut passed) = (state.clone(), *passed);
            let ask = Ask { max_wait, ..Ask::ONE };
            while limit.decide(&mut state, Timestamp::from_ticks(now), ask).is_allowed() {
                passed += 1;
                ways.add(state.clone(), passed);
            }
            ways.add(state, passed);
        }
        ways
    }

    /// Returns the same states with the counts reset to zero.
    fn counted_anew(&self) -> Ways {
        Ways(self.0.iter().map(|(name, (state, _))| (name.clone(), (state.clone(), 0))).collect())
    }

    fn most(&self) -> u64 {
        self.0.values().map(|(_, passed)| *passed).max().unwrap_or(0)
    }
}

/// Returns, for each length up to `longest` ticks, the most asks of 1 that pass within a closed interval that begins
/// before `starts`, over all sequences of asks before and in it.
fn most_of_all_ways(limit: &Limit, starts: u64, longest: u64, max_wait: Ticks) -> Vec<u64> {
    let mut most = vec![0; longest as usize + 1];
    let mut before = Ways::new();
    for start in 0..starts {
        let mut within = before.counted_anew();
        for (now, most) in (start..).zip(&mut most) {
            within = within.ask(limit, now, max_wait);
            *most = within.most().max(*most);
        }
        before = before.ask(limit, start, max_wait);
    }
    most
}

/// Returns the most asks of 1 that may pass, for each length.
fn promised(limit: &Limit, longest: u64) -> Vec<u64> {
    let most = |span: u64| match limit.most_within(Ticks::new(span)) {
        WorstCase::Units(units) => units,
        WorstCase::UnitsAndOneGrant(units) => units + 1,
        other => panic!("{other:?}"),
    };
    (0..=longest).map(most).collect()
}

/// Asserts that the bound is never exceeded, and is reached.
fn assert_reached(limit: &Limit, starts: u64, longest: u64, max_wait: Ticks) {
    let most = most_of_all_ways(limit, starts, longest, max_wait);
    assert_eq!(most, promised(limit, longest), "{:?}", limit.terms);
}

#[test]
#[cfg_attr(miri, ignore = "too many ways for miri")]
fn the_most_of_a_bucket_is_reached_and_never_exceeded() {
    for (interval, burst) in [(1, 1), (3, 1), (3, 2), (4, 3), (5, 2)] {
        assert_reached(&bucket(interval, burst), 3 * interval, 4 * interval + 1, Ticks::ZERO);
        assert_reached(&queue(interval, burst, DelayAfter::All), 3 * interval, 4 * interval + 1, Ticks::ZERO);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many ways for miri")]
fn the_most_of_a_queue_is_what_it_accepts() {
    for (interval, places, delay_after) in [(3, 1, 0), (3, 2, 1), (4, 2, 0)] {
        let limit = queue(interval, places, DelayAfter::Units(delay_after));
        assert_reached(&limit, 3 * interval, 4 * interval + 1, Ticks::MAX);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many ways for miri")]
fn the_most_of_fixed_windows_is_reached_and_never_exceeded() {
    for alignment in [Alignment::Epoch, Alignment::FirstHit] {
        for (amount, period) in [(1, 1), (1, 4), (2, 3), (3, 5), (4, 4)] {
            assert_reached(&fixed(amount, period, alignment), 3 * period, 4 * period + 1, Ticks::ZERO);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many ways for miri")]
fn the_most_of_a_log_is_reached_and_never_exceeded() {
    for (amount, period, count_denied) in
        [(1, 1, false), (1, 3, false), (2, 4, false), (3, 3, false), (1, 4, true), (2, 4, true)]
    {
        assert_reached(&log(amount, period, count_denied), 2 * period, 3 * period + 1, Ticks::ZERO);
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many ways for miri")]
fn the_most_of_strict_slots_is_reached_and_never_exceeded() {
    for (amount, width, slots) in [(1, 1, 1), (2, 3, 1), (2, 1, 4), (2, 2, 3), (3, 2, 2), (1, 3, 3)] {
        let period = width * (slots + 1);
        assert_reached(
            &sliding(amount, width, slots, WindowMode::Strict),
            2 * period,
            3 * period + 1,
            Ticks::ZERO,
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many ways for miri")]
fn the_most_of_an_estimate_is_reached_and_never_exceeded() {
    for (amount, period) in [(1, 1), (1, 3), (2, 2), (2, 5), (3, 4), (3, 7), (4, 4), (5, 8)] {
        assert_reached(
            &sliding(amount, period, 1, WindowMode::Estimate),
            3 * period,
            5 * period + 1,
            Ticks::ZERO,
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many ways for miri")]
fn the_most_of_a_pacer_is_reached_and_never_exceeded() {
    for (interval, savings) in [(3, 0), (3, 2), (3, 3), (3, 7), (4, 8)] {
        assert_reached(&steady(interval, savings, Pay::Next), 4 * interval, 4 * interval, Ticks::ZERO);
        if savings >= interval {
            assert_reached(&steady(interval, savings, Pay::Own), 4 * interval, 4 * interval, Ticks::ZERO);
        }
    }
    for (interval, length, cold_factor) in [(2, 3, 1), (2, 4, 2), (3, 5, 3)] {
        assert_reached(&warming(interval, length, cold_factor, Pay::Next), 24, 3 * interval + 1, Ticks::ZERO);
    }
}

/// Returns the actions of callers with a max wait, at the times that they were promised.
fn acts(limit: &Limit, seed: u64, costs: &[u64]) -> Vec<(u64, u64)> {
    let mut random = seed;
    let mut up_to = |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % (most + 1)
    };
    let mut state = State::default();
    let (mut now, mut acts) = (100, Vec::new());
    for _ in 0..60 {
        now += [0, 0, 1, up_to(9), up_to(40)][up_to(4) as usize];
        let cost = Cost::of(costs[up_to(costs.len() as u64 - 1) as usize]);
        let max_wait = Ticks::new([0, up_to(9), u64::MAX][up_to(2) as usize]);
        let decision = limit.decide(&mut state, Timestamp::from_ticks(now), Ask { cost, max_wait });
        if let crate::Verdict::Allowed { delay } = decision.verdict_in_ticks() {
            acts.push((now + delay.get(), cost.get()));
        }
    }
    acts.sort_unstable();
    acts
}

/// Returns the least remaining quota over all closed intervals; a grant of any size is the largest one.
fn least_slack(limit: &Limit, acts: &[(u64, u64)]) -> u64 {
    let mut least = u64::MAX;
    for (first, (from, _)) in acts.iter().enumerate() {
        let (mut sum, mut largest) = (0, 0);
        for (to, cost) in &acts[first..] {
            sum += cost;
            largest = largest.max(*cost);
            let slack = match limit.most_within(Ticks::new(to - from)) {
                WorstCase::Units(units) => units.checked_sub(sum),
                WorstCase::UnitsAndOneGrant(units) => units.checked_sub(sum - largest),
                other => panic!("{other:?}"),
            };
            let too_much = || panic!("{:?}: {sum} between {from} and {to} of {acts:?}", limit.terms);
            least = least.min(slack.unwrap_or_else(too_much));
        }
    }
    least
}

#[test]
#[cfg_attr(miri, ignore = "too many ways for miri")]
fn neither_max_wait_nor_cost_exceeds_the_worst_case() {
    let limits = [
        bucket(5, 3),
        bucket(7, 1),
        queue(5, 0, DelayAfter::Units(0)),
        queue(5, 3, DelayAfter::Units(0)),
        queue(5, 4, DelayAfter::Units(2)),
        queue(5, 4, DelayAfter::All),
        steady(5, 0, Pay::Next),
        steady(5, 12, Pay::Next),
        steady(5, 0, Pay::Own),
        steady(5, 4, Pay::Own),
        steady(5, 12, Pay::Own),
        warming(3, 20, 1, Pay::Next),
        warming(3, 20, 3, Pay::Next),
        warming(3, 20, 3, Pay::Own),
    ];
    for limit in limits {
        for costs in [&[1][..], &[1, 2, 3, 4, 5], &[1, 1, 1, 40]] {
            let slack = (0..2000).map(|seed| least_slack(&limit, &acts(&limit, seed, costs))).min();
            // A queue spaces asks that cost 1, and no bucket admits one that costs 40.
            let is_spaced = matches!(limit.terms, AlgorithmParams::LeakyBucket(_)) && !costs.contains(&2);
            assert!(is_spaced || slack == Some(0), "{:?}: {slack:?} to {costs:?}", limit.terms);
        }
    }
}

#[test]
fn the_table_is_true_of_limits_as_they_are_written() {
    for (text, expected) in [
        ("100/s burst 50", [50, 150, 6050]),
        ("3/s", [3, 5, 182]),
        ("100/s queue 150 leaky-bucket", [151, 251, 6151]),
        ("100/s fixed-window", [100, 200, 6100]),
        ("100/s fixed-window align first-hit", [100, 200, 6100]),
        ("100/s sliding-log", [100, 200, 6100]),
        ("100/s sliding-window", [100, 100, 5700]),
        ("100/s sliding-window mode estimate", [100, 199, 6040]),
    ] {
        let limit: Limit = text.parse().unwrap();
        let most = [Duration::ZERO, SECOND, 60 * SECOND].map(|span| limit.worst_case(span));
        assert_eq!(most, expected.map(WorstCase::Units), "{text}");
    }
    for (text, expected) in [
        ("100/s pacer", [100, 200, 6100]),
        ("100/s pacer pay self", [99, 199, 6099]),
        ("100/s pacer burst 0s pay self", [0, 100, 6000]),
        ("100/s pacer warm-up 3s", [0, 100, 6000]),
    ] {
        let limit: Limit = text.parse().unwrap();
        let most = [Duration::ZERO, SECOND, 60 * SECOND].map(|span| limit.worst_case(span));
        assert_eq!(most, expected.map(WorstCase::UnitsAndOneGrant), "{text}");
    }
}

#[test]
fn a_nanosecond_more_is_another_window() {
    let fixed: Limit = "100/s fixed-window".parse().unwrap();
    let log: Limit = "100/s sliding-log".parse().unwrap();
    let strict: Limit = "100/s slots 10 sliding-window".parse().unwrap();
    let nanosecond = Duration::from_nanos(1);
    assert_eq!(fixed.worst_case(nanosecond), WorstCase::Units(200));
    assert_eq!(fixed.worst_case(SECOND + nanosecond), WorstCase::Units(300));
    assert_eq!(log.worst_case(SECOND - nanosecond), WorstCase::Units(100));
    assert_eq!(strict.worst_case(SECOND), WorstCase::Units(100));
    assert_eq!(strict.worst_case(SECOND + nanosecond), WorstCase::Units(200));
}

#[test]
fn the_number_of_calls_that_begin_and_end_has_no_bound() {
    let limit = Limit::concurrency(2, SECOND);
    let mut state = State::default();
    for _ in 0..10 {
        let permit = limit.decide(&mut state, Timestamp::EPOCH, Ask::ONE).permit().unwrap();
        assert!(limit.release(&mut state, Timestamp::EPOCH, permit));
    }
    for span in [Duration::ZERO, SECOND, Duration::MAX] {
        assert_eq!(limit.worst_case(span), WorstCase::InFlight(2));
        let unlimited: Limit = "unlimited pacer".parse().unwrap();
        assert_eq!(unlimited.worst_case(span), WorstCase::Unbounded);
    }
}

#[test]
fn the_largest_numbers_and_the_longest_time_have_a_most_too() {
    for text in [
        "10000000/s burst 3153600000000000",
        "10000000/s queue 3153599999999999 leaky-bucket",
        "3153600000000000/3650d fixed-window",
        "3153600000000000/3650d fixed-window align first-hit",
        "1048576/3650d sliding-log",
        "1/1us sliding-log",
        "3153600000000000/3650d sliding-window slots 1024",
        "3153600000000000/3650d sliding-window mode estimate",
        "1/1us sliding-window mode estimate",
        "10000000/s pacer burst 3650d",
        "10000000/s pacer burst 3650d pay self",
        "1/1h pacer warm-up 30d cold-factor 100",
    ] {
        let limit: Limit = text.parse().expect(text);
        let spans = [0, 1, 1 << 20, 1 << 40, u64::MAX / 16 - 1, u64::MAX / 16].map(Duration::from_nanos);
        let spans = spans.into_iter().chain([Duration::MAX]);
        let most: Vec<u64> = spans
            .map(|span| match limit.worst_case(span) {
                WorstCase::Units(units) | WorstCase::UnitsAndOneGrant(units) => units,
                other => panic!("{text}: {other:?}"),
            })
            .collect();
        assert!(most.is_sorted(), "{text}: {most:?}");
        assert!(most[most.len() - 1] > 0, "{text}: {most:?}");
    }
    assert_eq!(saturated(u128::MAX), u64::MAX);
}
