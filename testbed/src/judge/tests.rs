//! What is planted is seen, and a bound that is exactly reached is none that is broken.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn milliseconds(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn decided(asked: u64, answered: u64, by: By) -> Decided {
    let (asked, answered) = (milliseconds(asked), milliseconds(answered));
    Decided { asked, answered, key: "ana".to_owned(), is_allowed: true, cost: 1, by }
}

/// Admitted by Redis, at an instant.
fn at(time: u64) -> Decided {
    decided(time, time, By::Redis)
}

/// A burst of 3, and 10 per second.
fn ten_per_second() -> Bound {
    Bound::new(3, 10, SECOND)
}

#[test]
fn a_bound_that_is_exactly_reached_holds() {
    let log = [0, 0, 0, 100, 200, 300].map(at);
    let seen = Judge::new(log).shared(&ten_per_second()).unwrap();
    assert_eq!(seen, Seen { keys: 1, admitted: 6, room: Some(0) });
}

#[test]
fn one_too_many_is_seen_with_its_interval() {
    let log = [0, 5_000, 5_000, 5_000, 5_100, 5_199].map(at);
    let breach = Judge::new(log).shared(&ten_per_second()).unwrap_err();
    assert_eq!(breach.to_string(), "key \"ana\": 5 admitted from 5s to 5.199s; at most 4 may be");
}

#[test]
fn one_nanosecond_too_early_is_seen() {
    let early = |early: u64| {
        let mut last = at(100);
        last.asked -= Duration::from_nanos(early);
        last.answered -= Duration::from_nanos(early);
        Judge::new([at(0), at(0), at(0), last])
    };
    assert!(early(0).shared(&ten_per_second()).is_ok());
    assert!(early(1).shared(&ten_per_second()).is_err());
    assert!(early(1).shared(&ten_per_second().slack(Duration::from_nanos(1))).is_ok());
}

#[test]
fn a_decision_counts_only_where_it_certainly_was() {
    // Asked early or answered late: it may have been decided a second apart from the others.
    for doubtful in [decided(0, 1_000, By::Redis), decided(1_000, 2_000, By::Redis)] {
        let log = [at(1_000), at(1_000), at(1_000), doubtful];
        assert!(Judge::new(log).shared(&ten_per_second()).is_ok());
    }
    let sure = decided(1_000, 1_000, By::Redis);
    assert!(Judge::new([at(1_000), at(1_000), at(1_000), sure]).shared(&ten_per_second()).is_err());
    // In an interval that is long enough for it, it counts again.
    let long: Vec<_> = (0..14).map(|_| decided(0, 1_000, By::Redis)).collect();
    assert!(Judge::new(long[..13].to_vec()).shared(&ten_per_second()).is_ok());
    assert!(Judge::new(long).shared(&ten_per_second()).is_err());
}

#[test]
fn costs_count_as_what_they_weigh_and_refusals_as_nothing() {
    let mut heavy = at(0);
    heavy.cost = 3;
    assert!(Judge::new([heavy.clone()]).shared(&ten_per_second()).is_ok());
    let mut refused = at(0);
    refused.is_allowed = false;
    assert!(Judge::new([heavy.clone(), refused]).shared(&ten_per_second()).is_ok());
    assert!(Judge::new([heavy, at(0)]).shared(&ten_per_second()).is_err());
}

#[test]
fn every_key_has_a_bound_of_its_own() {
    let mut bob = at(0);
    bob.key = "bob".to_owned();
    let seen = Judge::new([at(0), at(0), at(0), bob.clone()]).shared(&ten_per_second()).unwrap();
    assert_eq!((seen.keys, seen.admitted), (2, 4));
    let breach = Judge::new([at(0), bob.clone(), bob.clone(), bob.clone(), bob]).shared(&ten_per_second());
    assert!(breach.unwrap_err().to_string().starts_with("key \"bob\""));
}

#[test]
fn a_loss_gives_one_burst_where_it_may_have_been_and_nowhere_else() {
    let bound = ten_per_second().loss(milliseconds(1_000), milliseconds(1_500));
    let (twice, once_more) = (vec![at(1_000); 6], vec![at(1_000); 7]);
    assert_eq!(Judge::new(twice).shared(&bound).unwrap().room, Some(0));
    assert!(Judge::new(once_more).shared(&bound).is_err());
    for outside in [999, 1_501] {
        assert!(Judge::new(vec![at(outside); 4]).shared(&bound).is_err());
    }
    let two = ten_per_second().loss(Duration::ZERO, SECOND).loss(Duration::ZERO, SECOND);
    assert!(Judge::new(vec![at(500); 9]).shared(&two).is_ok());
    assert!(Judge::new(vec![at(500); 10]).shared(&two).is_err());
}

#[test]
fn a_split_gives_each_further_side_what_one_has() {
    let bound = ten_per_second().split(milliseconds(1_000), milliseconds(1_500), 2);
    // One side has its burst at once; the other one has also what half a second brings.
    assert!(Judge::new(vec![at(1_200); 3 + 3 + 5]).shared(&bound).is_ok());
    assert!(Judge::new(vec![at(1_200); 3 + 3 + 5 + 1]).shared(&bound).is_err());
}

