//! Tests of penalties on a server: the same decisions as in memory, in one call, and with those that share the call.

use std::sync::Arc;

use conformance::random::Random;
use testbed::{Cluster, Flavour, Redis};
use tidegate::{
    Ask, Ban, Cost, Decision, HOUR, Key, Limit, MILLISECOND, Map, PreparedLimit, PreparedPenalty, SECOND,
    Store, StoreError, Subject, Zone,
};
use tidegate_redis::RedisStore;

use crate::setup::{cluster_url, given_time, options, redis, scripts, store, wait};

/// The limits of rules, each with the numbers of its penalty: denials, seconds within, seconds of the ban.
const RULES: [(&str, Option<[u64; 3]>); 7] = [
    ("2/s", Some([3, 5, 20])),
    ("3/10s sliding-log", Some([2, 10, 7])),
    ("3/10s sliding-log count-denied", Some([4, 3, 9])),
    ("4/10s fixed-window", Some([1, 1, 15])),
    ("1/s queue 3 leaky-bucket", Some([2, 60, 5])),
    ("5/10s sliding-window", None),
    ("2/s burst 6", None),
];

/// A rule with its prepared limit and penalty.
struct Ruled {
    limit: PreparedLimit,
    penalty: Option<PreparedPenalty>,
}

impl Ruled {
    fn new(name: &str, limit: &str, penalty: Option<[u64; 3]>) -> Ruled {
        let limit: Limit = limit.parse().expect("a limit");
        let prepared = penalty.map(|[after, within, lasts]| {
            PreparedPenalty::of_rule(name, after, SECOND * within as u32, SECOND * lasts as u32)
        });
        let penalty = prepared.transpose().expect("a penalty");
        Ruled { limit: PreparedLimit::of_rule(name, limit), penalty }
    }

    fn subject<'a>(&'a self, key: &'a Key) -> Subject<'a> {
        self.limit.subject(key).penalty(self.penalty.as_ref())
    }
}

/// Returns the reported values of decisions.
fn figures(decisions: &[Decision]) -> Vec<impl PartialEq + std::fmt::Debug + use<>> {
    let each = decisions.iter().map(|decision| {
        let (verdict, reset) = (decision.verdict_in_ticks(), decision.reset_after_in_ticks());
        (verdict, decision.limit(), decision.remaining(), reset, decision.ban())
    });
    each.collect()
}

