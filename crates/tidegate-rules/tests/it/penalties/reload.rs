//! Tests of penalties whose rule is changed, removed or renamed by a reload.

use std::time::Duration;

use tidegate::{Cost, MINUTE, SECOND};
use tidegate_rules::{Gate, differences};

use super::{
    BAN, BEGUN, NANOSECOND, Said, THREE, ask, ban, banned, bob, counts, denied, each_store, is_plain, login,
    rule,
};
use crate::changed_numbers::{COUNTING, ana, limit_of};
use crate::requests::policy;

fn replace(gate: &Gate, penalty: &str) {
    gate.replace(policy(&rule("login", "1/d", penalty))).expect("memory holds every limit");
}

/// Returns the wait of an answer without that for the limit of `login`, which is a day from the beginning.
fn rest_of_ban(gate: &Gate) -> Option<Duration> {
    banned(gate, None).first().map(|(.., rest)| *rest)
}

#[test]
fn a_reload_with_another_number_of_strikes_keeps_those_that_were_counted() {
    let of = |after: u32| format!("{{ after = {after}, within = '1m', for = '10m' }}");
    // Strikes before the reload, the number before and after it, and the further denials that are no ban.
    for (before, old, new, plain) in [
        (2, 3, 5, 2),
        (2, 3, 3, 0),
        (1, 3, 2, 0),
        (2, 5, 2, 0),
        (4, 5, 2, 0),
        (4, 5, 1, 0),
        (0, 3, 2, 1),
        (3, 1000, 4, 0),
    ] {
        each_store(&rule("login", "1/d", &of(old)), |store, gate, clock| {
            let what = format!("{before} strikes, {old} -> {new} on a {store}");
            denied(gate, &ana(), before);
            clock.advance(SECOND);
            replace(gate, &of(new));
            for _ in 0..plain {
                assert!(is_plain(ask(gate, &ana())), "{what}");
            }
            assert!(matches!(ask(gate, &ana()), Said::Begun(_)), "{what}");
            assert!(matches!(ask(gate, &ana()), Said::Banned(_)), "{what}");
        });
    }
}

#[test]
fn a_reload_with_another_span_counts_the_strikes_that_both_spans_hold() {
    let of = |within: &str| format!("{{ after = 3, within = '{within}', for = '10m' }}");
    each_store(&rule("login", "1/d", &of("1m")), |store, gate, clock| {
        denied(gate, &ana(), 1);
        clock.advance(MINUTE / 2);
        assert!(is_plain(ask(gate, &ana())));
        clock.advance(SECOND);
        replace(gate, &of("20s"));
        assert!(is_plain(ask(gate, &ana())), "{store}: the first has left the shorter span");
        clock.advance(18 * SECOND);
        assert!(matches!(ask(gate, &ana()), Said::Begun(_)), "{store}: the second has not");
    });
    each_store(&rule("login", "1/d", &of("1m")), |store, gate, clock| {
        denied(gate, &ana(), 1);
        clock.advance(MINUTE / 2);
        replace(gate, &of("10m"));
        assert!(is_plain(ask(gate, &ana())));
        clock.advance(5 * MINUTE);
        assert!(matches!(ask(gate, &ana()), Said::Begun(_)), "{store}: all three are within the longer span");
    });
    each_store(&rule("login", "1/d", &of("1m")), |store, gate, clock| {
        denied(gate, &ana(), 1);
        clock.advance(2 * MINUTE);
        replace(gate, &of("10m"));
        assert!(
            is_plain(ask(gate, &ana())) && is_plain(ask(gate, &ana())),
            "{store}: the first had left before"
        );
        assert!(matches!(ask(gate, &ana()), Said::Begun(_)), "{store}");
    });
}

#[test]
fn a_reload_with_another_length_counts_it_from_the_beginning_of_the_ban() {
    let of = |lasts: &str| format!("{{ after = 3, within = '1m', for = '{lasts}' }}");
    for (lasts, rest) in [
        ("10m", Some(9 * MINUTE)),
        ("2m", Some(MINUTE)),
        ("61s", Some(SECOND)),
        ("1m", None),
        ("59s", None),
        ("1s", None),
        // The old state ends with the old length.
        ("20m", Some(9 * MINUTE)),
        ("365d", Some(9 * MINUTE)),
    ] {
        each_store(&rule("login", "1/d", &of("10m")), |store, gate, clock| {
            let what = format!("for = {lasts} on a {store}");
            denied(gate, &ana(), 2);
            assert!(matches!(ask(gate, &ana()), Said::Begun(_)));
            clock.advance(MINUTE);
            replace(gate, &of(lasts));
            let answer = ask(gate, &ana());
            assert_eq!(matches!(answer, Said::Banned(_)), rest.is_some(), "{what}: {answer:?}");
            assert_eq!(rest_of_ban(gate), rest, "{what}");
            let Some(rest) = rest else { return };
            clock.advance(rest - NANOSECOND);
            assert_eq!(rest_of_ban(gate), Some(NANOSECOND), "{what}");
            assert!(matches!(ask(gate, &ana()), Said::Banned(_)), "{what}");
            clock.advance(NANOSECOND);
            assert_eq!(rest_of_ban(gate), None, "{what}");
            assert!(is_plain(ask(gate, &ana())), "{what}: the limit alone");
        });
    }
}

