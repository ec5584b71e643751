//! Tests that asks which are queued at the same time share a call, and that each has its own verdict and its own
//! failure.

use std::sync::Arc;

use conformance::random::Random;
use testbed::{Afterwards, Cluster, Flavour, Proxy, Redis};
use tidegate::{
    Adjusted, Ask, Cost, Decision, Decisions, HOUR, Key, Limit, MILLISECOND, ManualClock, PermitId,
    PreparedLimit, PreparedPenalty, SECOND, Store as _, StoreError, Subject,
};
use tidegate_redis::RedisStore;

use crate::setup::{
    HeldUp, Someone, cluster_url, eventually, forgetful, options, poll_once, reason, redis, scripts, store,
    wait, wait_for_all_at_once,
};

/// The maximum number of asks in one call.
const MOST: usize = 32;

/// A small limit of each algorithm.
const LIMITS: [&str; 9] = [
    "3/h",
    "5/s burst 4",
    "2/s queue 3 leaky-bucket",
    "4/10s fixed-window",
    "4/10s sliding-log",
    "4/10s sliding-log count-denied",
    "4/10s sliding-window",
    "2/s pacer burst 2s",
    "3/1h concurrency",
];

fn take_all_of(store: &RedisStore, all: &[Someone]) -> Vec<Result<Decisions, StoreError>> {
    let asks: Vec<_> = all.iter().map(|one| [(one.subject(), Ask::ONE)]).collect();
    wait_for_all_at_once(store, asks.iter().map(|asks| store.take(asks)))
}

fn people(count: usize, limit: &str) -> Vec<Someone> {
    (0..count).map(|number| Someone::new(&format!("{limit} {number}"), limit)).collect()
}

/// Returns a store that has listed this limit and sent the scripts of takes under it.
fn ready(store: RedisStore, limit: &str) -> RedisStore {
    let others = ["one", "two", "three"].map(|name| Someone::new(name, limit));
    assert!(others[0].take(&store).is_ok());
    take_all_of(&store, &others).into_iter().for_each(|answer| drop(answer.expect("an answer")));
    store
}

/// Returns the name of the only key of the server with this part.
fn key_with(redis: &Redis, part: &str) -> String {
    let names = redis.command(&["KEYS", &format!("*{part}*")]);
    let mut names = names.lines().filter(|name| !name.contains("limits:"));
    let name = names.next().unwrap_or_else(|| panic!("no key with {part:?}")).to_owned();
    assert_eq!(names.next(), None, "one key has {part:?}");
    name
}

#[test]
fn asks_of_one_moment_go_in_one_call() {
    let redis = redis();
    for limit in ["1000/h", "1000/h fixed-window", "1000/h concurrency"] {
        let store = ready(forgetful(&redis.url()), limit);
        for (asks, calls) in [(1, 1), (2, 1), (MOST, 1), (MOST + 1, 2), (3 * MOST, 3)] {
            let all = people(asks, limit);
            // The first time, a script may be missing on the server.
            drop(take_all_of(&store, &all));
            let counted = scripts(&redis, || {
                take_all_of(&store, &all)
                    .into_iter()
                    .for_each(|answer| assert!(answer.unwrap().is_allowed()));
            });
            assert_eq!(counted, calls, "{asks} asks under {limit}");
        }
    }
}

#[test]
fn one_key_several_times_in_a_call_is_decided_in_order() {
    let redis = redis();
    for limit in LIMITS.into_iter().filter(|limit| limit.contains("/h") || limit.contains("10s")) {
        let store = ready(forgetful(&redis.url()), limit);
        let twice: Vec<_> = ["ana", "bob", "ana", "ana", "bob", "ana", "ana", "bob", "ana"]
            .iter()
            .map(|name| Someone::new(&format!("{name} {limit}"), limit))
            .collect();
        let decisions: Vec<_> =
            take_all_of(&store, &twice).into_iter().map(|answer| answer.unwrap()).collect();
        let most: u64 = limit.split('/').next().and_then(|count| count.parse().ok()).unwrap();
        let mut taken = [0, 0];
        for (place, decision) in decisions.iter().enumerate() {
            let taken = &mut taken[usize::from([1, 4, 7].contains(&place))];
            let expected = most.checked_sub(*taken + 1);
            assert_eq!(decision.is_allowed(), expected.is_some(), "{limit}, ask {place}");
            assert_eq!(decision.each()[0].remaining(), expected.unwrap_or(0), "{limit}, ask {place}");
            *taken += u64::from(decision.is_allowed());
        }
    }
}

