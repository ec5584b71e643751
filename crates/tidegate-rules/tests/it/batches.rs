//! Tests of requests that are decided as a unit, and of futures that are `Send`.

use std::sync::Arc;
use std::time::Duration;

use conformance::clock::TickingClock;
use conformance::keeper::{Keeper as _, States};
use conformance::random::Random;
use tidegate::{Ask, Key, Limit, Map, Subject, Ticks, Timestamp, Verdict, Zone};
use tidegate_rules::{Admission, Attributes, Gate, GateStore};

use crate::requests::{policy, remaining, still_gate};

const TEXT: &str = "
[[rule]]
name = 'forbidden'
when = { path = '/admin' }
decision = 'deny'

[[rule]]
name = 'office'
when = { ip = '10.0.0.0/8' }
decision = 'allow'

[[rule]]
name = 'each'
when = { user = '*' }
key = ['user']
limit = '2/h'
";

fn user(name: &str) -> Attributes<'_> {
    Attributes::new().set("user", name)
}

fn together(gate: &Gate, requests: &[Attributes<'_>]) -> Vec<Admission> {
    gate.admit_all(requests).now().expect("a store in memory answers at once")
}

#[test]
fn all_are_allowed_or_none_is_and_nothing_was_spent() {
    let unmatched = || Attributes::new().set("x", "y");
    let office = || Attributes::new().set("ip", "10.1.2.3");
    let three = Attributes::new().set("user", "eva").cost(tidegate::Cost::of(3));
    for (what, refused) in [
        ("forbidden", vec![user("ana"), Attributes::new().path("/admin"), unmatched(), office()]),
        ("forbidden first", vec![Attributes::new().path("/admin"), user("ana"), unmatched(), office()]),
        ("too much of one", vec![user("ana"), user("ana"), user("ana"), unmatched(), office()]),
        ("impossible", vec![three, user("ana"), unmatched(), office()]),
    ] {
        let gate = still_gate(TEXT);
        let answers = together(&gate, &refused);
        assert!(answers.len() == refused.len() && !answers.iter().all(Admission::is_allowed), "{what}");
        assert!(answers.iter().all(|answer| answer.permits().is_empty()), "{what}");
        for answer in answers {
            let is_allowed = matches!(answer.verdict(), Verdict::Allowed { .. });
            assert_eq!(is_allowed, answer.is_allowed(), "{what}: {answer:?}");
        }
        assert_eq!(remaining(&gate, "each", &user("ana")), 2, "{what}");
        let counted = gate.counts().into_iter().map(|(_, counts)| counts.allowed).sum::<u64>();
        assert_eq!((counted, gate.unmatched()), (0, 0), "{what}");
    }
    let gate = still_gate(TEXT);
    let allowed = together(&gate, &[user("ana"), unmatched(), office(), user("ana"), user("bob")]);
    assert!(allowed.iter().all(Admission::is_allowed) && allowed.len() == 5);
    assert_eq!((remaining(&gate, "each", &user("ana")), gate.unmatched()), (0, 1));
    assert!(together(&gate, &[]).is_empty());
}

#[test]
fn any_thread_may_go_on_with_an_answer_that_another_began() {
    fn is_send(_: &impl Send) {}
    let gate = still_gate(TEXT);
    let request = user("ana");
    is_send(&gate.admit(&request));
    is_send(&gate.admit_all(std::slice::from_ref(&request)));
    is_send(&gate.explain(&request));
    is_send(&gate);
}

#[test]
fn only_requests_that_no_rule_is_for_are_counted_as_such() {
    let gate = still_gate(
        "[[rule]]\nname = 'measured'\nwhen = { user = '*' }\nkey = ['user']\nlimit = '1/h'\nmode = 'shadow'\n\
         [[rule]]\nname = 'watched'\nwhen = { path = '/x' }\ndecision = 'deny'\nmode = 'shadow'\n",
    );
    for request in [user("ana"), user("ana"), Attributes::new().path("/x"), Attributes::new().path("/y")] {
        assert!(together(&gate, &[request])[0].is_allowed());
    }
    assert_eq!(gate.unmatched(), 1);
}

#[test]
fn two_requests_of_one_key_wait_until_both_pass_and_never_if_they_never_do() {
    let gate = still_gate("[[rule]]\nname = 'each'\nkey = ['user']\nlimit = '60/h burst 3'\n");
    let wait = |requests: &[Attributes<'_>]| {
        let answers = together(&gate, requests);
        assert!(!answers.iter().all(Admission::is_allowed));
        answers.iter().map(Admission::verdict).collect::<Vec<_>>()
    };
    let four = [user("ana"), user("ana"), user("ana"), user("ana")];
    assert_eq!(wait(&four), [Verdict::Impossible; 4]);
    assert!(together(&gate, &four[..2]).iter().all(Admission::is_allowed));
    let retry_after = tidegate::MINUTE;
    assert_eq!(wait(&four[..2]), [Verdict::Denied { retry_after }; 2], "one is left, two are wanted");
    let costly = Attributes::new().set("user", "ana").cost(tidegate::Cost::of(u64::MAX));
    assert_eq!(wait(&[costly, user("ana")]), [Verdict::Impossible; 2]);
    assert_eq!(remaining(&gate, "each", &user("ana")), 1);
}

#[test]
fn two_requests_of_one_key_have_a_permit_each() {
    let gate = still_gate("[[rule]]\nname = 'each'\nkey = ['user']\nlimit = '2/h concurrency'\n");
    let answers = together(&gate, &[user("ana"), user("ana")]);
    let permits: Vec<_> = answers.iter().flat_map(|answer| answer.permits().to_vec()).collect();
    assert_eq!(permits.len(), 2);
    assert!(permits.iter().all(|permit| gate.release(permit).now().is_ok_and(|held| held)));
}

#[test]
fn requests_that_stand_or_fall_together_pass_exactly_if_all_pass_one_by_one() {
    let limits =
        ["1/s burst 4", "6/10s fixed-window", "5/2s sliding-log", "8/3s sliding-window", "4/5s concurrency"];
    let stores: [fn(Arc<TickingClock>) -> GateStore; 2] =
        [|clock| Zone::with_clock(1 << 16, clock).into(), |clock| Map::with_clock(clock).into()];
    let seed = Random::seed_from_environment();
    for (limit, store) in limits.iter().flat_map(|limit| stores.iter().map(move |store| (limit, store))) {
        let clock = Arc::new(TickingClock::new());
        let rule = format!("[[rule]]\nname = 'each'\nkey = ['user']\nlimit = '{limit}'\n");
        let gate = Gate::new(policy(&rule), store(clock.clone())).expect("the store supports the policy");
        let limit: Limit = limit.parse().expect("a limit");
        let (mut alone, mut random) = (States::default(), Random::new(seed));
        let (mut now, mut passed, mut denied) = (Duration::from_secs(1), 0, 0);
        for round in 0..400 {
            now += Duration::from_millis(random.between(0, 900));
            let users: Vec<_> =
                (0..random.between(1, 6)).map(|_| format!("u{}", random.between(0, round / 100))).collect();
            let requests: Vec<_> = users.iter().map(|name| user(name)).collect();
            clock.set(Timestamp::after_epoch(now));
            clock.tick(conformance::ticks(1));
            let all = together(&gate, &requests).iter().all(Admission::is_allowed);
            clock.tick(Ticks::ZERO);
            let mut after = alone.clone();
            after.set_time(Timestamp::after_epoch(now));
            let keys: Vec<_> = users.iter().map(|name| Key::new(name.as_str())).collect();
            let one_by_one =
                keys.iter().all(|key| after.take(Subject::new("each", key, &limit), Ask::ONE).0.is_allowed());
            assert_eq!(all, one_by_one, "{users:?} under {limit} in round {round}, seed {seed}");
            if one_by_one {
                alone = after;
                passed += 1;
            } else {
                denied += 1;
            }
        }
        assert!(passed > 40 && denied > 40, "{limit}: {passed} passed, {denied} did not");
    }
}