/// Regression: the strikes under the numbers before a reload were carried over again after the ban that they began.
#[test]
fn strikes_under_earlier_numbers_are_cleared_by_the_ban_that_they_begin() {
    let of = |after: u32| format!("{{ after = {after}, within = '2h', for = '10m' }}");
    each_store(&rule("login", "1/d", &of(5)), |store, gate, clock| {
        denied(gate, &ana(), 2);
        clock.advance(SECOND);
        replace(gate, &of(3));
        assert!(matches!(ask(gate, &ana()), Said::Begun(_)), "{store}");
        clock.advance(BAN);
        assert!(is_plain(ask(gate, &ana())) && is_plain(ask(gate, &ana())), "{store}: strikes begin anew");
        assert!(matches!(ask(gate, &ana()), Said::Begun(_)), "{store}");
    });
}

#[test]
fn a_penalty_that_is_removed_bans_no_key_and_one_that_comes_back_finds_its_bans() {
    let plain = "[[rule]]\nname = 'login'\nkey = ['user']\nlimit = '1/2m'\n";
    each_store(&login(THREE), |store, gate, clock| {
        ban(gate, &ana());
        denied(gate, &bob(), 2);
        let lines = gate.with_policy(|old| differences(old, &policy(plain)));
        assert_eq!(lines, ["~ rule \"login\": another penalty"]);
        gate.replace(policy(plain)).expect("memory holds every limit");
        assert_eq!(banned(gate, None), [], "{store}");
        clock.advance(2 * MINUTE);
        assert_eq!(ask(gate, &ana()), Said::Allowed, "{store}: there is no ban without a penalty");
        for _ in 0..9 {
            assert!(is_plain(ask(gate, &ana())), "{store}: and no strike");
        }
        assert_eq!((counts(gate, "login").bans, counts(gate, "login").banned), (1, 0), "{store}");
        gate.replace(policy(&login(THREE))).expect("memory holds every limit");
        assert_eq!(
            ask(gate, &ana()),
            Said::Banned(Some(BAN - 2 * MINUTE)),
            "{store}: it ends when it would have"
        );
        assert_eq!(banned(gate, None).len(), 1, "{store}");
        denied(gate, &bob(), 2);
    });
    each_store(plain, |store, gate, _| {
        denied(gate, &ana(), 5);
        gate.replace(policy(&login(THREE))).expect("memory holds every limit");
        assert!(
            is_plain(ask(gate, &ana())) && is_plain(ask(gate, &ana())),
            "{store}: earlier denials are no strikes"
        );
        assert_eq!(ask(gate, &ana()), BEGUN, "{store}");
    });
}

#[test]
fn a_rule_with_another_name_has_no_bans_and_finds_them_under_the_old_one() {
    each_store(&login(THREE), |store, gate, clock| {
        ban(gate, &ana());
        gate.replace(policy(&login(THREE).replace("login", "sign-in"))).expect("memory holds every limit");
        assert_eq!(ask(gate, &ana()), Said::Allowed, "{store}");
        assert_eq!(banned(gate, None), [], "{store}");
        clock.advance(MINUTE);
        gate.replace(policy(&login(THREE))).expect("memory holds every limit");
        assert_eq!(ask(gate, &ana()), Said::Banned(Some(BAN - MINUTE)), "{store}");
    });
}

#[test]
fn a_changed_limit_leaves_strikes_and_bans_alone() {
    for algorithm in COUNTING {
        each_store(&rule("login", &limit_of(1, "2m", algorithm), THREE), |store, gate, clock| {
            let what = format!("{algorithm} on a {store}");
            denied(gate, &ana(), 2);
            ban(gate, &bob());
            clock.advance(SECOND);
            gate.replace(policy(&rule("login", &limit_of(2, "1h", "token-bucket"), THREE)))
                .expect("it is supported");
            assert_eq!(ask(gate, &bob()), Said::Banned(Some(BAN - SECOND)), "{what}");
            let six = ana().cost(Cost::of(6));
            assert_eq!(ask(gate, &six), Said::Begun(None), "{what}: the third strike");
        });
    }
}
