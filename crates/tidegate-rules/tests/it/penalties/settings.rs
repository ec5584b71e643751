//! Tests of penalties beside the other settings of a rule: overrides, schedules, shadow mode, candidates and groups.

use std::sync::Arc;

use tidegate::{Cost, HOUR, MINUTE};
use tidegate_rules::{Attributes, Gate, Instead, ManualCalendar, RuleCounts};

use super::{
    BAN, BANNED, BEGUN, Said, THREE, ask, ban, banned, bob, counts, denied, each_store, login, rule,
};
use crate::changed_numbers::ana;
use crate::requests::{admit, policy, remaining, stores};

#[test]
fn other_limits_of_a_key_change_the_limit_and_not_the_ban() {
    let noon = "schedule = [{ from = '12:00', to = '13:00', timezone = 'UTC', limit = '50/2m' }]\n";
    let text = login(THREE) + "limit_for = { bob = '2/2m' }\n" + noon;
    for (name, store, clock) in stores() {
        clock.advance(HOUR);
        let calendar = Arc::new(ManualCalendar::at(0));
        let gate =
            Gate::builder(policy(&text), store).calendar(calendar.clone()).build().expect("it is supported");
        ban(&gate, &ana());
        assert_eq!(ask(&gate, &bob()), Said::Allowed);
        ban(&gate, &bob());
        assert_eq!(ask(&gate, &bob()), BANNED, "{name}: the limit of a value");

        calendar.set(43_200);
        assert_eq!(ask(&gate, &ana()), BANNED, "{name}: a window with another limit");
        calendar.set(0);
        let many = Instead::Limit("1000/s".parse().expect("a limit"));
        gate.put_override("login", &ana(), many, None).expect("there is such a rule");
        assert_eq!(ask(&gate, &ana()), BANNED, "{name}: an override with another limit");
        clock.advance(BAN);
        assert_eq!(ask(&gate, &ana()), Said::Allowed, "{name}");
        let thousand = ana().cost(Cost::of(1001));
        assert_eq!([ask(&gate, &thousand), ask(&gate, &thousand)], [Said::Denied(None); 2], "{name}");
        assert_eq!(
            ask(&gate, &thousand),
            Said::Begun(None),
            "{name}: denials by an override's limit are strikes"
        );
        assert_eq!(gate.remove_override("login", &ana()), Ok(true));
        assert_eq!(ask(&gate, &ana()), BANNED, "{name}");
    }
}

#[test]
fn an_override_that_allows_or_denies_decides_before_the_ban_and_is_no_strike() {
    each_store(&login(THREE), |store, gate, clock| {
        ban(gate, &ana());
        gate.put_override("login", &ana(), Instead::Allow, None).expect("there is such a rule");
        assert!(admit(gate, &ana()).binding().is_none() && admit(gate, &ana()).is_allowed(), "{store}");
        gate.put_override("login", &ana(), Instead::Deny, None).expect("there is such a rule");
        gate.put_override("login", &bob(), Instead::Deny, None).expect("there is such a rule");
        for key in [ana(), bob(), bob(), bob(), bob()] {
            let answer = admit(gate, &key);
            assert!(answer.is_forbidden() && answer.binding().is_none(), "{store}");
        }
        assert!(
            gate.remove_override("login", &ana()).is_ok() && gate.remove_override("login", &bob()).is_ok()
        );
        assert_eq!(ask(gate, &ana()), BANNED, "{store}: the ban went on meanwhile");
        ban(gate, &bob());
        gate.put_override("login", &ana(), Instead::Allow, None).expect("there is such a rule");
        clock.advance(BAN);
        assert!(gate.remove_override("login", &ana()).is_ok());
        assert_eq!(ask(gate, &ana()), Said::Allowed, "{store}");
    });
}

#[test]
fn a_shadow_rule_counts_strikes_and_bans_and_denies_nothing() {
    let text = login(THREE) + "mode = 'shadow'\n[[rule]]\nname = 'site'\nlimit = '1000/s'\n";
    each_store(&text, |store, gate, clock| {
        let allowed =
            |times| (0..times).for_each(|_| assert_eq!(ask(gate, &ana()), Said::Allowed, "{store}"));
        allowed(10);
        clock.advance(2 * MINUTE);
        allowed(5);
        let found = counts(gate, "login");
        let shadow = found.shadow;
        assert_eq!((shadow.allowed, shadow.denied, shadow.bans, shadow.banned), (1, 14, 1, 11), "{store}");
        assert_eq!((found.bans, found.banned), (1, 11), "{store}: the totals contain them");
        clock.advance(BAN - 2 * MINUTE);
        allowed(1);
        assert_eq!(counts(gate, "login").shadow.allowed, 2, "{store}: the ban would be over");
        assert_eq!(banned(gate, None), [], "{store}: no key is banned");
        assert_eq!(remaining(gate, "site", &ana()), 1000 - 1, "{store}: it is spent by each request");
    });
}

