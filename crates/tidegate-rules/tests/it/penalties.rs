//! Tests of penalties: strikes, bans, their ends, and what they leave alone.

mod batches;
mod evaluator;
mod kept;
mod random_policies;
mod reload;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Ban, Cost, DecidedBy, HOUR, MINUTE, ManualClock, Map, SECOND, Verdict};
use tidegate_rules::{Admission, Attributes, Binding, Gate, GateStore, RuleCounts};

use crate::changed_numbers::{COUNTING, ana, limit_of};
use crate::faulty::{Health, one_of};
use crate::requests::{admit, policy, remaining, stores};

/// Three denials within a minute are a ban of ten minutes.
const THREE: &str = "{ after = 3, within = '1m', for = '10m' }";
const BAN: Duration = Duration::from_secs(600);
const NANOSECOND: Duration = Duration::from_nanos(1);

/// The answer of a limit to a request, with the wait that it reports; none if no wait is long enough.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Allowed,
    /// Denied without a ban.
    Denied(Option<Duration>),
    /// Denied, and the ban begins.
    Begun(Option<Duration>),
    /// Denied during the ban.
    Banned(Option<Duration>),
}

const BEGUN: Said = Said::Begun(Some(BAN));
const BANNED: Said = Said::Banned(Some(BAN));

fn said(binding: &Binding) -> Said {
    let wait = binding.decision.retry_after();
    match (binding.decision.ban(), binding.decision.is_allowed()) {
        (Some(ban), true) => panic!("{ban:?} of an allowed request"),
        (None, true) => Said::Allowed,
        (None, false) => Said::Denied(wait),
        (Some(Ban::Begun), false) => Said::Begun(wait),
        (Some(Ban::InForce), false) => Said::Banned(wait),
    }
}

/// Returns the answer of the reported limit.
fn of(admission: &Admission) -> Said {
    said(admission.binding().expect("a limit decided"))
}

fn ask(gate: &Gate, request: &Attributes<'_>) -> Said {
    of(&admit(gate, request))
}

/// Returns true if the answer is a denial without a ban.
fn is_plain(said: Said) -> bool {
    matches!(said, Said::Denied(_))
}

fn bob() -> Attributes<'static> {
    Attributes::new().set("user", "bob")
}

/// Returns a rule by user with this limit and this penalty.
fn rule(name: &str, limit: &str, penalty: &str) -> String {
    format!("[[rule]]\nname = '{name}'\nkey = ['user']\nlimit = '{limit}'\npenalty = {penalty}\n")
}

fn login(penalty: &str) -> String {
    rule("login", "1/2m", penalty)
}

/// Creates a gate on a store in memory.
fn gate_on(store: impl Into<GateStore>, text: &str) -> Gate {
    Gate::new(policy(text), store).expect("the store supports the policy")
}

/// Calls the test with a gate on each store, with its clock, which is not at its beginning.
fn each_store(text: &str, mut test: impl FnMut(&str, &Gate, &ManualClock)) {
    for (name, store, clock) in stores() {
        clock.advance(48 * HOUR);
        test(name, &gate_on(store, text), &clock);
    }
}

fn counts(gate: &Gate, rule: &str) -> RuleCounts {
    gate.counts().into_iter().find(|(known, _)| known.name() == rule).expect("there is such a rule").1
}

fn reset(gate: &Gate, rule: &str, key: &Attributes<'_>) -> bool {
    gate.rule_key(rule, key).expect("there is such a key").reset().now().expect("memory answers at once")
}

/// Returns the keys that the gate lists as banned, each with its rule and the rest of its ban.
fn banned(gate: &Gate, rule: Option<&str>) -> Vec<(String, String, Duration)> {
    let bans = gate.bans(rule, usize::MAX).now().expect("memory answers at once");
    bans.into_iter().map(|ban| (ban.rule.to_string(), ban.key.join(" "), ban.ends_in)).collect()
}

/// Spends the one unit of a limit, then has the key denied so often.
fn denied(gate: &Gate, key: &Attributes<'_>, times: usize) {
    assert_eq!(ask(gate, key), Said::Allowed);
    for _ in 0..times {
        assert!(is_plain(ask(gate, key)));
    }
}

/// Bans a key under `login`, whose one unit is spent first.
fn ban(gate: &Gate, key: &Attributes<'_>) {
    denied(gate, key, 2);
    assert_eq!(ask(gate, key), BEGUN);
}

