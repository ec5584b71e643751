use super::super::limits::LimitInUse;
use super::super::{Gate, ManualCalendar};
use super::*;
use crate::Attributes;

fn rule(name: &str, key: &str, limit: &str) -> String {
    format!("[[rule]]\nname = '{name}'\nkey = [{key}]\nlimit = '{limit}'\n")
}

fn policy(text: &str) -> Policy {
    Policy::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
}

fn gate(text: &str) -> (Gate, Arc<ManualCalendar>) {
    let calendar = Arc::new(ManualCalendar::at(0));
    let gate = Gate::builder(policy(text), tidegate_core::Zone::new(1 << 16)).calendar(calendar.clone());
    (gate.build().expect("there is memory"), calendar)
}

fn by_user() -> (Gate, Arc<ManualCalendar>) {
    gate(&rule("api", "'user'", "1000/s"))
}

fn user(name: &str) -> Attributes<'_> {
    Attributes::new().set("user", name)
}

fn ban(gate: &Gate, name: &str, until: impl Into<Option<i64>>) -> Result<(), OverrideError> {
    gate.put_override("api", &user(name), Instead::Deny, until).map(drop)
}

fn is_banned(gate: &Gate, request: &Attributes<'_>) -> bool {
    !gate.admit(request).now().expect("memory answers at once").is_allowed()
}

fn idle(gate: &Gate) -> Vec<String> {
    gate.idle_overrides().into_iter().map(|idle| idle.why).collect()
}

#[test]
fn an_override_holds_for_its_key_until_its_end_or_without_one() {
    let (gate, calendar) = by_user();
    assert_eq!((ban(&gate, "ana", 100), ban(&gate, "eve", None)), (Ok(()), Ok(())));
    for (now, is_over) in [(0, false), (99, false), (100, true), (i64::MAX - 1, true), (i64::MIN, false)] {
        calendar.set(now);
        assert_eq!(is_banned(&gate, &user("ana")), !is_over, "{now}");
        assert!(is_banned(&gate, &user("eve")) && !is_banned(&gate, &user(&format!("bob {now}"))), "{now}");
        assert_eq!(gate.overrides().len(), if is_over { 1 } else { 2 }, "{now}");
    }
    calendar.set(0);
    assert_eq!(gate.overrides().iter().map(|one| one.until).collect::<Vec<_>>(), [Some(100), None]);
    for name in ["ana", "eve"] {
        assert_eq!(gate.remove_override("api", &user(name)), Ok(true));
        assert_eq!(gate.remove_override("api", &user(name)), Ok(false));
    }
    assert!(gate.inner.overrides.is_empty());
}

#[test]
fn an_override_of_a_rule_that_is_not_in_force_has_no_effect_until_the_rule_is_back() {
    let text = rule("api", "'ip'", "1000/s");
    let wide = text.clone() + "ipv4_prefix = 24\n";
    let ana = Attributes::new().ip("192.0.2.7".parse().expect("an address"));
    for (other, why) in [
        (rule("renamed", "'ip'", "1/s"), "there is no rule of this name with a limit"),
        (rule("api", "'user'", "1/s"), "counts by \"user\", in another spelling"),
        (rule("api", "'ip', 'user'", "1/s"), "counts by \"ip\", \"user\", in another spelling"),
        (wide.clone(), "counts by \"ip\", in another spelling"),
        ("[[rule]]\nname = 'api'\ndecision = 'allow'\n".to_owned(), "no rule of this name with a limit"),
        (String::new(), "there is no rule of this name"),
    ] {
        let (gate, _) = gate(&text);
        assert!(gate.put_override("api", &ana, Instead::Deny, None).is_ok());
        let listed = gate.overrides();
        gate.replace(policy(&other)).expect("there is memory");
        let reasons = idle(&gate);
        assert!(reasons.len() == 1 && reasons[0].contains(why), "{reasons:?} for {other}");
        assert!(!is_banned(&gate, &ana), "{other}");
        assert_eq!(gate.overrides(), listed, "it is kept");
        gate.replace(policy(&(rule("x", "'user'", "1/s") + &text))).expect("there is memory");
        assert!(is_banned(&gate, &ana) && idle(&gate).is_empty(), "{other}");
    }
    // The text of a network is that of the group by which the rule counts, and means nothing under another one.
    let (gate, _) = gate(&wide);
    assert!(gate.put_override("api", &ana, Instead::Deny, None).is_ok());
    assert_eq!(gate.overrides()[0].key, [("ip".to_owned(), "192.0.2.0/24".to_owned())]);
    gate.replace(policy(&text)).expect("there is memory");
    assert!(!is_banned(&gate, &ana) && idle(&gate).len() == 1);
    gate.replace(policy(&wide)).expect("there is memory");
    assert!(is_banned(&gate, &ana));
}

