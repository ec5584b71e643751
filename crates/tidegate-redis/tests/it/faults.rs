//! Tests of a server that is slow, disconnected, silent, restarted without data or misconfigured.

use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use testbed::{Admission, Afterwards, Direction, Flow, Proxy};
use tidegate::{Ask, Decisions, HOUR, SECOND, Store as _, StoreFuture, Subject};
use tidegate_redis::RedisStore;

use crate::setup::{Someone, eventually, forgetful, given_time, open, options, reason, redis, scripts, wait};

/// The deadline of tests in which it is missed on purpose.
const SHORT: Duration = Duration::from_millis(20);

fn hasty(url: &str) -> RedisStore {
    open(options(url).deadline(SHORT).caches_denials(false))
}

/// Retries until the store decides.
fn recovers(store: &RedisStore, someone: &Someone) {
    eventually("the store decides again", || someone.take(store).ok());
}

#[test]
fn whatever_a_server_says_instead_becomes_an_error_and_passes() {
    const SAID: [&str; 10] = [
        "-READONLY You can't write against a read only replica.",
        "-LOADING Redis is loading the dataset in memory",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "-CLUSTERDOWN The cluster is down",
        "-BUSY Redis is busy running a script.",
        "-OOM command not allowed when used memory > 'maxmemory'.",
        "-NOAUTH Authentication required.",
        "-NOREPLICAS Not enough good replicas to write.",
        "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
        "-ERR something unheard of",
    ];
    let rounds = if std::env::var_os("TIDEGATE_FULL").is_some() { 1000 } else { 5 };
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    proxy.only_for(&["EVALSHA", "EVAL"]);
    let store = forgetful(&proxy.url());
    let ana = Someone::new("ana", "1000000/h");
    assert!(ana.is_allowed(&store));
    for said in SAID {
        for _ in 0..rounds {
            proxy.answer(1, said);
            let error = ana.take(&store).expect_err(said);
            assert!(error.is_retryable(), "{said}: nothing was done");
            let code = said[1..].split(' ').next().unwrap();
            assert!(reason(&error).contains(code), "{said}: {}", reason(&error));
            recovers(&store, &ana);
        }
    }
}

#[test]
fn a_slot_on_its_way_is_asked_for_again() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let store = forgetful(&proxy.url());
    let ana = Someone::new("ana", "100/h");
    assert!(ana.is_allowed(&store));
    proxy.only_for(&["EVALSHA"]);
    proxy.answer(3, "-TRYAGAIN Multiple keys request during rehashing of slot");
    assert!(ana.is_allowed(&store));
    assert_eq!(proxy.counters().answered, 3);
}

#[test]
fn a_script_that_was_forgotten_is_sent_along() {
    let redis = redis();
    let store = forgetful(&redis.url());
    for limit in ["1000/h", "1000/h sliding-log", "1000/h pacer", "9/h concurrency"] {
        let ana = Someone::new(limit, limit);
        for _ in 0..5 {
            redis.command(&["SCRIPT", "FLUSH"]);
            assert!(ana.take(&store).is_ok(), "{limit}");
        }
    }
    assert!(store.status().scripts_sent >= 20);
    assert_eq!(store.status().rejected, 0);
}

/// The server has executed the call, and its reply is lost.
#[test]
fn what_was_not_answered_is_spent_at_most_once() {
    let rounds: u64 = if std::env::var_os("TIDEGATE_FULL").is_some() { 10_000 } else { 100 };
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    proxy.only_for(&["EVALSHA", "EVAL"]);
    let (proxied, direct) = (hasty(&proxy.url()), forgetful(&redis.url()));
    let ana = Someone::new("ana", "1000000/d");
    assert!(ana.is_allowed(&direct), "the server knows the script");
    let (mut asked, mut unknown) = (0, 0);
    for round in 0..rounds {
        recovers(&proxied, &Someone::new("bob", "1000000/d"));
        proxy.eat_replies(1, if round % 2 == 0 { Afterwards::Cut } else { Afterwards::Silence });
        asked += 1;
        match ana.take(&proxied) {
            Err(error) if !error.is_retryable() => unknown += 1,
            Err(_) => {}
            Ok(_) => {}
        }
        proxy.clear();
        if round % 2 == 1 {
            proxy.cut();
        }
    }
    let left = wait(direct.peek(ana.subject(), Ask::ONE)).unwrap().remaining();
    // The refill meanwhile is a few units of a million a day.
    let spent = 1_000_000 - left;
    assert!(unknown > 0, "no answer was ever lost");
    assert!(spent <= asked + 1, "{asked} were asked, and {spent} spent");
}