/// Two stores with one clock: one gets all asks together, the other one by one.
struct Pair {
    together: RedisStore,
    single: RedisStore,
    clock: Arc<ManualClock>,
}

impl Pair {
    fn new(url: &str) -> Pair {
        let clock = Arc::new(ManualClock::new());
        clock.advance(1000 * HOUR);
        let open = |prefix: &str| {
            let options = options(url).prefix(prefix);
            RedisStore::with_given_time(options, clock.clone()).expect("a store")
        };
        Pair { together: open("a:"), single: open("b:"), clock }
    }
}

/// Returns the reported values of a decision, without the permit, whose id is random.
fn figures(decisions: &[Decision]) -> Vec<impl PartialEq + std::fmt::Debug + use<>> {
    let each = decisions.iter().map(|decision| {
        let (verdict, reset) = (decision.verdict_in_ticks(), decision.reset_after_in_ticks());
        (verdict, decision.limit(), decision.remaining(), reset, decision.permit().is_some(), decision.ban())
    });
    each.collect()
}

/// One of several requests at the same time.
enum Asked {
    Take(Vec<(usize, usize, Ask)>),
    Peek(usize, usize, Ask),
    Release(usize, usize, [PermitId; 2]),
}

/// The answer to one of them.
#[derive(Debug)]
enum Answer {
    Decided(Vec<Decision>),
    Was(bool),
}

