//! Tests of bans that last: restarts, steps of the clock, several gates and threads, and the list of bans.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, process, thread};

use tidegate::{Adjusted, Adjustment, Clock as _, Cost, HOUR, MINUTE, ManualClock, SECOND, Zone};
use tidegate_rules::Attributes;

use super::{
    BAN, BANNED, BEGUN, NANOSECOND, Said, THREE, ask, ban, banned, bob, counts, denied, each_store, gate_on,
    is_plain, login, of, reset, rule,
};
use crate::changed_numbers::ana;
use crate::requests::{admit, remaining, still_zone};

/// Returns a new folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", process::id()));
    // The folder does not exist the first time.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

#[test]
fn strikes_and_bans_survive_a_restart_and_a_kill() {
    let text = login(THREE)
        + "[zone.z]\nsize = '64KiB'\n"
        + &rule("other", "1/2m", THREE).replace("key =", "zone = 'z'\nwhen = { path = '/x' }\nkey =");
    let (first, second) = (folder("penalties-restart"), folder("penalties-kill"));
    let clock = Arc::new(ManualClock::new());
    clock.advance(24 * HOUR);
    let open = |folder: &Path| {
        let zone = Zone::in_file_with_clock(folder.join("zone.tg"), 1 << 16, clock.clone());
        gate_on(zone.expect("the file of a zone"), &text)
    };
    let gate = open(&first);
    ban(&gate, &ana());
    denied(&gate, &bob(), 2);
    let eve = Attributes::new().set("user", "eve").path("/x");
    denied(&gate, &eve, 2);
    gate.rule_key("login", &eve).expect("there is such a key").reset().now().expect("memory answers at once");
    assert!(matches!(ask(&gate, &eve), Said::Begun(_)));
    clock.advance(MINUTE / 2);
    // A process that is killed leaves its files as they are at that moment.
    for entry in fs::read_dir(&first).expect("the folder is there") {
        let path = entry.expect("it has entries").path();
        fs::copy(&path, second.join(path.file_name().expect("a name"))).expect("it can be copied");
    }
    drop(gate);
    for (what, folder) in [("restart", first), ("kill", second)] {
        let gate = open(&folder);
        let start = clock.now();
        assert_eq!(banned(&gate, None), [], "{what}: bans are listed once they deny");
        assert_eq!(ask(&gate, &ana()), Said::Banned(Some(BAN - MINUTE / 2)), "{what}");
        assert_eq!(ask(&gate, &bob()), BEGUN, "{what}: the third strike");
        let answer = admit(&gate, &eve);
        assert_eq!(
            (answer.rule(), of(&answer)),
            (Some("other"), Said::Banned(Some(BAN - MINUTE / 2))),
            "{what}"
        );
        assert_eq!(banned(&gate, None).len(), 3, "{what}");
        assert!(reset(&gate, "other", &eve), "{what}");
        assert!(!matches!(ask(&gate, &eve), Said::Banned(_)), "{what}");
        clock.advance(BAN - MINUTE / 2);
        assert_eq!(ask(&gate, &ana()), Said::Allowed, "{what}");
        clock.set(start);
    }
}

#[test]
fn a_step_back_of_the_clock_lifts_no_ban_and_makes_no_wait_longer_than_it() {
    for step in [HOUR, 20 * HOUR, BAN + MINUTE, BAN + NANOSECOND] {
        each_store(&login(THREE), |store, gate, clock| {
            let what = format!("{step:?} back on a {store}");
            ban(gate, &ana());
            clock.advance(MINUTE);
            clock.step_back(MINUTE + step);
            let peeked = gate.rule_key("login", &ana()).expect("there is such a key").peek().now();
            assert_eq!(
                of(&peeked.expect("memory answers at once")),
                BANNED,
                "{what}: a whole ban from now on"
            );
            assert_eq!(ask(gate, &ana()), BANNED, "{what}");
            assert_eq!(banned(gate, None)[0].2, BAN, "{what}");
            clock.advance(MINUTE);
            assert_eq!(ask(gate, &ana()), Said::Banned(Some(BAN - MINUTE)), "{what}: and it ends");
            clock.advance(BAN - MINUTE - NANOSECOND);
            assert_eq!(ask(gate, &ana()), Said::Banned(Some(NANOSECOND)), "{what}");
            clock.advance(NANOSECOND);
            assert_eq!(ask(gate, &ana()), Said::Allowed, "{what}");
        });
    }
}

/// As with every period of a log or a window, a clock that is behind by less than the period is in the same one: the
/// ban ends at the time that was reported when it began.
#[test]
fn after_a_shorter_step_back_a_ban_ends_at_the_time_at_which_it_would_have() {
    for step in [SECOND, MINUTE, BAN / 2, BAN] {
        each_store(&login(THREE), |store, gate, clock| {
            let what = format!("{step:?} back on a {store}");
            ban(gate, &ana());
            clock.step_back(step);
            assert_eq!(ask(gate, &ana()), Said::Banned(Some(BAN + step)), "{what}");
            clock.advance(step + BAN - NANOSECOND);
            assert_eq!(ask(gate, &ana()), Said::Banned(Some(NANOSECOND)), "{what}");
            clock.advance(NANOSECOND);
            assert_eq!(ask(gate, &ana()), Said::Allowed, "{what}");
        });
    }
}

