use super::super::limits::LimitInUse;
use super::*;

fn one(user: &str, until: i64) -> (Key, Override) {
    let key = vec![("user".to_owned(), user.to_owned())];
    (Key::new(user), Override { rule: "api".into(), key, instead: Instead::Allow, until })
}

fn policy(name: &str, part: &str) -> Policy {
    let text = format!("[[rule]]\nname = '{name}'\nkey = ['{part}']\nlimit = '1/s'");
    Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}"))
}

fn unused((key, one): (Key, Override)) -> (Key, Arc<Overridden>) {
    (key, Arc::new(Overridden::new(one, None)))
}

fn put(overrides: &Overrides, key: Key, one: Override, now: i64) -> Result<(), OverrideError> {
    overrides.put(key, one, now, |_, _| Ok(()))
}

fn remove(overrides: &Overrides, rule: &str, key: &Key, now: i64) -> bool {
    overrides.remove(rule, key, now, |_| Ok::<(), OverrideError>(())) == Ok(true)
}

fn instead(overrides: &Overrides, rule: &Rule, key: &Key, now: i64) -> Option<Instead> {
    overrides.of(rule, key, || now).and_then(|found| found.instead(now))
}

#[test]
fn an_override_holds_for_its_key_until_its_end() {
    let overrides = Overrides::default();
    let (api, other) = (policy("api", "user"), policy("other", "user"));
    let (api, other) = (&api.rules()[0], &other.rules()[0]);
    let (key, ana) = one("ana", 100);
    assert_eq!(put(&overrides, key.clone(), ana, 0), Ok(()));
    assert_eq!(instead(&overrides, api, &key, 99), Some(Instead::Allow));
    assert_eq!(instead(&overrides, api, &key, 100), None);
    assert_eq!(instead(&overrides, api, &Key::new("bob"), 0), None);
    assert_eq!(instead(&overrides, other, &key, 0), None);
    assert_eq!((overrides.list(99).len(), overrides.list(100).len()), (1, 0));
    assert!(remove(&overrides, "api", &key, 0) && !remove(&overrides, "api", &key, 0));
    assert!(overrides.of(api, &key, || unreachable!("there is none")).is_none());
}

#[test]
fn an_override_applies_to_no_key_when_the_rule_counts_by_another_attribute() {
    let overrides = Overrides::default();
    let (key, ana) = one("ana", 100);
    assert_eq!(put(&overrides, key.clone(), ana, 0), Ok(()));
    let by_header = policy("api", "header.x");
    assert_eq!(instead(&overrides, &by_header.rules()[0], &key, 0), None);
    let by_user = policy("api", "user");
    overrides.keep_those_of(&by_user, &by_user, 0);
    assert_eq!(overrides.list(0).len(), 1);
    overrides.keep_those_of(&by_user, &by_header, 0);
    assert_eq!(overrides.list(0), []);
}

#[test]
fn a_change_is_made_if_the_caller_agrees_to_what_it_replaces() {
    let overrides = Overrides::default();
    let ((key, first), (_, second)) = (one("ana", 100), one("ana", 200));
    let no = || Err(OverrideError::TooMany);
    let agreed = overrides.put(key.clone(), first.clone(), 0, |old, new| {
        assert_eq!((old, new), (None, &first));
        Ok::<(), OverrideError>(())
    });
    assert_eq!(agreed, Ok(()));
    let refused = overrides.put(key.clone(), second.clone(), 0, |old, new| {
        assert_eq!((old, new), (Some(&first), &second));
        no()
    });
    assert_eq!((refused, overrides.list(0)), (no(), vec![first.clone()]));
    let kept = overrides.remove("api", &key, 0, |old| {
        assert_eq!(old, Some(&first));
        no()
    });
    assert_eq!((kept, overrides.list(0)), (Err(OverrideError::TooMany), vec![first]));
    let after_the_end = overrides.put(key, second, 100, |old, _| {
        assert_eq!(old, None, "one that has ended is replaced by anybody");
        Ok::<(), OverrideError>(())
    });
    assert_eq!(after_the_end, Ok(()));
}