/// Plays a random trace. In a cluster an ask about keys of several slots is given back if one denies, and others may
/// come in between. So there each ask has one key.
fn random_trace_on(url: &str, rounds: usize, keys_of_one_ask: u64) {
    let seed = Random::seed_from_environment();
    println!("TIDEGATE_SEED={seed}");
    let (mut random, pair) = (Random::new(seed), Pair::new(url));
    let keys: Vec<_> = (0..6_u64).map(Key::new).collect();
    let limits: Vec<Limit> = LIMITS.iter().map(|text| text.parse().expect(text)).collect();
    // Three limits have a penalty: strikes and bans go in the same calls.
    let penalty = |limit: usize| {
        let name = format!("penalty{limit}");
        PreparedPenalty::of_rule(&name, 2, 10 * SECOND, 5 * SECOND).expect("a valid penalty")
    };
    let penalties: Vec<_> =
        (0..limits.len()).map(|limit| [1, 3, 4].contains(&limit).then(|| penalty(limit))).collect();
    let subject = |key: usize, limit: usize| {
        Subject::new("test", &keys[key], &limits[limit]).penalty(penalties[limit].as_ref())
    };
    let stranger = Key::new("stranger");
    // An ask under a limit that is not listed yet is sent after the listing, behind others.
    for (store, limit) in [&pair.together, &pair.single]
        .iter()
        .flat_map(|store| (0..limits.len()).map(move |limit| (store, limit)))
    {
        let listed = Subject::new("test", &stranger, &limits[limit]).penalty(penalties[limit].as_ref());
        wait(store.take(&[(listed, Ask::ONE)])).expect("an answer");
    }
    let mut held: Vec<(usize, usize, [PermitId; 2])> = Vec::new();
    let (mut allowed, mut denied) = (0, 0);
    for round in 0..rounds {
        pair.clock.advance(random.between(0, 1200) as u32 * MILLISECOND);
        let pick = |random: &mut Random| {
            let [key, limit] =
                [keys.len(), limits.len()].map(|count| random.between(0, count as u64 - 1) as usize);
            (key, limit, Ask::new(Cost::of(random.between(1, 3))))
        };
        let asked: Vec<_> = (0..random.between(1, 40))
            .map(|_| match random.between(0, 9) {
                0 => {
                    let (key, limit, ask) = pick(&mut random);
                    Asked::Peek(key, limit, ask)
                }
                1 if !held.is_empty() => {
                    let place = random.between(0, held.len() as u64 - 1) as usize;
                    let (key, limit, permits) = held.swap_remove(place);
                    Asked::Release(key, limit, permits)
                }
                2..=5 => Asked::Take(vec![pick(&mut random)]),
                _ if keys_of_one_ask > 1 => {
                    Asked::Take((0..random.between(1, 4)).map(|_| pick(&mut random)).collect())
                }
                _ => {
                    let (key, ..) = pick(&mut random);
                    let with_key = |(_, limit, ask): (usize, usize, Ask)| (key, limit, ask);
                    Asked::Take((0..random.between(1, 4)).map(|_| with_key(pick(&mut random))).collect())
                }
            })
            .collect();
        let ask = |store: &RedisStore, which: usize, asked: &Asked| {
            let store = store.clone();
            let asks: Vec<_> = match asked {
                Asked::Take(asks) => {
                    asks.iter().map(|(key, limit, ask)| (subject(*key, *limit), *ask)).collect()
                }
                Asked::Peek(key, limit, ask) => vec![(subject(*key, *limit), *ask)],
                Asked::Release(key, limit, _) => vec![(subject(*key, *limit), Ask::ONE)],
            };
            let (is_take, permit) = match asked {
                Asked::Take(_) => (true, None),
                Asked::Peek(..) => (false, None),
                Asked::Release(_, _, permits) => (false, Some(permits[which])),
            };
            async move {
                Ok::<_, StoreError>(match permit {
                    Some(permit) => Answer::Was(store.release(asks[0].0, permit).await?),
                    None if is_take => Answer::Decided(store.take(&asks).await?.each().to_vec()),
                    None => Answer::Decided(vec![store.peek(asks[0].0, asks[0].1).await?]),
                })
            }
        };
        let together = asked.iter().map(|asked| ask(&pair.together, 0, asked));
        let together = wait_for_all_at_once(&pair.together, together);
        for (place, (asked, together)) in asked.iter().zip(together).enumerate() {
            let case = format!("ask {place} of round {round}, TIDEGATE_SEED={seed}");
            let single = wait(ask(&pair.single, 1, asked));
            match (asked, together.expect("an answer"), single.expect("an answer")) {
                (Asked::Take(asks), Answer::Decided(one), Answer::Decided(other)) => {
                    assert_eq!(figures(&one), figures(&other), "{case}");
                    let is_allowed = one.iter().all(Decision::is_allowed);
                    *(if is_allowed { &mut allowed } else { &mut denied }) += 1;
                    for ((key, limit, _), (one, other)) in asks.iter().zip(one.iter().zip(&other)) {
                        let permits = one.permit().zip(other.permit());
                        held.extend(permits.map(|(one, other)| (*key, *limit, [one, other])));
                    }
                }
                (_, Answer::Decided(one), Answer::Decided(other)) => {
                    assert_eq!(figures(&one), figures(&other), "{case}");
                }
                (_, Answer::Was(one), Answer::Was(other)) => assert_eq!(one, other, "{case}"),
                (_, one, other) => panic!("{one:?} and {other:?}, {case}"),
            }
        }
    }
    assert!(allowed > rounds && denied > rounds, "{allowed} were allowed and {denied} denied");
}

/// Regression: a take whose key had no state under the new numbers was repeated behind later ones, which had taken from
/// the shared limit meanwhile.
#[test]
fn a_take_that_is_repeated_stays_before_those_that_share_a_limit() {
    let redis = redis();
    for (total, of_user) in [("5/d", "100/d"), ("5/d fixed-window", "100/d"), ("5/d", "100/d sliding-log")] {
        let store = forgetful(&redis.url());
        let total = PreparedLimit::of_rule(&format!("total {total} {of_user}"), total.parse().expect(total));
        let number = |amount: &str| {
            let text = of_user.replace("100", amount);
            PreparedLimit::of_rule(&format!("user {of_user}"), text.parse().expect(&text))
        };
        let (old, new, everyone) = (number("100"), number("500"), Key::new("everyone"));
        let keys = ["vip", "a", "b", "c", "d", "vip", "warm"].map(Key::new);
        let asks = |place: usize| {
            let limit = if keys[place] == keys[0] { &new } else { &old };
            [(total.subject(&everyone), Ask::ONE), (limit.subject(&keys[place]), Ask::ONE)]
        };
        wait(store.take(&asks(6))).expect("an answer");
        for is_listed in [false, true] {
            if is_listed {
                wait(store.take(&[(new.subject(&keys[6]), Ask::ONE)])).expect("an answer");
            }
            wait(store.reset(total.subject(&everyone))).expect("an answer");
            for key in &keys {
                wait(store.reset(new.subject(key))).expect("an answer");
            }
            let taking: Vec<_> = (0..6).map(asks).collect();
            let answers = wait_for_all_at_once(&store, taking.iter().map(|asks| store.take(asks)));
            let left = answers.into_iter().map(|answer| answer.expect("an answer").each()[0].remaining());
            assert_eq!(left.collect::<Vec<_>>(), [4, 3, 2, 1, 0, 0], "{is_listed}, {of_user}");
        }
    }
}