#[test]
fn the_last_strike_within_the_span_begins_a_ban_under_every_algorithm() {
    let limits = COUNTING.map(|algorithm| limit_of(1, "2m", algorithm));
    let others = [
        "1/2m pacer",
        "1/2m concurrency",
        "1/2m sliding-log count-denied",
        "1/2m sliding-window mode estimate",
    ];
    for limit in limits.iter().map(String::as_str).chain(others) {
        each_store(&rule("a", limit, THREE), |store, gate, clock| {
            let what = format!("{limit} on a {store}");
            denied(gate, &ana(), 1);
            clock.advance(10 * SECOND);
            assert!(is_plain(ask(gate, &ana())), "{what}");
            clock.advance(49 * SECOND);
            assert_eq!(ask(gate, &ana()), BEGUN, "{what}: the first of three was 59 seconds ago");
            assert_eq!(ask(gate, &bob()), Said::Allowed, "{what}: another key");
            for rest in [BAN, BAN - MINUTE, BAN / 2, NANOSECOND] {
                clock.advance(BAN - rest);
                let after = ask(gate, &ana());
                assert!(
                    matches!(after, Said::Banned(Some(wait)) if wait >= rest),
                    "{what}: {rest:?} {after:?}"
                );
                if rest == BAN || !limit.contains("count-denied") {
                    assert_eq!(after, Said::Banned(Some(rest)), "{what}");
                }
                clock.step_back(BAN - rest);
            }
            clock.advance(BAN);
            let after = ask(gate, &ana());
            assert!(matches!(after, Said::Allowed) || limit.contains("count-denied"), "{what}: {after:?}");
            let RuleCounts { allowed, denied, bans, banned, .. } = counts(gate, "a");
            assert_eq!((denied, bans, banned), (7, 1, 4), "{what}");
            assert!(allowed >= 2, "{what}");
        });
    }
}

#[test]
fn a_strike_counts_until_exactly_the_span_has_passed() {
    each_store(&rule("a", "1/d", THREE), |store, gate, clock| {
        denied(gate, &ana(), 1);
        clock.advance(MINUTE / 2);
        assert!(is_plain(ask(gate, &ana())));
        clock.advance(MINUTE / 2);
        assert!(is_plain(ask(gate, &ana())), "{store}: the first left at this instant");
        clock.advance(MINUTE / 2 - NANOSECOND);
        let day = 24 * HOUR - 3 * MINUTE / 2 + NANOSECOND;
        assert_eq!(ask(gate, &ana()), Said::Begun(Some(day)), "{store}: the wait for the limit is longer");
    });
}

#[test]
fn the_longer_of_the_ban_and_the_wait_for_the_limit_is_reported() {
    each_store(&rule("a", "1/20m", THREE), |store, gate, clock| {
        denied(gate, &ana(), 2);
        assert_eq!(ask(gate, &ana()), Said::Begun(Some(20 * MINUTE)), "{store}: the limit");
        clock.advance(5 * MINUTE);
        assert_eq!(ask(gate, &ana()), Said::Banned(Some(15 * MINUTE)), "{store}: the limit");
        clock.advance(5 * MINUTE);
        assert_eq!(ask(gate, &ana()), Said::Denied(Some(10 * MINUTE)), "{store}: the ban is over");
        clock.advance(10 * MINUTE - NANOSECOND);
        assert!(is_plain(ask(gate, &ana())));
        clock.advance(NANOSECOND);
        assert_eq!(ask(gate, &ana()), Said::Allowed, "{store}");
    });
    each_store(&rule("a", "2/10m", "{ after = 1, within = '1m', for = '12m' }"), |store, gate, clock| {
        assert_eq!([ask(gate, &ana()), ask(gate, &ana())], [Said::Allowed; 2]);
        assert_eq!(ask(gate, &ana()), Said::Begun(Some(12 * MINUTE)), "{store}");
        let two = ana().cost(Cost::of(2));
        assert_eq!(
            ask(gate, &two),
            Said::Banned(Some(12 * MINUTE)),
            "{store}: two would pass after ten minutes"
        );
        clock.advance(11 * MINUTE);
        assert_eq!(ask(gate, &two), Said::Banned(Some(MINUTE)), "{store}: the limit would allow");
    });
}