#[test]
fn a_server_that_does_not_answer_is_given_up_and_found_again() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let store = hasty(&proxy.url());
    let ana = Someone::new("ana", "1000000/h");
    recovers(&store, &ana);
    redis.stop();
    let mut failures = Vec::new();
    for _ in 0..200 {
        failures.push(ana.take(&store).expect_err("no server answers"));
    }
    let unknown = failures.iter().filter(|error| !error.is_retryable()).count();
    assert!((1..20).contains(&unknown), "{unknown} of 200 waited: the others failed at once");
    assert!(!store.status().is_available);
    assert!(proxy.counters().open <= 3, "{:?}", proxy.counters());
    redis.resume();
    recovers(&store, &ana);
    assert!(store.status().is_available);
}

#[test]
fn cuts_half_closed_ways_and_black_holes_end_by_themselves() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    let store = hasty(&proxy.url());
    let ana = Someone::new("ana", "1000000/h");
    recovers(&store, &ana);
    proxy.cut();
    recovers(&store, &ana);
    for (direction, flow) in [
        (Direction::Replies, Flow::Hold),
        (Direction::Requests, Flow::Hold),
        (Direction::Replies, Flow::Swallow),
        (Direction::Requests, Flow::Swallow),
    ] {
        proxy.flow(direction, flow);
        eventually("an error", || ana.take(&store).err());
        eventually("it is given up", || {
            (!store.status().is_available).then(|| drop(ana.take(&store))).or_else(|| {
                let _ = ana.take(&store);
                None
            })
        });
        proxy.clear();
        proxy.cut();
        recovers(&store, &ana);
    }
    for admission in [Admission::Refuse, Admission::BlackHole] {
        proxy.admit(admission);
        proxy.cut();
        eventually("an error", || ana.take(&store).err());
        assert!(proxy.counters().open <= 3, "{:?}", proxy.counters());
        proxy.admit(Admission::Accept);
        proxy.cut();
        recovers(&store, &ana);
    }
    assert_eq!(store.status().in_flight, 0);
}

#[test]
fn a_server_that_is_not_there_yet_is_used_when_it_comes() {
    let redis = redis();
    redis.kill();
    let store = forgetful(&redis.url());
    let ana = Someone::new("ana", "5/h");
    let error = ana.take(&store).expect_err("no server is there");
    assert!(reason(&error).contains("connection refused; start the server there"), "{}", reason(&error));
    assert!(wait(store.ready()).is_err());
    redis.restart();
    recovers(&store, &ana);
    wait(store.ready()).expect("it is there");
}

#[test]
fn no_more_are_under_way_than_allowed() {
    let redis = redis();
    let store = open(options(&redis.url()).max_in_flight(4).caches_denials(false));
    let ana = Someone::new("ana", "1000000/h");
    assert!(ana.is_allowed(&store));
    redis.stop();
    let answers = wait(async {
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let (store, ana) = (store.clone(), ana.clone());
                async move { store.take(&[(ana.subject(), Ask::ONE)]).await.map(drop) }
            })
            .collect();
        let mut set = tokio::task::JoinSet::new();
        for task in tasks {
            set.spawn(task);
        }
        let mut first = Vec::new();
        for _ in 0..6 {
            first.push(set.join_next().await.expect("ten were asked").expect("none panicked"));
        }
        redis.resume();
        (first, set.join_all().await)
    });
    for refused in answers.0 {
        let error = refused.expect_err("only four may be under way");
        assert!(reason(&error).contains("max_in_flight"), "{}", reason(&error));
    }
    assert!(answers.1.iter().all(Result::is_ok), "the others were answered");
    assert_eq!((store.status().overloaded, store.status().in_flight), (6, 0));
}

#[test]
fn what_comes_together_leaves_together() {
    let redis = redis();
    let store = forgetful(&redis.url());
    let ana = Someone::new("ana", "1000000/h");
    assert!(ana.is_allowed(&store));
    let reads = || redis.information("stats", "total_reads_processed");
    let (before, count) = (reads(), 1000_usize);
    wait(async {
        let mut set = tokio::task::JoinSet::new();
        for _ in 0..count {
            let (store, ana) = (store.clone(), ana.clone());
            set.spawn(async move { store.take(&[(ana.subject(), Ask::ONE)]).await.map(drop) });
        }
        assert!(set.join_all().await.iter().all(Result::is_ok));
    });
    let read = reads() - before;
    println!("{count} questions were read in {read} pieces");
    assert!(read < count * 9 / 10, "{count} questions were read in {read} pieces");
}

fn people(count: usize, limit: &str) -> Vec<Someone> {
    (0..count).map(|nth| Someone::new(&format!("{limit} {nth}"), limit)).collect()
}

fn take_all(store: &RedisStore, people: &[Someone]) -> Decisions {
    let asks: Vec<_> = people.iter().map(|person| (person.subject(), Ask::ONE)).collect();
    wait(store.take(&asks)).unwrap_or_else(|error| panic!("{}", reason(&error)))
}