/// Takes that share limits, while the numbers of limits change.
#[test]
fn takes_of_one_moment_are_those_of_single_calls_while_numbers_change() {
    let redis = redis();
    let seed = Random::seed_from_environment();
    println!("TIDEGATE_SEED={seed}");
    let (mut random, pair) = (Random::new(seed), Pair::new(&redis.url()));
    let keys: Vec<_> = (0..6_u64).map(Key::new).collect();
    let rules = ["/m", "/m fixed-window", "/m sliding-log", "/m leaky-bucket queue 5", "/m sliding-window"];
    let of = |rule: usize, amount: u64| {
        let text = format!("{amount}{}", rules[rule]);
        PreparedLimit::of_rule(&format!("rule {rule}"), text.parse().expect(&text))
    };
    let mut limits: Vec<_> = (0..rules.len()).map(|rule| of(rule, 20)).collect();
    let (mut allowed, mut denied) = (0, 0);
    for round in 0..60 {
        pair.clock.advance(random.between(0, 4000) as u32 * MILLISECOND);
        if random.between(0, 2) == 0 {
            let rule = random.between(0, rules.len() as u64 - 1) as usize;
            limits[rule] = of(rule, random.between(5, 60));
        }
        let asked: Vec<Vec<_>> = (0..random.between(1, 60))
            .map(|_| {
                let mut places: Vec<_> = (0..rules.len()).filter(|_| random.between(0, 1) == 0).collect();
                if places.is_empty() {
                    places.push(0);
                }
                let each = places.into_iter().map(|rule| {
                    // The first rules have one key for all.
                    let key = if rule < 2 { 0 } else { random.between(0, 5) as usize };
                    (limits[rule].subject(&keys[key]), Ask::new(Cost::of(random.between(1, 3))))
                });
                each.collect()
            })
            .collect();
        let together =
            wait_for_all_at_once(&pair.together, asked.iter().map(|asks| pair.together.take(asks)));
        for (place, (asks, together)) in asked.iter().zip(together).enumerate() {
            let case = format!("ask {place} of round {round}, TIDEGATE_SEED={seed}");
            let single = wait(pair.single.take(asks)).expect("an answer");
            let together = together.expect("an answer");
            assert_eq!(figures(together.each()), figures(single.each()), "{case}");
            *(if single.is_allowed() { &mut allowed } else { &mut denied }) += 1;
        }
    }
    assert!(allowed > 60 && denied > 60, "{allowed} were allowed and {denied} denied");
}

#[test]
fn verdicts_of_one_call_are_those_of_single_calls() {
    for flavour in Flavour::available() {
        random_trace_on(&Redis::start(flavour).url(), 60, 4);
    }
}

#[test]
fn verdicts_are_those_of_single_calls_in_a_cluster() {
    random_trace_on(&cluster_url(&Cluster::start(Flavour::Redis7)), 20, 1);
}

#[test]
fn asks_of_many_slots_and_one_key_are_exact_in_a_cluster() {
    let cluster = Cluster::start(Flavour::Redis7);
    let store = forgetful(&cluster_url(&cluster));
    let mut all = people(150, "1/h");
    (0..10).for_each(|place| all.insert(15 * place, Someone::new("ana", "4/h")));
    let answers = take_all_of(&store, &all);
    let is_ana = |place: &usize| place.is_multiple_of(15) && place / 15 < 10;
    let allowed = |of_ana| {
        let places = (0..all.len()).filter(move |place| is_ana(place) == of_ana);
        places.map(|place| answers[place].as_ref().expect("an answer").is_allowed()).collect::<Vec<_>>()
    };
    assert_eq!(allowed(true), [[true; 4].as_slice(), &[false; 6]].concat());
    assert!(allowed(false).into_iter().all(|is_allowed| is_allowed), "each of the others passes once");
}