#[test]
fn a_step_back_of_the_clock_forgets_no_strike() {
    for step in [SECOND, MINUTE, HOUR, 20 * HOUR] {
        each_store(&rule("a", "1/d", THREE), |store, gate, clock| {
            let what = format!("{step:?} back on a {store}");
            denied(gate, &ana(), 2);
            clock.step_back(step);
            assert!(matches!(ask(gate, &ana()), Said::Begun(_)), "{what}");
            let rest = banned(gate, None)[0].2;
            assert!(rest >= BAN && rest <= BAN + step.min(BAN), "{what}: {rest:?}");
        });
        each_store(&rule("a", "1/d", THREE), |store, gate, clock| {
            let what = format!("{step:?} back on a {store}");
            denied(gate, &ana(), 1);
            clock.step_back(step);
            assert!(is_plain(ask(gate, &ana())), "{what}");
            clock.advance(3 * MINUTE + step);
            assert!(is_plain(ask(gate, &ana())), "{what}: the strikes have left");
        });
    }
}

#[test]
fn a_step_forward_of_the_clock_ends_a_ban_and_the_way_back_begins_none() {
    each_store(&rule("a", "1/d", THREE), |store, gate, clock| {
        denied(gate, &ana(), 2);
        assert!(matches!(ask(gate, &ana()), Said::Begun(_)));
        clock.advance(HOUR);
        assert!(is_plain(ask(gate, &ana())), "{store}");
        clock.step_back(HOUR);
        let answer = ask(gate, &ana());
        assert!(is_plain(answer) || matches!(answer, Said::Banned(_)), "{store}: {answer:?}");
        clock.advance(BAN);
        assert!(is_plain(ask(gate, &ana())), "{store}: no ban is longer than from its beginning");
    });
}

#[test]
fn gates_on_one_store_share_strikes_and_bans() {
    let (zone, _) = still_zone();
    let gates = [gate_on(&zone, &login(THREE)), gate_on(&zone, &login(THREE))];
    denied(&gates[0], &ana(), 1);
    assert!(is_plain(ask(&gates[1], &ana())));
    assert_eq!([ask(&gates[0], &ana()), ask(&gates[1], &ana())], [BEGUN, BANNED]);
    assert!(reset(&gates[1], "login", &ana()));
    assert_eq!(banned(&gates[0], None), [], "it asks the store");
    assert_eq!(ask(&gates[0], &ana()), Said::Allowed);
}

#[test]
fn the_list_of_bans_is_that_of_the_store() {
    let text = rule("a", "1/2m", THREE) + &rule("b", "1/2m", "{ after = 1, within = '1m', for = '20m' }");
    let two = text.replace("key = ['user']", "key = ['user', 'path']");
    each_store(&two, |store, gate, clock| {
        let request = |user: &'static str| Attributes::new().set("user", user).path("/x y");
        assert_eq!(banned(gate, None), []);
        assert_eq!(ask(gate, &request("ana")), Said::Allowed);
        assert_eq!(ask(gate, &request("ana")), Said::Begun(Some(20 * MINUTE)), "{store}: by b");
        let of = |rule: &str, user: &str, rest| (rule.to_owned(), format!("{user} /x y"), rest);
        assert_eq!(banned(gate, None), [of("b", "ana", 20 * MINUTE)]);
        clock.advance(SECOND);
        for _ in 0..2 {
            assert_eq!(ask(gate, &request("ana")), Said::Banned(Some(20 * MINUTE - SECOND)));
        }
        // Both rules ban now, and the list shows the rest of each ban.
        let rests = [of("b", "ana", 20 * MINUTE - SECOND), of("a", "ana", BAN)];
        assert_eq!(banned(gate, None), rests, "{store}");
        assert_eq!((banned(gate, Some("a")), banned(gate, Some("none"))), (rests[1..].to_vec(), Vec::new()));
        let first = gate.bans(None, 1).now().expect("memory answers at once");
        assert_eq!((first.len(), &*first[0].rule), (1, "b"), "{store}: the longest first");
        assert!(gate.bans(None, 0).now().expect("memory answers at once").is_empty());
        clock.advance(BAN);
        assert_eq!(banned(gate, None), [of("b", "ana", BAN - SECOND)], "{store}: the other is over");
    });
}