#[test]
fn a_denial_during_a_ban_is_no_strike_and_strikes_begin_anew_after_it() {
    let text = rule("a", "1/d", "{ after = 3, within = '2h', for = '10m' }");
    each_store(&text, |store, gate, clock| {
        denied(gate, &ana(), 2);
        for round in 0..4 {
            assert!(matches!(ask(gate, &ana()), Said::Begun(_)), "{store}, round {round}");
            for _ in 0..50 {
                assert!(matches!(ask(gate, &ana()), Said::Banned(_)), "{store}, round {round}");
            }
            clock.advance(BAN - NANOSECOND);
            assert!(matches!(ask(gate, &ana()), Said::Banned(_)), "{store}, round {round}");
            clock.advance(NANOSECOND);
            assert!(is_plain(ask(gate, &ana())), "{store}, round {round}: the first strike");
            assert!(is_plain(ask(gate, &ana())), "{store}, round {round}: the second strike");
        }
        let RuleCounts { allowed, denied, bans, banned, impossible, .. } = counts(gate, "a");
        assert_eq!((allowed, denied, bans, banned, impossible), (1, 2 + 4 * 54, 4, 4 * 51, 0), "{store}");
    });
}

#[test]
fn one_strike_is_enough_if_the_rule_says_so() {
    each_store(&login("{ after = 1, within = '1s', for = '10m' }"), |store, gate, clock| {
        assert_eq!(ask(gate, &ana()), Said::Allowed);
        assert_eq!([ask(gate, &ana()), ask(gate, &ana())], [BEGUN, BANNED], "{store}");
        clock.advance(BAN);
        assert_eq!([ask(gate, &ana()), ask(gate, &ana())], [Said::Allowed, BEGUN], "{store}");
    });
}

#[test]
fn a_thousand_strikes_at_one_instant_are_counted_one_by_one() {
    each_store(&rule("a", "1/h", "{ after = 1000, within = '100us', for = '2h' }"), |store, gate, _| {
        denied(gate, &ana(), 999);
        assert_eq!(ask(gate, &ana()), Said::Begun(Some(2 * HOUR)), "{store}");
    });
}

#[test]
fn a_cost_that_can_never_pass_is_a_strike_and_stays_impossible() {
    each_store(&rule("a", "5/h", THREE), |store, gate, clock| {
        let six = ana().cost(Cost::of(6));
        assert_eq!([ask(gate, &six), ask(gate, &six)], [Said::Denied(None); 2]);
        assert_eq!(ask(gate, &six), Said::Begun(None), "{store}: no wait is long enough for it");
        assert_eq!(admit(gate, &six).verdict(), Verdict::Impossible);
        assert_eq!(ask(gate, &six), Said::Banned(None), "{store}");
        assert_eq!(ask(gate, &ana()), BANNED, "{store}: the key is banned for other costs, too");
        assert_eq!(banned(gate, None), [("a".to_owned(), "ana".to_owned(), BAN)], "{store}");
        clock.advance(BAN);
        assert_eq!(remaining(gate, "a", &ana()), 5, "{store}: nothing was ever spent");
        let RuleCounts { denied, impossible, bans, banned, .. } = counts(gate, "a");
        assert_eq!((denied, impossible, bans, banned), (4, 2, 1, 3), "{store}");
    });
}

#[test]
fn a_banned_key_spends_nothing_under_any_rule() {
    let site =
        "[[rule]]\nname = 'site'\nlimit = '100/d'\n[[rule]]\nname = 'all'\nkey = ['user']\nlimit = '100/d'\n";
    each_store(&(login(THREE) + site), |store, gate, clock| {
        ban(gate, &ana());
        let left = || ["site", "all"].map(|rule| remaining(gate, rule, &ana()));
        assert_eq!(left(), [99, 99]);
        clock.advance(2 * MINUTE);
        for _ in 0..50 {
            let admission = admit(gate, &ana().all_limits());
            assert_eq!(of(&admission), Said::Banned(Some(BAN - 2 * MINUTE)), "{store}");
            assert_eq!((admission.rule(), admission.is_allowed()), (Some("login"), false));
            let others: Vec<_> =
                admission.limits().skip(1).map(|limit| (&*limit.rule, said(limit))).collect();
            assert_eq!(others, [("site", Said::Allowed), ("all", Said::Allowed)], "{store}");
        }
        assert_eq!(left(), [99, 99], "{store}");
        assert_eq!((counts(gate, "site").denied, counts(gate, "site").allowed), (0, 1));
        assert_eq!(ask(gate, &bob()), Said::Allowed, "{store}");
    });
}