#[test]
fn a_rule_that_a_window_puts_in_shadow_mode_keeps_its_bans() {
    let text =
        login(THREE) + "schedule = [{ from = '12:00', to = '13:00', timezone = 'UTC', mode = 'shadow' }]\n";
    for (name, store, clock) in stores() {
        let calendar = Arc::new(ManualCalendar::at(0));
        let gate =
            Gate::builder(policy(&text), store).calendar(calendar.clone()).build().expect("it is supported");
        ban(&gate, &ana());
        calendar.set(43_200);
        clock.advance(3 * MINUTE);
        assert!(admit(&gate, &ana()).is_allowed(), "{name}");
        assert_eq!(counts(&gate, "login").shadow.banned, 1, "{name}");
        calendar.set(50_000);
        assert_eq!(ask(&gate, &ana()), Said::Banned(Some(BAN - 3 * MINUTE)), "{name}");
    }
}

#[test]
fn a_candidate_has_bans_of_its_own_by_the_penalty_of_its_rule() {
    let looser = "[[rule]]\nname = 'looser'\ncandidate_for = 'login'\nlimit = '2/2m'\n";
    let stricter = "[[rule]]\nname = 'stricter'\ncandidate_for = 'open'\nlimit = '1/2m'\n";
    let open = rule("open", "100/2m", THREE).replace("key =", "when = { path = '/open' }\nkey =");
    each_store(&(login(THREE) + looser + &open + stricter), |store, gate, clock| {
        ban(gate, &ana());
        let of_looser = counts(gate, "looser");
        assert_eq!((of_looser.allowed, of_looser.denied, of_looser.bans), (2, 2, 0), "{store}");
        assert_eq!(
            of_looser.looser, 1,
            "{store}: the rule denied the second request, and the candidate did not"
        );
        assert_eq!(ask(gate, &ana()), BANNED);
        let of_looser = counts(gate, "looser");
        assert_eq!(
            (of_looser.denied, of_looser.bans, of_looser.banned),
            (3, 1, 0),
            "{store}: its third strike"
        );
        assert_eq!(ask(gate, &ana()), BANNED);
        assert_eq!(counts(gate, "looser").banned, 1, "{store}");

        clock.advance(2 * BAN);
        let request = Attributes::new().set("user", "eve").path("/open").all_limits();
        for _ in 0..6 {
            clock.advance(2 * MINUTE);
            assert!(admit(gate, &request).is_allowed());
        }
        for _ in 0..8 {
            let answer = admit(gate, &request);
            assert!(answer.limits().all(|limit| &*limit.rule != "stricter"));
        }
        let of_stricter = counts(gate, "stricter");
        assert_eq!((of_stricter.bans, counts(gate, "open").bans), (0, 0), "{store}: login denied first");
        let [of_looser, of_login] = ["looser", "login"].map(|rule| counts(gate, rule));
        assert!(of_login.bans >= 2 && of_looser.bans >= 2, "{store}: {of_login:?} {of_looser:?}");
        assert!(banned(gate, None).iter().all(|(rule, ..)| rule == "login"), "{store}");
    });
}

#[test]
fn in_a_group_only_the_chosen_member_is_asked() {
    let member = |name: &str, when: &str| {
        rule(name, "1/2m", THREE).replace("key =", &format!("group = 'plan'\n{when}\nkey ="))
    };
    let text = member("vip", "when = { plan = 'vip' }") + &member("default", "");
    each_store(&text, |store, gate, clock| {
        let vip = ana().set("plan", "vip");
        ban(gate, &vip);
        assert_eq!(ask(gate, &vip), BANNED, "{store}: no other member takes its place");
        assert_eq!(counts(gate, "default"), RuleCounts::default(), "{store}");
        // The same key under the other member has its own strikes.
        denied(gate, &ana(), 2);
        assert_eq!(ask(gate, &vip), BANNED);
        assert_eq!(ask(gate, &ana()), BEGUN, "{store}");
        clock.advance(BAN);
        assert_eq!([ask(gate, &vip), ask(gate, &ana())], [Said::Allowed; 2], "{store}");
    });
}

#[test]
fn bans_of_one_rule_leave_other_rules_with_the_same_key_alone() {
    let text = rule("a", "1/2m", THREE).replace("key =", "when = { path = '/a' }\nkey =")
        + &rule("b", "1/2m", THREE).replace("key =", "when = { path = '/b' }\nkey =")
        + &rule("a-ban", "1/2m", THREE).replace("key =", "when = { path = '/c' }\nkey =");
    each_store(&text, |store, gate, _| {
        ban(gate, &ana().path("/a"));
        for path in ["/b", "/c"] {
            assert_eq!(ask(gate, &ana().path(path)), Said::Allowed, "{store}");
        }
        ban(gate, &bob().path("/b"));
        assert_eq!(ask(gate, &ana().path("/a")), BANNED);
        assert_eq!(banned(gate, Some("b")), [("b".to_owned(), "bob".to_owned(), BAN)], "{store}");
    });
}