#[test]
fn nodes_on_their_own_share_the_limit_but_have_one_each_at_least() {
    let local = |count: usize| Judge::new(vec![decided(0, 0, By::Local); count]);
    let bound = Bound::new(10, 10, SECOND);
    // Four nodes have two each.
    assert_eq!(local(8).local(&bound, 4).unwrap().room, Some(0));
    assert!(local(9).local(&bound, 4).is_err());
    // Twenty have one each.
    assert!(local(20).local(&bound, 20).is_ok());
    assert!(local(21).local(&bound, 20).is_err());
    // A restart of all of them is a loss.
    assert!(local(16).local(&bound.clone().loss(Duration::ZERO, SECOND), 4).is_ok());
    assert!(local(17).local(&bound.loss(Duration::ZERO, SECOND), 4).is_err());
}

#[test]
fn who_decided_says_which_bound_holds() {
    let log = vec![at(0), at(0), at(0), decided(0, 0, By::Local), decided(0, 0, By::Open)];
    let judge = Judge::new(log);
    assert_eq!(judge.shared(&ten_per_second()).unwrap().admitted, 3);
    assert_eq!(judge.local(&ten_per_second(), 1).unwrap().admitted, 1);
    assert!(judge.all(&ten_per_second()).is_err());
}

#[test]
fn a_closed_rule_admits_no_request() {
    let mut refused = decided(0, 1, By::Closed);
    refused.is_allowed = false;
    assert_eq!(Judge::new([refused.clone(), at(0)]).closed(), Ok(()));
    let admitted = decided(7, 8, By::Closed);
    let breach = Judge::new([refused, admitted]).closed().unwrap_err();
    assert_eq!(breach, Breach::Closed { key: "ana".to_owned(), asked: milliseconds(7) });
}

#[test]
fn no_request_is_admitted_in_an_outage() {
    let outage = (milliseconds(10), milliseconds(20));
    let judge = |asked, answered| {
        Judge::new([decided(asked, answered, By::Redis)]).nothing_between(outage.0, outage.1)
    };
    assert!(judge(9, 15).is_ok() && judge(15, 21).is_ok());
    assert!(judge(10, 20).is_err());
}

#[test]
fn what_is_open_is_counted() {
    let judge = Judge::new([decided(0, 1, By::Open), decided(1, 2, By::Open), at(3)]);
    assert_eq!(judge.open(2), Ok(()));
    assert_eq!(judge.open(1), Err(Breach::Open { admitted: 2, counted: 1 }));
}

#[test]
fn what_was_not_heard_of_is_charged_once_at_most() {
    let mut denied = at(0);
    denied.is_allowed = false;
    let judge = Judge::new([at(0), denied, decided(0, 1, By::Closed), decided(0, 1, By::Local)]);
    for (charged, is_well) in [(0, false), (1, true), (2, true), (3, true), (4, false)] {
        assert_eq!(judge.charged("ana", charged).is_ok(), is_well, "{charged}");
    }
    assert!(judge.charged("bob", 0).is_ok() && judge.charged("bob", 1).is_err());
}

#[test]
fn an_empty_log_is_seen_to_be_empty() {
    assert_eq!(Judge::new([]).shared(&ten_per_second()), Ok(Seen { keys: 0, admitted: 0, room: None }));
}

/// Every pair of a beginning and an end, looked at one by one.
fn brute(log: &[Decided], losses: &[(u64, u64)]) -> Option<i64> {
    let mut least = None;
    for from in log.iter().map(|decided| decided.asked) {
        for to in log.iter().map(|decided| decided.answered).filter(|to| *to >= from) {
            let is_in = |decided: &&Decided| decided.asked >= from && decided.answered <= to;
            let admitted: u64 = log.iter().filter(is_in).map(|decided| decided.cost).sum();
            let touches = |loss: &&(u64, u64)| milliseconds(loss.0) <= to && milliseconds(loss.1) >= from;
            let bursts = 1 + losses.iter().filter(touches).count() as i64;
            // Ten per second are one per hundred milliseconds.
            let room = 100 * (3 * bursts - admitted as i64) + (to - from).as_millis() as i64;
            least = Some(least.map_or(room, |least: i64| least.min(room)));
        }
    }
    least
}

#[test]
fn the_sweep_sees_what_looking_at_every_interval_sees() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut below = |bound: u64| random.u64(..bound);
    let (mut held, mut broken) = (0, 0);
    for _ in 0..3_000 {
        let mut log = Vec::new();
        for _ in 0..below(12) {
            let asked = below(1_000);
            let mut one = decided(asked, asked + below(300), By::Redis);
            one.cost = 1 + below(3);
            log.push(one);
        }
        let mut losses = Vec::new();
        for _ in 0..below(3) {
            let from = below(1_000);
            losses.push((from, from + below(300)));
        }
        let bound = losses
            .iter()
            .fold(ten_per_second(), |bound, (from, to)| bound.loss(milliseconds(*from), milliseconds(*to)));
        match (Judge::new(log.clone()).shared(&bound), brute(&log, &losses)) {
            (Ok(seen), least) => {
                assert_eq!(
                    seen.room,
                    least.map(|room| u64::try_from(room).unwrap() / 100),
                    "{log:?} {losses:?}"
                );
                held += 1;
            }
            (Err(_), least) => {
                assert!(least.is_some_and(|room| room < 0), "{log:?} {losses:?}");
                broken += 1;
            }
        }
    }
    assert!(held > 300 && broken > 300, "{held} held, {broken} broken");
}