fn left(store: &RedisStore, person: &Someone) -> u64 {
    wait(store.peek(person.subject(), Ask::ONE))
        .unwrap_or_else(|error| panic!("{}", reason(&error)))
        .remaining()
}

#[test]
fn one_script_decides_about_128_limits_and_more_are_looked_at_before_they_are_taken() {
    let redis = redis();
    let store = forgetful(&redis.url());
    for limit in ["5/h", "5/h sliding-log", "5/h fixed-window", "5/h sliding-window", "5/h concurrency"] {
        let people = people(129, limit);
        // The server has the scripts after this.
        assert!(take_all(&store, &people).is_allowed(), "{limit}");
        assert_eq!(scripts(&redis, || assert!(take_all(&store, &people[..128]).is_allowed())), 1, "{limit}");
        let taken = || {
            let decisions = take_all(&store, &people);
            assert!(decisions.is_allowed(), "{limit}");
            assert_eq!(decisions.each().len(), 129);
            assert_eq!(
                [decisions.each()[0].remaining(), decisions.each()[128].remaining()],
                [2, 3],
                "{limit}"
            );
        };
        assert_eq!(scripts(&redis, taken), 4, "{limit}: two to look, two to take");
        let is_held = limit.ends_with("concurrency");
        assert_eq!(take_all(&store, &people[128..]).each()[0].permit().is_some(), is_held, "{limit}");
    }
}

#[test]
fn more_limits_than_one_script_decides_are_taken_all_or_none() {
    let redis = redis();
    let store = forgetful(&redis.url());
    for limit in ["5/h", "5/h sliding-log", "5/h pacer burst 5h", "5/h concurrency"] {
        let people = people(300, limit);
        let (first, last) = (&people[0], &people[299]);
        let before = left(&store, first);
        let spent = (0..).find(|_| !last.is_allowed(&store)).expect("it is spent at last");
        let refused = take_all(&store, &people);
        assert_eq!((refused.is_allowed(), refused.binding()), (false, Some(299)), "{limit} after {spent}");
        assert_eq!(refused.each()[0].remaining(), before, "{limit}");
        assert_eq!(left(&store, first), before, "{limit}: nothing was spent");
        assert!(take_all(&store, &people[..299]).is_allowed(), "{limit}");
        assert_eq!(left(&store, first), before - 1, "{limit}");
    }
    assert_eq!(store.status().given_back, 0, "a denial is found by looking");
}

#[test]
fn a_limit_that_counts_denials_counts_that_of_many_once() {
    let redis = redis();
    let (store, clock) = given_time(&redis.url());
    let mut people = people(199, "9/h");
    let strict = Someone::new("strict", "1/h sliding-log count-denied");
    assert!(strict.is_allowed(&store));
    people.push(strict.clone());
    clock.advance(SECOND);
    let reset = || wait(store.peek(strict.subject(), Ask::ONE)).unwrap().reset_after();
    assert_eq!(reset(), HOUR - SECOND);
    redis.command(&["CONFIG", "RESETSTAT"]);
    assert!(!take_all(&store, &people).is_allowed());
    let added = redis.command(&["INFO", "commandstats"]);
    let added = added.lines().find(|line| line.starts_with("cmdstat_zadd:calls=1,"));
    assert!(added.is_some() && reset() == HOUR, "one denial is one entry, of its own time");
    assert_eq!(left(&store, &people[0]), 9);
}

/// Polls a take of 200 limits until two scripts have peeked and one has taken the first 128 limits.
///
/// The fourth script is queued when the take is polled again, and sent at the poll after that. Returns `None` if two
/// scripts were answered within one poll, as happens on a busy machine: then nothing can happen in between.
fn half_taken<'a>(
    store: &'a RedisStore,
    asks: &'a [(Subject<'a>, Ask)],
) -> Option<Pin<Box<StoreFuture<'a, Decisions>>>> {
    let mut context = Context::from_waker(Waker::noop());
    let mut taking = Box::pin(store.take(asks));
    let before = store.status().answered;
    for due in before + 1..=before + 3 {
        if (0..2).any(|_| taking.as_mut().poll(&mut context).is_ready()) {
            return None;
        }
        eventually("the script is over", || (store.status().answered >= due).then_some(()));
        if store.status().answered != due {
            drop(wait(taking));
            return None;
        }
    }
    Some(taking)
}

