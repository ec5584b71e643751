//! The total that all shares admit together, for random limits and numbers of nodes.

use proptest::prelude::*;

use super::*;
use crate::limit::{Alignment, Pay, WindowMode, WorstCase};

const LONGEST_MICROS: u64 = 3650 * 24 * 3600 * 1_000_000;

fn nodes(count: u64) -> NonZeroU64 {
    NonZeroU64::new(count).expect("a node")
}

fn share(text: &str, count: u64) -> String {
    let limit: Limit = text.parse().unwrap_or_else(|error| panic!("{error}"));
    limit.shared_among(nodes(count)).to_string()
}

#[test]
fn each_algorithm_is_divided_by_its_own_measure() {
    for (text, count, expected) in [
        ("30/s burst 10", 3, "10/s burst 3"),
        ("10/s", 3, "10/3s burst 3"),
        ("10/s", 10, "1/s"),
        ("2/s burst 20 max-debt 9", 4, "1/2s burst 5 max-debt 2"),
        ("1/h burst 2", 5, "1/5h"),
        ("12/s queue 11 delay-after 7 leaky-bucket", 3, "4/s queue 3 delay-after 2 leaky-bucket"),
        ("10/s queue 1 delay-after all leaky-bucket", 4, "5/2s queue 0 delay-after all leaky-bucket"),
        ("10/s leaky-bucket", 2, "5/s leaky-bucket"),
        ("100/m fixed-window max-debt 10", 3, "33/m max-debt 3 fixed-window"),
        ("2/m fixed-window", 5, "1/3m fixed-window"),
        ("5/m sliding-log count-denied", 2, "2/m count-denied sliding-log"),
        ("1/m slots 8 sliding-window", 2, "1/2m slots 8 sliding-window"),
        ("10/s burst 3s pacer", 5, "2/s burst 3s pacer"),
        ("10/s burst 3 pay self pacer", 2, "5/s burst 1 pay self pacer"),
        ("1/s burst 3 pacer", 5, "1/5s burst 0 pacer"),
        ("6/s warm-up 4s pacer", 2, "3/s warm-up 4s pacer"),
        ("unlimited pacer", 7, "unlimited pacer"),
        ("8/30s concurrency", 3, "2/30s concurrency"),
        ("2/30s concurrency", 3, "1/30s concurrency"),
    ] {
        assert_eq!(share(text, count), expected, "{text} among {count}");
    }
}

#[test]
fn a_share_slower_than_ten_years_per_unit_is_the_slowest_limit() {
    assert_eq!(share("8/3650d", 5), "1/3650d");
    assert_eq!(share("1/36500us burst 8640000000", 3), "1/109500us burst 2880000000");
    assert_eq!(share("100/3650d burst 30", 3), "33/3650d burst 10");
    assert_eq!(share("100/3650d", 3), "33/3650d burst 32", "33 would take a few ticks more than ten years");
    assert_eq!(share("1/3650d", u64::MAX), "1/3650d");
    assert_eq!(
        share("3/2000d fixed-window", 5),
        "1/3650d fixed-window",
        "two periods would be more than ten years"
    );
    assert_eq!(
        share("3/105120000000001us fixed-window", 7),
        "1/3650d fixed-window",
        "two periods would be too few"
    );
    assert_eq!(share("1/3650d sliding-log", 9), "1/3650d sliding-log");
    assert_eq!(share("1/500d warm-up 1d pacer", 7), "1/500w burst 0w pacer", "too slow to warm up");
    // A share of a calendar limit has a period of the calendar.
    for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Calendar) {
        assert!(LimitBuilder::new(algorithm, 1, LONGEST).valid().is_ok(), "{algorithm}");
    }
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![1_u64..12, 1_u64..5000, 1_u64..1 << 40, any::<u64>()]
}

fn counts() -> impl Strategy<Value = NonZeroU64> {
    prop_oneof![1_u64..9, 1_u64..3000, 1..=u64::MAX].prop_map(nodes)
}

fn spans() -> impl Strategy<Value = u64> {
    let usual = 1_u64..5000;
    prop_oneof![usual, 1_u64..100_000_000, 1..=LONGEST_MICROS, Just(LONGEST_MICROS)]
}