#[test]
fn what_is_strange_under_one_key_is_the_failure_of_its_ask_alone() {
    let redis = redis();
    let strange = [&["LPUSH"][..], &["SET"]];
    for limit in LIMITS {
        let store = ready(forgetful(&redis.url()), limit);
        let mut all = people(5, limit);
        all[2] = Someone::new(&format!("strange {limit}"), limit);
        assert!(all[2].is_allowed(&store));
        let name = key_with(&redis, &format!("strange {limit}"));
        for words in strange {
            redis.command(&["DEL", &name]);
            redis.command(&[words, &[&name, "hello"]].concat());
            for asked in [&all[..], &[all[2].clone(), all[0].clone()]] {
                let answers = take_all_of(&store, asked);
                for (one, answer) in asked.iter().zip(answers) {
                    match answer {
                        Ok(_) => assert_ne!(one.subject().key(), all[2].subject().key(), "{limit}"),
                        Err(error) => {
                            assert_eq!(one.subject().key(), all[2].subject().key(), "{limit}");
                            let why = reason(&error);
                            assert!(why.contains("WRONGTYPE") || why.contains("TIDEGATE"), "{limit}: {why}");
                            assert!(error.is_retryable(), "{limit}: nothing was done");
                        }
                    }
                }
            }
        }
        redis.command(&["FLUSHALL"]);
    }
}

#[test]
fn a_key_that_the_user_may_not_touch_is_the_failure_of_its_ask_alone() {
    let redis = redis();
    let rights = ["ACL", "SETUSER", "half", "on", ">PASSWORD", "+@all", "~tg:limits:*", "~tg:*mine*"];
    assert_eq!(redis.command(&rights), "OK");
    let store = forgetful(&format!("redis://half:PASSWORD@{}", redis.address()));
    for limit in ["5/h", "5/h fixed-window"] {
        let all = ["mine 1", "yours", "mine 2"].map(|name| Someone::new(&format!("{name} {limit}"), limit));
        assert!(all[0].is_allowed(&store));
        let answers = take_all_of(&store, &all);
        let remaining =
            |place: usize| answers[place].as_ref().map(|decisions| decisions.each()[0].remaining());
        assert_eq!(
            (remaining(0).ok(), remaining(2).ok()),
            (Some(3), Some(4)),
            "each was charged once: {limit}"
        );
        let why = reason(remaining(1).expect_err("it may not"));
        assert!(why.contains("NOPERM"), "{why}");
    }
}

fn of(someone: &Someone, cost: u64) -> Vec<(Subject<'_>, Ask)> {
    vec![(someone.subject(), Ask::new(Cost::of(cost)))]
}

#[test]
fn an_ask_that_is_too_large_or_impossible_goes_beside_the_others() {
    let redis = redis();
    let store = ready(forgetful(&redis.url()), "5/h");
    let (ana, many) = (people(4, "5/h"), people(300, "7/h"));
    let long = Someone::new(&"x".repeat(20_000), "5/h");
    let large: Vec<_> = many.iter().map(|one| (one.subject(), Ask::ONE)).collect();
    let asks = [of(&ana[0], 1), large, of(&ana[1], 6), of(&ana[2], 2), of(&long, 1), of(&ana[3], 5)];
    let answers = wait_for_all_at_once(&store, asks.iter().map(|asks| store.take(asks)));
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect("an answer")).collect();
    let allowed: Vec<_> = answers.iter().map(Decisions::is_allowed).collect();
    assert_eq!(allowed, [true, true, false, true, true, true]);
    assert_eq!(answers[2].verdict(), tidegate::Verdict::Impossible);
    assert_eq!([0, 3, 5].map(|place: usize| answers[place].each()[0].remaining()), [4, 3, 0]);
}

/// The server has executed the call, and its single reply to all of them is lost.
#[test]
fn asks_of_a_call_that_was_not_answered_are_spent_at_most_once() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let (proxied, direct) = (ready(forgetful(&proxy.url()), "100000/d"), forgetful(&redis.url()));
    let all = people(MOST, "100000/d");
    let (rounds, mut unknown) = (10, 0);
    for _ in 0..rounds {
        eventually("the store decides again", || Someone::new("bob", "100000/d").take(&proxied).ok());
        proxy.only_for(&["EVALSHA", "EVAL"]);
        proxy.eat_replies(1, Afterwards::Cut);
        for answer in take_all_of(&proxied, &all) {
            unknown += usize::from(answer.is_err_and(|error| !error.is_retryable()));
        }
        proxy.clear();
    }
    assert!(unknown > rounds * MOST / 2, "{unknown} answers were lost");
    for one in &all {
        let left = wait(direct.peek(one.subject(), Ask::ONE)).unwrap().remaining();
        // The refill meanwhile is a few units of a day's total.
        let spent = 100_000 - left;
        assert!(spent <= rounds as u64 + 3, "{rounds} were asked for, and {spent} spent");
    }
}