/// Plays a random sequence on the server and in memory, with one clock. All decisions have to be the same. In a cluster an
/// ask has one key: takes in several slots are given back after a denial, and the others report what is left then.
fn in_lock_step(
    url: &str,
    memory: impl Fn(Arc<tidegate::ManualClock>) -> Arc<dyn Store>,
    rounds: usize,
    has_slots: bool,
) {
    let seed = Random::seed_from_environment();
    println!("TIDEGATE_SEED={seed}");
    let mut random = Random::new(seed);
    let (store, clock) = given_time(url);
    clock.advance(1000 * HOUR);
    let memory = memory(clock.clone());
    let keys: Vec<_> = (0..3_u64).map(Key::new).collect();
    let mut rules: Vec<_> = (0..RULES.len())
        .map(|rule| Ruled::new(&format!("rule{rule}"), RULES[rule].0, RULES[rule].1))
        .collect();
    let pick = |most: usize, random: &mut Random| random.between(0, most as u64 - 1) as usize;
    let (mut begun, mut in_force) = (0, 0);
    for round in 0..rounds {
        let case = format!("round {round}, TIDEGATE_SEED={seed}");
        clock.advance(random.between(0, 2000) as u32 * MILLISECOND);
        match random.between(0, 29) {
            0 => {
                let (rule, key) = (pick(rules.len(), &mut random), pick(keys.len(), &mut random));
                let subject = rules[rule].subject(&keys[key]);
                // A key on the server outlives its state, so only the effect is compared.
                for reset in [wait(store.reset(subject)), wait(memory.reset(subject))] {
                    reset.unwrap_or_else(|error| panic!("{error}, {case}"));
                }
            }
            // The numbers of a penalty change, and strikes and bans are carried over.
            1 => {
                let rule = pick(5, &mut random);
                let numbers = [random.between(1, 4), random.between(1, 30), random.between(1, 30)];
                rules[rule].penalty =
                    Ruled::new(&format!("rule{rule}"), RULES[rule].0, Some(numbers)).penalty;
            }
            2..=4 => {
                let (rule, key) = (pick(rules.len(), &mut random), pick(keys.len(), &mut random));
                let subject = rules[rule].subject(&keys[key]);
                let ask = Ask::new(Cost::of(random.between(1, 4)));
                let [one, other] = [wait(store.peek(subject, ask)), wait(memory.peek(subject, ask))];
                let [one, other] = [one, other].map(|decision| figures(&[decision.expect("an answer")]));
                assert_eq!(one, other, "peek, {case}");
            }
            _ => {
                let mut asks: Vec<(Subject<'_>, Ask)> = Vec::new();
                let (first, only) = (pick(rules.len(), &mut random), pick(keys.len(), &mut random));
                for nth in 0..random.between(1, 3) as usize {
                    let key = if has_slots { only } else { pick(keys.len(), &mut random) };
                    let subject = rules[(first + nth) % rules.len()].subject(&keys[key]);
                    asks.push((subject, Ask::new(Cost::of(random.between(1, 3)))));
                }
                let (one, other) = (wait(store.take(&asks)), wait(memory.take(&asks)));
                let (one, other) = (one.expect("an answer"), other.expect("an answer"));
                assert_eq!(figures(one.each()), figures(other.each()), "take, {case}");
                let count = |ban| one.each().iter().filter(|decision| decision.ban() == Some(ban)).count();
                (begun, in_force) = (begun + count(Ban::Begun), in_force + count(Ban::InForce));
            }
        }
    }
    assert!(begun > rounds / 50 && in_force > rounds / 50, "{begun} bans, {in_force} denials by one");
}

#[test]
fn penalties_on_a_server_are_those_of_a_map_and_of_a_zone() {
    for flavour in Flavour::available() {
        let redis = Redis::start(flavour);
        in_lock_step(&redis.url(), |clock| Arc::new(Map::with_clock(clock)), 1500, false);
        redis.command(&["FLUSHALL"]);
        in_lock_step(&redis.url(), |clock| Arc::new(Zone::with_clock(1 << 20, clock)), 1500, false);
    }
}

#[test]
fn penalties_in_a_cluster_are_those_of_a_map() {
    let cluster = Cluster::start(Flavour::Redis7);
    in_lock_step(&cluster_url(&cluster), |clock| Arc::new(Map::with_clock(clock)), 500, true);
}

#[test]
fn a_take_under_limits_with_penalties_is_one_call_whatever_its_verdict() {
    let redis = redis();
    let store = store(&redis.url());
    let rules = [Ruled::new("a", "1/h", Some([2, 60, 600])), Ruled::new("b", "9/h", Some([2, 60, 600]))];
    let ana = Key::new("ana");
    let asks = rules.each_ref().map(|rule| (rule.subject(&ana), Ask::ONE));
    wait(store.take(&asks)).expect("the limits are listed");
    for ban in [None, Some(Ban::Begun), Some(Ban::InForce), Some(Ban::InForce)] {
        let mut found = None;
        assert_eq!(scripts(&redis, || found = Some(wait(store.take(&asks)).expect("an answer"))), 1);
        let found = found.expect("it was asked");
        assert!(!found.is_allowed() && found.each()[0].ban() == ban, "{found:?}");
        assert_eq!(found.each()[1].remaining(), 8, "a denial by one limit spends nothing of the other");
    }
}

#[test]
fn a_denial_that_could_be_cached_is_a_strike_and_a_lifted_ban_is_noticed_at_once() {
    let redis = redis();
    let [here, there] = [store(&redis.url()), store(&redis.url())];
    let (rule, ana) = (Ruled::new("login", "1/h", Some([3, 600, 3600])), Key::new("ana"));
    let asks = [(rule.subject(&ana), Ask::ONE)];
    let take = |store: &RedisStore| -> Result<_, StoreError> { Ok(wait(store.take(&asks))?.each()[0]) };
    assert!(take(&here).is_ok_and(|decision| decision.is_allowed()));
    let bans = [None, None, Some(Ban::Begun), Some(Ban::InForce)];
    assert_eq!(bans.map(|_| take(&here).expect("an answer").ban()), bans);
    assert_eq!(take(&there).expect("an answer").ban(), Some(Ban::InForce));
    assert!(wait(there.reset(asks[0].0)).expect("an answer"));
    assert!(take(&here).is_ok_and(|decision| decision.is_allowed()));
}

#[test]
fn asks_that_share_a_call_see_the_strikes_of_those_before_them() {
    let redis = redis();
    let store = crate::setup::open(options(&redis.url()));
    let rule = Ruled::new("login", "4/h", Some([2, 60, 600]));
    let ana = Key::new("ana");
    let asks: Vec<_> = [4, 3, 3, 1, 1].map(|cost| [(rule.subject(&ana), Ask::new(Cost::of(cost)))]).into();
    wait(store.take(&[(rule.subject(&Key::new("other")), Ask::ONE)])).expect("the limits are listed");
    let taken = crate::setup::wait_for_all_at_once(&store, asks.iter().map(|asks| store.take(asks)));
    let bans: Vec<_> = taken.into_iter().map(|taken| taken.expect("an answer").each()[0].ban()).collect();
    assert_eq!(bans, [None, None, Some(Ban::Begun), Some(Ban::InForce), Some(Ban::InForce)]);
}

/// Regression: the strikes under the numbers before a change were carried over again after the ban that they began.
#[test]
fn strikes_under_earlier_numbers_are_removed_by_the_ban_that_they_begin() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    clock.advance(1000 * HOUR);
    let (old, new) =
        (Ruled::new("login", "1/d", Some([5, 7200, 600])), Ruled::new("login", "1/d", Some([3, 7200, 600])));
    let ana = Key::new("ana");
    let ban = |rule: &Ruled| {
        wait(store.take(&[(rule.subject(&ana), Ask::ONE)])).expect("an answer").each()[0].ban()
    };
    assert_eq!([ban(&old), ban(&old), ban(&old)], [None; 3]);
    clock.advance(SECOND);
    assert_eq!([ban(&new), ban(&new)], [Some(Ban::Begun), Some(Ban::InForce)]);
    clock.advance(600 * SECOND);
    assert_eq!([ban(&new), ban(&new), ban(&new)], [None, None, Some(Ban::Begun)]);
}

#[test]
fn strikes_begin_anew_after_a_ban_that_is_shorter_than_their_span() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    clock.advance(1000 * HOUR);
    let (rule, ana) = (Ruled::new("login", "1/d", Some([2, 7200, 10])), Key::new("ana"));
    let take = || wait(store.take(&[(rule.subject(&ana), Ask::ONE)])).expect("an answer").each()[0];
    assert!(take().is_allowed());
    assert_eq!([take().ban(), take().ban()], [None, Some(Ban::Begun)]);
    clock.advance(10 * SECOND);
    assert_eq!([take().ban(), take().ban()], [None, Some(Ban::Begun)]);
}
