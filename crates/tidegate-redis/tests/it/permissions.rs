//! Tests of the minimal permissions of a user, as documented.

use testbed::{Flavour, Redis, Settings};
use tidegate_redis::TableChange;
use tidegate_redis::doctor::{Gravity, examine};

use crate::setup::{Someone, eventually, forgetful, options, reason, store, wait};

/// Returns the line of the documentation that grants all that the store needs.
fn published() -> String {
    let page = include_str!("../../../../docs/distributed.md");
    let line =
        page.lines().find(|line| line.starts_with("ACL SETUSER tidegate ")).expect("the page has the line");
    line.strip_prefix("ACL SETUSER ").expect("it begins so").to_owned()
}

fn guarded() -> Redis {
    let redis = Redis::with(&Settings::new(Flavour::Redis7));
    let line = published();
    let mut words = vec!["ACL", "SETUSER"];
    words.extend(line.split_ascii_whitespace());
    assert_eq!(redis.command(&words), "OK", "{line}");
    redis
}

#[test]
fn what_is_published_is_enough() {
    let redis = guarded();
    let url = format!("redis://tidegate:PASSWORD@{}", redis.address());
    let found = wait(examine(options(&url))).unwrap();
    let scripts = found.iter().find(|finding| finding.about == "scripts").expect("they were tried");
    assert_eq!(scripts.gravity, Gravity::Good, "{found:?}");
    redis.command(&["SCRIPT", "FLUSH"]);
    assert!(Someone::new("ana", "5/h").is_allowed(&store(&url)));
}

/// The message about a flush, and the reading of tables, need permissions of their own.
#[test]
fn what_is_published_is_enough_to_look_after_tables() {
    let redis = guarded();
    let store = forgetful(&format!("redis://tidegate:PASSWORD@{}", redis.address()));
    let ana = Someone::new("ana", "5/h");
    let is_listed = || redis.command(&["EXISTS", "tg:limits:test"]) == "1";
    assert!(ana.is_allowed(&store));
    redis.command(&["FLUSHALL"]);
    assert!(ana.is_allowed(&store) && is_listed(), "the server has reported the flush");
    redis.command(&["DEL", "tg:limits:test"]);
    assert!(ana.is_allowed(&store));
    eventually("the table is written again", || is_listed().then_some(()));
    assert!(store.status().is_available, "{:?}", store.status());
}

#[test]
fn what_is_published_is_enough_for_overrides() {
    let redis = guarded();
    let table = store(&format!("redis://tidegate:PASSWORD@{}", redis.address())).overrides();
    let set =
        |until| TableChange { set: vec![(b"1:a".to_vec(), b"{}".to_vec())], until, ..TableChange::default() };
    for until in [None, Some(4_000_000_000), None] {
        let version = wait(table.version()).expect("it may read");
        assert!(wait(table.change(version, &set(until))).expect("it may write"));
    }
    let removed = TableChange { removed: vec![b"1:a".to_vec()], ..TableChange::default() };
    let known = wait(table.read(9)).expect("it may read");
    assert!(wait(table.change(known.version, &removed)).expect("it may delete"));
}

#[test]
fn and_nothing_else_is_allowed() {
    let redis = guarded();
    let mut connection = redis.connection();
    assert_eq!(connection.call(&["AUTH", "tidegate", "PASSWORD"]).unwrap().text(), "OK");
    for words in [
        &["CONFIG", "GET", "*"][..],
        &["KEYS", "*"],
        &["FLUSHALL"],
        &["GET", "other-program"],
        &["SET", "other-program", "1"],
        &["EVAL", "return redis.call('GET', 'other-program')", "0"],
        &["SHUTDOWN"],
        &["ACL", "LIST"],
        &["DEBUG", "SLEEP", "0"],
        &["MONITOR"],
    ] {
        let said = connection.call(words).unwrap().text();
        assert!(
            said.contains("NOPERM") || said.contains("The user executing the script can't access"),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn what_is_missing_is_said() {
    let redis = guarded();
    assert_eq!(redis.command(&["ACL", "SETUSER", "tidegate", "-zadd"]), "OK");
    let store = store(&format!("redis://tidegate:PASSWORD@{}", redis.address()));
    assert!(Someone::new("ana", "5/h").is_allowed(&store), "this one needs no sorted set");
    let error = Someone::new("ana", "5/h sliding-log").take(&store).expect_err("it may not");
    let said = reason(&error);
    assert!(said.contains("can't run this command") && said.contains("tidegate doctor"), "{said}");
    assert!(error.is_retryable(), "nothing was done");
}