#[test]
fn only_denials_by_the_limit_itself_are_strikes() {
    let text = login(THREE)
        + "[[rule]]\nname = 'site'\nlimit = '2/d'\n[[rule]]\nname = 'late'\nkey = ['user']\n\
               limit = '1/2m'\npenalty = { after = 5, within = '1m', for = '10m' }\n";
    each_store(&text, |store, gate, clock| {
        assert_eq!(ask(gate, &ana()), Said::Allowed);
        assert_eq!(ask(gate, &bob()), Said::Allowed);
        for _ in 0..9 {
            let eve = Attributes::new().set("user", "eve");
            assert_eq!(admit(gate, &eve).rule(), Some("site"), "{store}: both other limits would allow it");
        }
        clock.advance(24 * HOUR);
        let eve = Attributes::new().set("user", "eve");
        assert_eq!(ask(gate, &eve), Said::Allowed, "{store}");
        // Each limit that denies counts its own strikes.
        let said: Vec<_> = (0..6).map(|_| admit(gate, &eve.clone().all_limits())).collect();
        let bans = |rule: &str| -> Vec<_> {
            let of = |answer: &Admission| answer.limits().find(|limit| &*limit.rule == rule)?.decision.ban();
            said.iter().map(of).collect()
        };
        let (begun, in_force) = (Some(Ban::Begun), Some(Ban::InForce));
        assert_eq!(bans("login"), [None, None, begun, in_force, in_force, in_force], "{store}");
        assert_eq!(bans("late"), [None, None, None, None, begun, in_force], "{store}");
        assert_eq!(bans("site"), [None; 6]);
    });
}

#[test]
fn a_denial_by_a_full_store_is_no_strike() {
    let clock = Arc::new(ManualClock::new());
    let gate = gate_on(
        Map::with_clock(clock.clone()).max_keys(1),
        &login("{ after = 1, within = '1m', for = '10m' }"),
    );
    assert_eq!(ask(&gate, &ana()), Said::Allowed);
    for _ in 0..9 {
        let answer = admit(&gate, &bob());
        assert!(
            answer.binding().is_some_and(|limit| limit.decision.is_store_full()) && is_plain(of(&answer))
        );
    }
    assert_eq!((counts(&gate, "login").store_full, counts(&gate, "login").bans), (9, 0));
    assert!(is_plain(ask(&gate, &ana())), "there is no room for the strike of a key that is denied");
    clock.advance(HOUR);
    // A full map looks for room in a few places per call.
    assert!((0..100).any(|_| ask(&gate, &bob()) == Said::Allowed));
}

#[test]
fn a_denial_by_a_store_that_is_down_is_no_strike() {
    let closed = login(THREE).replace("key =", "on_store_failure = 'closed'\nkey =");
    let node = one_of(&closed, 1);
    node.clock.advance(HOUR);
    node.store.is(Health::Down);
    for _ in 0..9 {
        let answer = admit(&node.gate, &ana());
        assert_eq!((of(&answer), answer.decided_by()), (Said::Denied(Some(SECOND)), DecidedBy::Closed));
    }
    node.store.is(Health::Up);
    denied(&node.gate, &ana(), 2);
    node.store.is(Health::Down);
    assert!(is_plain(ask(&node.gate, &ana())));
    node.store.is(Health::Up);
    assert_eq!(ask(&node.gate, &ana()), BEGUN, "the third of the store itself");
    node.store.is(Health::Down);
    assert!(is_plain(ask(&node.gate, &ana())), "what is down knows of no ban");
    node.store.is(Health::Up);
    assert_eq!(ask(&node.gate, &ana()), BANNED);
}