#[test]
fn there_are_only_so_many_and_those_that_ended_make_room() {
    let overrides = Overrides::default();
    let (last_key, last) = one("last", 100);
    let many: All = HashMap::from([(
        "api".into(),
        (0..MAX_OVERRIDES).map(|user| unused(one(&user.to_string(), 50))).collect(),
    )]);
    overrides.all.store(Arc::new(many));
    assert_eq!(put(&overrides, last_key.clone(), last.clone(), 0), Err(OverrideError::TooMany));
    let (known, again) = one("7", 60);
    assert_eq!(put(&overrides, known, again, 0), Ok(()));
    assert_eq!(put(&overrides, last_key, last, 50), Ok(()));
    assert_eq!(overrides.list(50).len(), 2);
}

#[test]
fn keys_have_only_so_many_bytes_together_and_those_that_ended_make_room() {
    let overrides = Overrides::default();
    let put = |user: &str, now| {
        let (key, one) = one(user, 100);
        put(&overrides, key, one, now)
    };
    // Each value is stored twice: in the key, after its length, and as a part, with the name of the part.
    let long = |nth: usize, bytes: usize| format!("{nth:02}{}", "x".repeat(bytes - 2));
    for nth in 0..63 {
        assert_eq!(put(&long(nth, 32 << 10), 0), Ok(()));
    }
    let taken: usize =
        overrides.all.load().values().flatten().map(|(key, found)| found.one().bytes(key)).sum();
    let left = MAX_OVERRIDE_BYTES - taken;
    let around = one("", 0).1.bytes(&Key::new("")) + 2;
    let fits = (left - around) / 2;
    let error = put(&long(63, fits + 1), 0).expect_err("one more byte is too long");
    let OverrideError::TooLong { bytes, left: reported } = error else { panic!("{error}") };
    assert!(bytes > left && bytes <= left + 2 && reported == left, "{bytes} of {left}, reported {reported}");
    assert_eq!(put(&long(63, fits), 0), Ok(()));
    assert!(put("ana", 0).is_err(), "there is no room for a short one either");
    assert_eq!(put(&long(63, fits), 0), Ok(()), "one that replaces itself needs no room");
    assert_eq!(overrides.list(0).len(), 64);
    assert!(remove(&overrides, "api", &Key::new(long(7, 32 << 10).as_str()), 0));
    assert_eq!(put("ana", 0), Ok(()));
    assert_eq!(put(&long(99, 64 << 10), 100), Ok(()), "all others have ended");
}

#[test]
fn one_that_decided_matters_for_one_refill_after_its_end_and_makes_room_when_that_is_needed() {
    let overrides = Overrides::default();
    let api = policy("api", "user");
    let rule = &api.rules()[0];
    let limit: Limit = "10/m fixed-window".parse().unwrap();
    let (key, ana) = one("ana", 100);
    let ana = Override { instead: Instead::Limit(limit), ..ana };
    for (has_decided, until) in [(false, 100), (true, 160)] {
        assert_eq!(put(&overrides, key.clone(), ana.clone(), 0), Ok(()));
        let of_rule = tidegate_core::PreparedLimit::of_rule("api", *rule.limit().unwrap());
        if has_decided {
            let found = overrides.of(rule, &key, || 0).unwrap();
            found.limit(&limit, LimitInUse::Constant(&of_rule), 0);
        }
        let matters = |now| overrides.of(rule, &key, || now).is_some();
        assert!(matters(until - 1) && !matters(until), "{has_decided}");
        assert_eq!(instead(&overrides, rule, &key, 100), None);
        assert_eq!(overrides.list(100), []);
    }
    let others = (1..MAX_OVERRIDES).map(|user| unused(one(&user.to_string(), 500)));
    let mut all = All::clone(&overrides.all.load());
    all.get_mut("api").unwrap().extend(others);
    overrides.all.store(Arc::new(all));
    let (last_key, last) = one("last", 500);
    assert_eq!(put(&overrides, last_key, last, 99), Err(OverrideError::TooMany));
    let (last_key, last) = one("last", 500);
    assert_eq!(put(&overrides, last_key, last, 100), Ok(()), "the one that ended goes first");
    assert!(overrides.of(rule, &key, || 100).is_none());
}
