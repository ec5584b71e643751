//! Tests of penalties where several requests are decided at one instant: in a stretch, or as a unit.

use std::sync::Arc;

use tidegate::{Ban, Cost, Decision, MINUTE, ManualClock, SECOND};
use tidegate_rules::{Admission, Attributes, Gate};

use super::{
    BAN, BANNED, BEGUN, Said, THREE, ask, bob, counts, denied, each_store, gate_on, is_plain, login, of, rule,
};
use crate::changed_numbers::{COUNTING, ana, limit_of};
use crate::random::{Random, seed, tries};
use crate::requests::{admit, remaining, stores};

fn unit(gate: &Gate, requests: &[Attributes<'_>]) -> Vec<Admission> {
    gate.admit_all(requests).now().expect("memory answers at once")
}

/// Returns the reported limit of each answer with its decision.
fn decisions(answers: &[Admission]) -> Vec<(bool, Vec<(String, Decision)>)> {
    let limits =
        |answer: &Admission| answer.limits().map(|limit| (limit.rule.to_string(), limit.decision)).collect();
    answers.iter().map(|answer| (answer.is_allowed(), limits(answer))).collect()
}

#[test]
fn a_stretch_decides_as_single_requests_at_one_instant() {
    let limits = COUNTING.map(|algorithm| limit_of(2, "5s", algorithm));
    let mut random = Random::new(seed());
    let (mut begun, mut in_force) = (0, 0);
    for round in 0..tries(2_000, 100) {
        let mut any = || &*limits[random.below(limits.len())];
        let text = rule("a", any(), "{ after = 2, within = '9s', for = '7s' }")
            + &rule("b", any(), "{ after = 3, within = '20s', for = '5s' }").replace("['user']", "['team']")
            + &rule("c", any(), "{ after = 1, within = '1s', for = '12s' }")
                .replace("key =", "mode = 'shadow'\nkey =")
            + &format!("[[rule]]\nname = 'd'\nlimit = '{}'\n", limit_of(5, "5s", "fixed-window"))
            + &format!("[[rule]]\nname = 'next'\ncandidate_for = 'a'\nlimit = '{}'\n", any());
        for ((name, store, clock), (_, other, of_other)) in stores().into_iter().zip(stores()) {
            let what = format!("round {round} on a {name}, TIDEGATE_SEED={}\n{text}", seed());
            let (single, batched) = (gate_on(store, &text), gate_on(other, &text));
            for _ in 0..12 {
                let wait = SECOND * random.below(4) as u32;
                [&clock, &of_other]
                    .into_iter()
                    .for_each(|clock: &Arc<ManualClock>| clock.advance(MINUTE + wait));
                let requests: Vec<_> = (0..1 + random.below(9))
                    .map(|_| {
                        let user = random.pick(&["ana", "bob", "eva"]).to_owned();
                        let request = Attributes::new()
                            .set("user", user)
                            .set("team", random.pick(&["x", "y"]).to_owned());
                        request.cost(Cost::of([1, 1, 1, 2, 9][random.below(5)])).all_limits()
                    })
                    .collect();
                let one_by_one: Vec<_> = requests.iter().map(|request| admit(&single, request)).collect();
                let batch = batched.batch();
                let stretch = batch.stretch();
                let together = requests.iter().map(|request| stretch.admit(request).now().expect("at once"));
                let together: Vec<_> = together.collect();
                assert_eq!(decisions(&one_by_one), decisions(&together), "{what}");
                let bans = together
                    .iter()
                    .flat_map(|answer| answer.limits().filter_map(|limit| limit.decision.ban()));
                for ban in bans.collect::<Vec<_>>() {
                    *(if ban == Ban::Begun { &mut begun } else { &mut in_force }) += 1;
                }
            }
            let of_rules =
                |gate: &Gate| gate.counts().into_iter().map(|(_, counts)| counts).collect::<Vec<_>>();
            assert_eq!(of_rules(&single), of_rules(&batched), "{what}");
        }
    }
    assert!(begun > 300 && in_force > 300, "{begun} bans, {in_force} denials by one");
}

#[test]
fn a_unit_of_one_request_is_that_request() {
    each_store(&login(THREE), |store, gate, _| {
        let said: Vec<_> = (0..5).map(|_| of(&unit(gate, &[ana()])[0])).collect();
        assert_eq!((said[0], said[3], said[4]), (Said::Allowed, BEGUN, BANNED), "{store}");
        assert!(is_plain(said[1]) && is_plain(said[2]), "{store}");
    });
}

#[test]
fn a_unit_that_is_allowed_spends_as_its_requests_in_sequence() {
    let text = rule("login", "3/2m burst 3", THREE);
    for ((name, store, _), (_, other, _)) in stores().into_iter().zip(stores()) {
        let (as_unit, in_sequence) = (gate_on(store, &text), gate_on(other, &text));
        let requests = [ana(), bob(), ana(), ana()];
        assert!(unit(&as_unit, &requests).iter().all(Admission::is_allowed), "{name}");
        assert!(requests.iter().all(|request| admit(&in_sequence, request).is_allowed()), "{name}");
        for request in [ana(), ana(), ana(), bob(), ana(), bob(), bob(), bob(), bob()] {
            assert_eq!(ask(&as_unit, &request), ask(&in_sequence, &request), "{name}");
        }
    }
}

#[test]
fn a_unit_is_one_strike_for_each_key_that_its_limit_denies() {
    let text = rule("login", "1/2m", THREE) + "[[rule]]\nname = 'site'\nlimit = '100/d'\n";
    each_store(&text, |store, gate, _| {
        assert_eq!(ask(gate, &ana()), Said::Allowed);
        // Ana is denied as one ask of three units, which never pass; bob would be allowed.
        let requests = [ana(), bob(), ana(), ana()];
        for strike in 1..=2 {
            let answers = unit(gate, &requests);
            let said: Vec<_> = answers.iter().map(of).collect();
            let never = Said::Denied(None);
            assert_eq!([said[0], said[2], said[3]], [never; 3], "{store}, strike {strike}");
            assert_eq!(said[1], Said::Allowed, "{store}: no strike for bob");
        }
        let answers = unit(gate, &requests);
        assert_eq!(of(&answers[0]), Said::Begun(None), "{store}: the third unit");
        assert_eq!(
            (counts(gate, "login").bans, counts(gate, "login").banned),
            (1, 2),
            "{store}: it begins once"
        );
        assert_eq!(ask(gate, &ana()), BANNED, "{store}");
        assert_eq!(remaining(gate, "site", &ana()), 99, "{store}: the first request alone has spent");
        denied(gate, &bob(), 2);
    });
}

#[test]
fn one_banned_key_denies_a_unit_and_nothing_is_spent() {
    let text = login(THREE) + "[[rule]]\nname = 'site'\nlimit = '100/d'\n";
    each_store(&text, |store, gate, clock| {
        denied(gate, &ana(), 2);
        assert_eq!(ask(gate, &ana()), BEGUN);
        clock.advance(2 * MINUTE);
        for _ in 0..9 {
            let answers = unit(gate, &[bob(), ana()]);
            assert_eq!(
                answers.iter().map(of).collect::<Vec<_>>(),
                [Said::Allowed, Said::Banned(Some(BAN - 2 * MINUTE))]
            );
        }
        assert_eq!(remaining(gate, "site", &bob()), 99, "{store}");
        assert_eq!(ask(gate, &bob()), Said::Allowed, "{store}");
        clock.advance(BAN);
        assert!(unit(gate, &[bob(), ana()]).iter().all(Admission::is_allowed), "{store}");
    });
}

/// Regression: permits of one key are several asks of a unit, and the second left a strike after the ban had begun.
#[test]
fn the_asks_of_a_unit_for_permits_of_one_key_are_strikes_one_after_the_other() {
    let text = |after: u32| {
        let penalty = format!("{{ after = {after}, within = '2h', for = '10m' }}");
        rule("login", "1/2m concurrency", &penalty)
    };
    each_store(&text(3), |store, gate, clock| {
        assert_eq!(ask(gate, &ana()), Said::Allowed);
        let bans = |answers: &[Admission]| -> Vec<_> {
            answers
                .iter()
                .map(|answer| answer.limits().next().and_then(|limit| limit.decision.ban()))
                .collect()
        };
        let (begun, in_force) = (Some(Ban::Begun), Some(Ban::InForce));
        assert_eq!(bans(&unit(gate, &[ana(), ana()])), [None, None], "{store}");
        assert_eq!(bans(&unit(gate, &[ana(), ana()])), [begun, in_force], "{store}");
        assert_eq!((counts(gate, "login").bans, counts(gate, "login").banned), (1, 1), "{store}");
        clock.advance(BAN);
        assert_eq!(ask(gate, &ana()), Said::Allowed);
        assert!(is_plain(ask(gate, &ana())) && is_plain(ask(gate, &ana())), "{store}: strikes begin anew");
        assert!(matches!(ask(gate, &ana()), Said::Begun(_)), "{store}");
    });
    each_store(&text(1), |store, gate, _| {
        assert_eq!(ask(gate, &ana()), Said::Allowed);
        let bans: Vec<_> = unit(gate, &[ana(), ana(), ana()]).iter().map(of).collect();
        assert_eq!(bans, [Said::Begun(None), Said::Banned(None), Said::Banned(None)], "{store}");
        assert_eq!(counts(gate, "login").bans, 1, "{store}");
    });
}