/// Regression: beside a rule that fails closed, a last strike was reported as a ban, and never counted.
#[test]
fn while_a_rule_fails_closed_no_ban_is_reported_that_does_not_begin() {
    let text = login("{ after = 1, within = '1m', for = '10m' }")
        + "[[rule]]\nname = 'closed'\nwhen = { path = '/x' }\nlimit = '100/s'\non_store_failure = 'closed'\n";
    let node = one_of(&text, 1);
    node.store.is(Health::Down);
    assert_eq!(ask(&node.gate, &ana()), Said::Allowed, "by the share of this node");
    for _ in 0..3 {
        let answer = admit(&node.gate, &ana().path("/x").all_limits());
        let each: Vec<_> = answer.limits().map(|limit| limit.decision.ban()).collect();
        assert_eq!((answer.is_allowed(), each), (false, vec![None, None]));
    }
    assert_eq!(counts(&node.gate, "login").bans, 0);
    assert_eq!(ask(&node.gate, &ana()), BEGUN);
    let answer = admit(&node.gate, &ana().path("/x").all_limits());
    let in_force = answer.limits().filter(|limit| limit.decision.ban() == Some(Ban::InForce)).count();
    assert_eq!(in_force, 1, "one that has begun is reported");
}

#[test]
fn a_peek_is_the_next_decision_and_changes_nothing() {
    let shadow = "[[rule]]\nname = 'measured'\nkey = ['user']\nlimit = '1/2m'\nmode = 'shadow'\n";
    for algorithm in COUNTING {
        let text = rule("a", &limit_of(2, "2m", algorithm), THREE) + shadow;
        each_store(&text, |store, gate, clock| {
            let what = format!("{algorithm} on a {store}");
            let key = || gate.rule_key("a", &ana()).expect("there is such a key");
            for step in 0..40_u32 {
                let peeks: Vec<_> =
                    (0..3).map(|_| key().peek().now().expect("memory answers at once")).collect();
                let explained = gate.explain(&ana()).now().expect("memory answers at once");
                let answer = admit(gate, &ana());
                for peek in &peeks {
                    assert_eq!(of(peek), of(&answer), "{what}, step {step}");
                }
                assert_eq!(explained.is_allowed, answer.is_allowed(), "{what}, step {step}");
                let decision = explained.rules[0].decision.expect("the rule applies");
                let binding = answer.binding().expect("a limit decided");
                assert_eq!(
                    Some(&decision),
                    peeks[0].binding().map(|limit| &limit.decision),
                    "{what}, step {step}"
                );
                if !answer.is_allowed() {
                    assert_eq!(decision, binding.decision, "{what}, step {step}");
                }
                clock.advance(Duration::from_secs(u64::from(step % 7) * 9));
            }
            assert!(counts(gate, "a").bans >= 1 && counts(gate, "a").banned >= 5, "{what}");
        });
    }
}

#[test]
fn a_reset_lifts_the_ban_and_the_strikes_of_one_key() {
    each_store(&login(THREE), |store, gate, clock| {
        ban(gate, &ana());
        ban(gate, &bob());
        assert!(reset(gate, "login", &ana()), "{store}");
        assert!(!reset(gate, "login", &ana()), "{store}: nothing is left to reset");
        assert_eq!(ask(gate, &bob()), BANNED, "{store}");
        // The strikes begin anew.
        denied(gate, &ana(), 2);
        assert!(reset(gate, "login", &ana()));
        denied(gate, &ana(), 2);
        assert_eq!(ask(gate, &ana()), BEGUN, "{store}");
        // Of strikes alone, too.
        clock.advance(2 * BAN);
        denied(gate, &ana(), 2);
        assert!(reset(gate, "login", &ana()), "{store}");
        denied(gate, &ana(), 2);
    });
}

#[test]
fn a_reset_reaches_bans_and_strikes_under_earlier_numbers() {
    each_store(&login(THREE), |store, gate, clock| {
        ban(gate, &ana());
        denied(gate, &bob(), 2);
        for (after, within, lasts) in [(5, "2m", "20m"), (4, "3m", "15m")] {
            clock.advance(SECOND);
            let text = login(&format!("{{ after = {after}, within = '{within}', for = '{lasts}' }}"));
            gate.replace(policy(&text)).expect("memory holds every limit");
            assert!(matches!(ask(gate, &ana()), Said::Banned(_)), "{store}");
        }
        assert!(reset(gate, "login", &ana()) && reset(gate, "login", &bob()), "{store}");
        for key in [ana(), bob()] {
            denied(gate, &key, 3);
            assert!(matches!(ask(gate, &key), Said::Begun(_)), "{store}");
        }
    });
}