fn maybe<T: Clone + std::fmt::Debug>(some: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::of(some)
}

/// Generates any valid limit, of any algorithm, with random settings beside the rate.
fn limits() -> impl Strategy<Value = Limit> {
    let beside = (maybe(numbers()), maybe(numbers()), maybe(numbers()), maybe(spans()), any::<[bool; 4]>());
    let draft = (prop::sample::select(&Algorithm::ALL[..]), numbers(), spans(), beside).prop_map(
        |(algorithm, amount, period, (most, debt, after, span, [one, two, three, four]))| {
            let mut draft = LimitBuilder::new(algorithm, amount, Duration::from_micros(period));
            match algorithm {
                Algorithm::TokenBucket => {
                    (draft.burst, draft.max_debt) = (most.map(Burst::Units), debt);
                }
                Algorithm::LeakyBucket => {
                    (draft.queue, draft.max_debt) = (most, debt);
                    let after = after.map(DelayAfter::Units);
                    draft.delay_after = if one { Some(DelayAfter::All) } else { after };
                }
                Algorithm::FixedWindow => {
                    draft.max_debt = debt;
                    draft.alignment = one.then_some(Alignment::FirstHit);
                }
                Algorithm::SlidingLog => draft.count_denied = one,
                Algorithm::SlidingWindow if one => draft.mode = Some(WindowMode::Estimate),
                Algorithm::SlidingWindow => {
                    draft.slots = most.map(|most| 1 + most % 1024);
                    draft.max_debt = debt;
                }
                Algorithm::Pacer if one => {
                    draft.warm_up = Some(Duration::from_micros(span.unwrap_or(1) % 2_000_000_000_000 + 1));
                    draft.cold_factor = two.then_some(1 + amount % 100);
                }
                Algorithm::Pacer => {
                    draft.pay = two.then_some(Pay::Own);
                    let span = span.map(|span| Burst::Span(Duration::from_micros(span)));
                    draft.burst = if three { span } else { most.map(Burst::Units).filter(|_| four) };
                }
                Algorithm::Concurrency => {}
                Algorithm::Calendar => {
                    let unit = CalendarUnit::ALL[usize::try_from(period % 5).expect("less than five")];
                    draft = LimitBuilder::calendar(amount, CalendarPeriods::new(unit));
                    draft.max_debt = debt;
                }
            }
            draft
        },
    );
    draft.prop_filter_map("numbers that do not hold", |draft| draft.build().ok())
}

/// Returns the amount and the period in ticks, or `None` if there is no rate.
fn rate(limit: &Limit) -> Option<(u128, u128)> {
    match limit.draft.rate {
        WrittenRate::Per { amount, period } => Some((amount.into(), period.as_nanos() * 16)),
        WrittenRate::Calendar { .. } | WrittenRate::Unlimited => None,
    }
}