#[test]
fn a_key_whose_parts_are_in_another_order_is_the_same_key() {
    let (gate, _) = gate(&rule("api", "'user', 'team'", "1/s"));
    let both = user("ana").set("team", "red");
    assert!(gate.put_override("api", &both, Instead::Deny, None).is_ok());
    gate.replace(policy(&rule("api", "'team', 'user'", "1/s"))).expect("there is memory");
    assert!(is_banned(&gate, &both) && !is_banned(&gate, &user("red").set("team", "ana")));
    assert_eq!(gate.remove_override("api", &both), Ok(true));
}

#[test]
fn a_change_is_made_if_the_caller_agrees_to_what_it_replaces() {
    let (gate, calendar) = by_user();
    let no = || Err(OverrideError::TooMany);
    let put = |until: i64, may_replace: &dyn Fn(Option<&Override>) -> Result<(), OverrideError>| {
        let ana = user("ana");
        gate.put_override_if("api", &ana, Instead::Deny, until, |old, _| may_replace(old)).map(|put| put.put)
    };
    let first = put(100, &|old| {
        assert_eq!(old, None);
        Ok(())
    })
    .expect("it is agreed to");
    let replaced = put(200, &|old| {
        assert_eq!(old, Some(&first));
        no()
    });
    assert_eq!((replaced, gate.overrides()), (no().map(|()| first.clone()), vec![first.clone()]));
    let kept = gate.remove_override_if("api", &user("ana"), |old| {
        assert_eq!(old, Some(&first));
        no()
    });
    assert_eq!((kept, gate.overrides()), (Err(OverrideError::TooMany), vec![first]));
    calendar.set(100);
    let after_the_end = put(200, &|old| {
        assert_eq!(old, None, "one that has ended is replaced by anybody");
        Ok(())
    });
    assert_eq!(after_the_end.map(|put| (put.until, put.at)), Ok((Some(200), 100)));
}

#[test]
fn a_set_that_replaces_all_others_ends_those_that_are_not_in_it() {
    let (gate, _) = by_user();
    for name in ["ana", "bob"] {
        assert_eq!(ban(&gate, name, None), Ok(()));
    }
    let mut set = gate.override_set();
    let [ana, bob] = ["ana", "bob"].map(|name| gate.override_id("api", &user(name)).expect("a key"));
    assert!(set.remove(&ana).is_some() && set.get(&bob).is_some());
    let eve = Override::new("api", vec![("user".to_owned(), "eve".to_owned())], Instead::Deny);
    assert_eq!(set.put(eve), Ok(()));
    let over = Override { until: Some(0), ..Override::new("api", vec![], Instead::Deny) };
    assert_eq!(set.put(over), Ok(()));
    gate.replace_overrides(set.clone());
    assert_eq!(["ana", "bob", "eve"].map(|name| is_banned(&gate, &user(name))), [false, true, true]);
    set.remove_ended(0);
    assert_eq!(gate.override_set(), set);
}

#[test]
fn one_with_a_limit_matters_for_one_refill_after_its_end_and_makes_room_when_that_is_needed() {
    let limit: Limit = "10/m fixed-window".parse().unwrap();
    let keyed = |gate: &Gate| gate.inner.overrides.all.load().keyed.values().map(HashMap::len).sum::<usize>();
    // Another gate can have decided by it.
    for (has_decided, until) in [(false, 160), (true, 160)] {
        let (gate, calendar) = by_user();
        gate.put_override("api", &user("ana"), Instead::Limit(limit), 100).expect("there is room");
        let policy = policy(&rule("api", "'user'", "1/s"));
        let api = &policy.rules()[0];
        let of_rule = tidegate_core::PreparedLimit::of_rule("api", *api.limit().unwrap());
        let key = api.limited().unwrap().key.key_of_named(&gate.overrides()[0].key).unwrap();
        if has_decided {
            let found = gate.inner.overrides.of(api, &key, || 0).unwrap();
            found.in_place_of(LimitInUse::Constant(&of_rule), 0);
        }
        let matters = |now| gate.inner.overrides.of(api, &key, || now).is_some();
        assert!(matters(until - 1) && !matters(until), "{has_decided}");
        calendar.set(100);
        assert_eq!((gate.overrides(), keyed(&gate)), (Vec::new(), 1));
        assert_eq!(ban(&gate, "bob", 500), Ok(()));
        assert_eq!(keyed(&gate), 2, "the counts are carried over to the rule");
        let mut full = gate.override_set();
        for nth in full.len()..MAX_OVERRIDES {
            let nth = vec![("user".to_owned(), nth.to_string())];
            full.put(Override::new("api", nth, Instead::Deny)).expect("there is room");
        }
        gate.replace_overrides(full);
        assert_eq!(keyed(&gate), MAX_OVERRIDES, "the one that ended goes first");
        assert!(gate.inner.overrides.of(api, &key, || 100).is_none());
        assert_eq!(ban(&gate, "eve", None), Err(OverrideError::TooMany));
    }
}