/// Regression: bans that had been lifted took places of the list, and it was shorter than it could have been.
#[test]
fn the_list_of_bans_is_as_long_as_wanted_after_many_were_lifted() {
    each_store(&login("{ after = 1, within = '1m', for = '10m' }"), |store, gate, _| {
        let users: Vec<_> = (0..40).map(|user| format!("u{user}")).collect();
        let of = |user: &str| Attributes::new().set("user", user.to_owned());
        users.iter().for_each(|user| denied(gate, &of(user), 0));
        users.iter().for_each(|user| assert_eq!(ask(gate, &of(user)), BEGUN));
        let listed = |at_most| gate.bans(None, at_most).now().expect("memory answers at once");
        let lifted: Vec<_> = listed(30).into_iter().map(|ban| ban.key[0].clone()).collect();
        lifted.iter().for_each(|user| assert!(reset(gate, "login", &of(user))));
        assert_eq!((listed(30).len(), listed(7).len(), listed(usize::MAX).len()), (10, 7, 10), "{store}");
    });
}

#[test]
fn a_refund_and_a_correction_touch_neither_strikes_nor_bans() {
    each_store(&login(THREE), |store, gate, _| {
        for strike in 0..3 {
            let (answer, mut charges) = gate.admit_tracked(&ana()).now().expect("memory answers at once");
            assert_eq!(of(&answer), Said::Allowed, "{store}");
            let said = if strike == 2 { BEGUN } else { Said::Denied(Some(2 * MINUTE)) };
            let (answer, nothing) = gate.admit_tracked(&ana()).now().expect("memory answers at once");
            assert_eq!((of(&answer), nothing.is_empty()), (said, true), "{store}, strike {strike}");
            assert_eq!(gate.refund(&mut charges, 1).now().expect("memory answers at once"), Adjusted::Whole);
        }
        let (answer, nothing) = gate.admit_tracked(&ana()).now().expect("memory answers at once");
        assert_eq!((of(&answer), nothing.is_empty()), (BANNED, true), "{store}");
        let key = gate.rule_key("login", &ana()).expect("there is such a key");
        for adjustment in [Adjustment::Charge(Cost::ONE), Adjustment::Refund(Cost::ONE)] {
            assert_eq!(key.adjust(adjustment).now().expect("memory answers at once"), Adjusted::Whole);
            assert_eq!(ask(gate, &ana()), BANNED, "{store}");
        }
    });
}

#[test]
fn a_banned_key_is_charged_under_no_rule_by_a_tracked_request() {
    let text = login(THREE)
        + "[[rule]]\nname = 'site'\nlimit = '100/d'\n[[rule]]\nname = 'measured'\nmode = 'shadow'\n\
               key = ['user']\nlimit = '1/2m'\npenalty = { after = 1, within = '1m', for = '10m' }\n";
    each_store(&text, |store, gate, _| {
        let tracked = || gate.admit_tracked(&ana()).now().expect("memory answers at once");
        let (_, mut charges) = tracked();
        let taken: Vec<_> = charges.taken().map(|(rule, units)| (rule.to_owned(), units)).collect();
        assert_eq!(
            taken,
            [("login", 1), ("site", 1), ("measured", 1)].map(|(rule, units)| (rule.to_owned(), units))
        );
        for _ in 0..5 {
            assert!(!tracked().0.is_allowed());
        }
        assert_eq!(remaining(gate, "site", &ana()), 99, "{store}");
        assert_eq!(
            counts(gate, "measured").shadow.denied,
            0,
            "{store}: it is not asked about denied requests"
        );
        assert_eq!(gate.refund(&mut charges, 1).now().expect("memory answers at once"), Adjusted::Whole);
        assert_eq!(remaining(gate, "site", &ana()), 100, "{store}");
        assert_eq!(ask(gate, &ana()), BANNED, "{store}");
    });
}

/// Regression: a request that was denied while another thread began the ban left a strike behind.
#[test]
fn one_ban_begins_however_many_threads_are_denied_at_once() {
    let text = rule("a", "1/d", "{ after = 5, within = '10h', for = '10m' }");
    each_store(&text, |store, gate, clock| {
        for round in 0..50 {
            let key = Attributes::new().set("user", format!("u{round}"));
            assert_eq!(ask(gate, &key), Said::Allowed);
            let said: Vec<_> = thread::scope(|scope| {
                let hits = || (0..25).map(|_| ask(gate, &key)).collect::<Vec<_>>();
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(hits)).collect();
                threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
            });
            let count = |is: fn(&Said) -> bool| said.iter().filter(|said| is(said)).count();
            let begun = count(|said| matches!(said, Said::Begun(_)));
            let plain = count(|said| is_plain(*said));
            assert_eq!((said.len(), begun), (100, 1), "{store}, round {round}");
            assert!(plain <= 4, "{store}, round {round}: {plain} strikes before the last");
            clock.advance(BAN);
            let after: Vec<_> = (0..5).map(|_| ask(gate, &key)).collect();
            assert!(after[..4].iter().all(|said| is_plain(*said)), "{store}, round {round}: {after:?}");
            assert!(matches!(after[4], Said::Begun(_)), "{store}, round {round}");
        }
        assert_eq!(counts(gate, "a").bans, 100, "{store}");
    });
}