#[test]
fn scripts_that_were_forgotten_are_sent_along_for_all() {
    let redis = redis();
    for limit in ["10/h", "10/h fixed-window", "10/h concurrency"] {
        let store = ready(forgetful(&redis.url()), limit);
        let all = people(20, &limit.replace("10/h", "11/h"));
        for round in 0..3 {
            redis.command(&["SCRIPT", "FLUSH"]);
            for answer in take_all_of(&store, &all) {
                assert_eq!(answer.expect("an answer").each()[0].remaining(), 10 - round, "{limit}");
            }
        }
        assert_eq!(store.status().rejected, 0);
    }
}

#[test]
fn an_ask_that_is_dropped_takes_nothing_from_those_in_its_call() {
    let redis = redis();
    let store = ready(store(&redis.url()), "10/1h concurrency");
    let all = Someone::new("all", "10/1h concurrency");
    let asks = [(all.subject(), Ask::ONE)];
    let mut takes: Vec<_> = (0..8).map(|_| Some(Box::pin(store.take(&asks)))).collect();
    let held = HeldUp::new(&store);
    for take in takes.iter_mut().flatten() {
        assert!(poll_once(take.as_mut()).is_none(), "nothing is decided yet");
    }
    takes.iter_mut().step_by(2).for_each(|take| drop(take.take()));
    drop(held);
    let answers = crate::setup::wait_for_all(takes.into_iter().flatten());
    let permits: Vec<_> = answers.iter().map(|answer| answer.as_ref().unwrap().each()[0].permit()).collect();
    assert!(permits.iter().all(Option::is_some), "{permits:?}");
    let free = || wait(store.peek(all.subject(), Ask::ONE)).ok().map(|decision| decision.remaining());
    eventually("the places of those that were dropped are free", || free().filter(|free| *free == 6));
    for permit in permits.into_iter().flatten() {
        assert!(wait(store.release(all.subject(), permit)).unwrap());
    }
    assert_eq!(free(), Some(10));
}

#[test]
fn each_ask_of_a_call_has_its_own_receipt() {
    let redis = redis();
    for limit in ["5/h", "5/h fixed-window", "5/h sliding-log"] {
        let store = ready(forgetful(&redis.url()), limit);
        let all = people(4, limit);
        let asks: Vec<_> = all.iter().map(|one| [(one.subject().tracked(), Ask::new(Cost::of(2)))]).collect();
        let answers = wait_for_all_at_once(&store, asks.iter().map(|asks| store.take(asks)));
        for (one, answer) in all.iter().zip(answers) {
            let mut receipts = answer.unwrap().take_receipts();
            let mut receipt = receipts.remove(0).expect("a receipt");
            let back = wait(store.refund(one.subject(), &mut receipt, Cost::of(2))).unwrap();
            // For a bucket, the time since the take has been repaid by then.
            assert!(back == Adjusted::Whole || limit == "5/h", "{limit}: {back:?}");
            let left = wait(store.peek(one.subject(), Ask::ONE)).unwrap().remaining();
            assert!(left >= 4, "{limit}: {left}");
        }
    }
}

#[test]
fn each_denial_of_a_call_is_remembered() {
    let redis = redis();
    let store = ready(store(&redis.url()), "1/h");
    let all = people(6, "1/h");
    let fresh = Someone::new("fresh", "1/h");
    take_all_of(&store, &all).into_iter().for_each(|answer| drop(answer.unwrap()));
    assert!(take_all_of(&store, &all).iter().all(|answer| !answer.as_ref().unwrap().is_allowed()));
    let counted = scripts(&redis, || {
        for one in &all {
            assert!(!one.is_allowed(&store));
        }
        assert!(fresh.is_allowed(&store));
    });
    assert_eq!(counted, 1, "only the fresh key is asked for");
}