/// Returns the quota of a limit at one instant from rest: its burst, its queue and the unit in service, or its amount.
fn at_once(limit: &Limit) -> u128 {
    match limit.worst_case(Duration::ZERO) {
        WorstCase::Units(units) | WorstCase::UnitsAndOneGrant(units) | WorstCase::InFlight(units) => {
            units.into()
        }
        WorstCase::Unbounded => u128::MAX,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        max_local_rejects: u32::MAX,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_share_holds_and_reads_back(limit in limits(), count in counts()) {
        let share = limit.shared_among(count);
        prop_assert_eq!(share.algorithm(), limit.algorithm());
        prop_assert_eq!(share.to_string().parse::<Limit>().expect("a limit"), share);
        if count == NonZeroU64::MIN {
            prop_assert_eq!(share, limit);
        }
    }

    #[test]
    fn a_share_is_never_more_than_the_whole(limit in limits(), count in counts(), span in spans()) {
        let (share, span) = (limit.shared_among(count), Duration::from_micros(span));
        let units = |most: WorstCase| match most {
            WorstCase::Units(units) | WorstCase::UnitsAndOneGrant(units) | WorstCase::InFlight(units) => units,
            WorstCase::Unbounded => u64::MAX,
        };
        prop_assert!(units(share.worst_case(span)) <= units(limit.worst_case(span)), "{limit} -> {share}");
    }

    /// The bound of LAWS D-d, n · (1/n) · (B + r · p), and one per node if there are more nodes than units.
    #[test]
    fn all_shares_together_keep_to_the_burst_and_the_rate(
        limit in limits(),
        count in counts(),
        span in spans(),
    ) {
        let Some((amount, period)) = rate(&limit) else { return Ok(()) };
        let all_nodes = u128::from(count.get());
        let share = limit.shared_among(count);
        let is_too_slow = u128::from(Ticks::TEN_YEARS.get()) * amount < period.saturating_mul(all_nodes);
        if is_too_slow && limit.algorithm() != Algorithm::Concurrency {
            let (own, per) = rate(&share).expect("a rate");
            prop_assert!(own == 1 && 2 * per > Ticks::TEN_YEARS.get().into(), "{} -> {}", limit, share);
            return Ok(());
        }
        prop_assert!(
            limit.algorithm() == Algorithm::Pacer
                || all_nodes.saturating_mul(at_once(&share)) <= at_once(&limit).max(all_nodes),
            "{} -> {}", limit, share
        );
        let span = Duration::from_micros(span);
        let ticks = span.as_nanos() * 16;
        let passed = |most: WorstCase| if let WorstCase::Units(units) | WorstCase::UnitsAndOneGrant(units) = most {
            u128::from(units)
        } else { 0 };
        let (own, whole) = (passed(share.worst_case(span)), passed(limit.worst_case(span)));
        if own == u64::MAX.into() {
            return Ok(());
        }
        let all = own.saturating_mul(all_nodes);
        match limit.algorithm() {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => {
                let at_once = at_once(&limit).max(all_nodes);
                prop_assert!((all - at_once.min(all)).saturating_mul(period) <= amount.saturating_mul(ticks));
            }
            // The savings are a span, in which all nodes together get so many.
            Algorithm::Pacer => {
                let saved = limit.time_to_full().as_nanos() * 16;
                prop_assert!(all.saturating_mul(period) <= amount.saturating_mul(saved + ticks));
            }
            _ if amount >= all_nodes => prop_assert!(all <= whole, "{} -> {}", limit, share),
            // Each node has one at either end, and the rate in between.
            _ => prop_assert!(
                (all - (2 * all_nodes).min(all)).saturating_mul(period) <= amount.saturating_mul(ticks)
            ),
        }
    }

    /// A share of less than one is one in a unit of so many periods.
    #[test]
    fn all_shares_of_a_calendar_together_keep_to_its_amount(
        limit in limits().prop_filter("of a calendar", |limit| limit.periods().is_some()),
        count in counts(),
    ) {
        let (share, all_nodes) = (limit.shared_among(count), u128::from(count.get()));
        let [own, whole] = [&share, &limit].map(|limit| u128::from(limit.rate().unwrap().amount().unwrap()));
        let [longer, usual] = [&share, &limit].map(|limit| u128::from(limit.periods().unwrap().nominal().get()));
        prop_assert!(longer >= usual);
        let is_a_year = share.periods().unwrap().unit() == CalendarUnit::Year;
        prop_assert!(own * all_nodes * usual <= whole * longer || is_a_year && own == 1, "{} -> {}", limit, share);
    }

    #[test]
    fn a_rate_is_divided_exactly_where_a_limit_can_say_it(
        amount in 1_u64..100_000,
        period in 1_000_000_u64..100_000_000_000,
        count in 1_u64..3000,
    ) {
        let Ok(limit) = LimitBuilder::new(Algorithm::TokenBucket, amount, Duration::from_micros(period)).build() else {
            return Ok(());
        };
        let (shared_amount, shared_period) = rate(&limit.shared_among(nodes(count))).expect("a rate");
        let (amount, period) = rate(&limit).expect("a rate");
        prop_assert_eq!(shared_amount * period * u128::from(count), amount * shared_period);
    }
}