#[test]
fn what_others_take_between_two_scripts_is_found_and_all_is_given_back() {
    let redis = redis();
    let (store, other) = (forgetful(&redis.url()), forgetful(&redis.url()));
    let people = people(200, "1/h");
    let reset = || {
        for person in &people {
            wait(other.reset(person.subject())).unwrap();
        }
    };
    // The server has the scripts after this, and the connections are open.
    for store in [&store, &other] {
        assert!(take_all(store, &people).is_allowed());
        reset();
    }
    let asks: Vec<_> = people.iter().map(|person| (person.subject(), Ask::ONE)).collect();
    for _ in 0..100 {
        reset();
        let before = store.status();
        let Some(taking) = half_taken(&store, &asks) else { continue };
        assert_eq!(left(&other, &people[0]), 0, "the first part is taken");
        assert!(people[199].is_allowed(&other), "another store is faster with the second");
        let refused = wait(taking).unwrap_or_else(|error| panic!("{}", reason(&error)));
        assert_eq!((refused.is_allowed(), refused.binding()), (false, Some(199)));
        assert_eq!(refused.each()[0].remaining(), 1, "reported as it is after that");
        assert_eq!((left(&other, &people[0]), left(&other, &people[199])), (1, 0));
        assert_eq!(store.status().given_back, before.given_back + 128);
        return;
    }
    panic!("two scripts were answered within one poll, a hundred times");
}

/// A server without memory rejects the second script, and then the returns of the first: a retry would charge twice.
#[test]
fn a_request_whose_takes_do_not_come_back_is_not_retryable() {
    let redis = redis();
    let store = forgetful(&redis.url());
    let people = people(200, "1000/365d");
    let asks: Vec<_> = people.iter().map(|person| (person.subject(), Ask::ONE)).collect();
    for _ in 0..100 {
        // The server has the scripts after this, and each state owes something, so a return has to write it.
        assert!(take_all(&store, &people).is_allowed());
        let before = (left(&store, &people[0]), left(&store, &people[199]));
        let Some(taking) = half_taken(&store, &asks) else { continue };
        redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
        let error = wait(taking).expect_err("the second script is rejected");
        redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!((left(&store, &people[0]), left(&store, &people[199])), (before.0 - 1, before.1));
        assert!(!error.is_retryable(), "{}", reason(&error));
        return;
    }
    panic!("two scripts were answered within one poll, a hundred times");
}

#[test]
fn as_many_limits_as_may_be_asked_for_are_taken_together_and_one_more_is_an_error() {
    let redis = redis();
    let store = forgetful(&redis.url());
    let people = people(4097, "5/h");
    assert_eq!(store.most_together(), 4096);
    let most = take_all(&store, &people[..4096]);
    assert!(most.is_allowed() && most.each().iter().all(|each| each.remaining() == 4));
    let asks: Vec<_> = people.iter().map(|person| (person.subject(), Ask::ONE)).collect();
    let error = wait(store.take(&asks)).expect_err("one too many");
    assert!(error.is_unfit() && reason(&error).contains("at most 4096"), "{}", reason(&error));
    assert_eq!(left(&store, &people[0]), 4);
}

/// A host name that now leads to another server.
#[test]
fn a_server_that_became_a_replica_is_left() {
    let (old, new) = (redis(), redis());
    let proxy = Proxy::start(old.address());
    let store = forgetful(&proxy.url());
    let ana = Someone::new("ana", "1000000/h");
    assert!(ana.is_allowed(&store));
    proxy.retarget(new.address());
    let (host, port) = (new.address().ip().to_string(), new.address().port().to_string());
    old.command(&["REPLICAOF", &host, &port]);
    let error = eventually("the old one refuses", || ana.take(&store).err());
    assert!(error.is_retryable(), "{}", reason(&error));
    recovers(&store, &ana);
    assert_eq!(new.command(&["DBSIZE"]), "2", "the state, and the table that lists its limit");
}

#[test]
fn a_short_stall_costs_no_connection() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    // A connection is given up after five deadlines: there are seconds to end the stall before.
    let deadline = Duration::from_secs(1);
    let store = open(options(&proxy.url()).deadline(deadline).caches_denials(false));
    let ana = Someone::new("ana", "1000000/h");
    recovers(&store, &ana);
    let opened = proxy.counters().opened;
    redis.stop();
    let error = ana.take(&store).expect_err("no server answers");
    redis.resume();
    assert!(!error.is_retryable());
    recovers(&store, &ana);
    assert_eq!(proxy.counters().opened, opened, "the same connection goes on");
}

#[test]
fn a_server_that_refuses_everything_is_not_called_available() {
    let redis = redis();
    let store = forgetful(&redis.url());
    let ana = Someone::new("ana", "1000000/h");
    assert!(ana.is_allowed(&store) && store.status().is_available);
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = Someone::new("bob", "5/h").take(&store).expect_err("there is no memory");
    assert!(reason(&error).contains("OOM"), "{}", reason(&error));
    let status = store.status();
    assert!(!status.is_available && status.what.contains("maxmemory"), "{status:?}");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(ana.is_allowed(&store) && store.status().is_available);
}
