//! Tests of the table of overrides on a real server.

use testbed::{Cluster, Flavour, Redis, Sentinels};
use tidegate_redis::{OverrideTable, TableChange, TableRead};

use crate::setup::{cluster_url, eventually, open, options, redis, sentinel_url, store, wait};

fn read(table: &OverrideTable) -> TableRead {
    wait(table.read(100)).expect("the server answers")
}

fn change(table: &OverrideTable, from: u64, change: &TableChange) -> bool {
    wait(table.change(from, change)).expect("the server answers")
}

fn set(names: &[&str]) -> TableChange {
    let each = names.iter().map(|name| (name.as_bytes().to_vec(), format!("text of {name}").into_bytes()));
    TableChange { set: each.collect(), ..TableChange::default() }
}

fn names(read: &TableRead) -> Vec<String> {
    let each = read.each.as_deref().expect("there are not too many").iter();
    let mut names: Vec<_> = each.map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
    names.sort();
    names
}

fn ttl(redis: &Redis) -> i64 {
    redis.command(&["TTL", "tg:overrides"]).trim().parse().expect("a number")
}

#[test]
fn a_change_is_made_if_it_names_the_version_that_is_there() {
    let redis = redis();
    let (one, other) = (store(&redis.url()).overrides(), store(&redis.url()).overrides());
    assert_eq!(read(&one), TableRead { each: Some(Vec::new()), ..TableRead::default() });
    assert!(change(&one, 0, &set(&["1:a", "1:b"])));
    assert!(!change(&other, 0, &set(&["1:c"])), "the other one was first");
    let seen = read(&other);
    assert_eq!(
        (names(&seen), wait(other.version()).ok()),
        (vec!["1:a".to_owned(), "1:b".to_owned()], Some(seen.version))
    );
    let next = TableChange { removed: vec![b"1:a".to_vec(), b"1:x".to_vec()], ..set(&["1:c"]) };
    assert!(change(&other, seen.version, &next) && !change(&one, seen.version, &next));
    let last = read(&one);
    assert!(last.version > seen.version);
    assert_eq!(names(&last), ["1:b", "1:c"]);
    assert_eq!(last.each.unwrap_or_default()[0].1, b"text of 1:b");
}

#[test]
fn of_many_changes_at_the_same_version_one_is_made() {
    let redis = redis();
    let tables = [(); 8].map(|()| store(&redis.url()).overrides());
    for round in 0..20 {
        let version = read(&tables[0]).version;
        let made: Vec<bool> = std::thread::scope(|scope| {
            let each = tables.iter().enumerate();
            let threads: Vec<_> = each
                .map(|(nth, table)| {
                    scope.spawn(move || change(table, version, &set(&[&format!("{nth}:{round}")])))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
        });
        assert_eq!(made.iter().filter(|made| **made).count(), 1, "{round}: {made:?}");
        assert_eq!(read(&tables[1]).count, round + 1);
    }
}

#[test]
fn the_table_ends_behind_the_last_of_its_texts_or_never() {
    let redis = redis();
    let table = store(&redis.url()).overrides();
    assert!(change(&table, 0, &set(&["1:a"])));
    assert_eq!(ttl(&redis), -1, "it has no end");
    let now: u64 =
        redis.command(&["TIME"]).lines().next().and_then(|now| now.trim().parse().ok()).expect("a time");
    let until = Some(now + 100_000);
    let ends = TableChange { until, ..set(&["1:a"]) };
    assert!(change(&table, read(&table).version, &ends));
    assert!((1..=100_001).contains(&ttl(&redis)));
    assert!(change(&table, read(&table).version, &set(&["1:b"])));
    assert_eq!(ttl(&redis), -1, "it has no end any more");
}

#[test]
fn a_table_that_was_lost_gets_versions_that_it_has_not_had() {
    let redis = redis();
    let table = store(&redis.url()).overrides();
    let mut seen = Vec::new();
    for _ in 0..3 {
        assert!(change(&table, 0, &set(&["1:a"])));
        let first = read(&table).version;
        for _ in 0..3 {
            let TableRead { version, epoch, .. } = read(&table);
            assert!(!seen.contains(&version));
            assert_eq!(epoch, Some(first), "the epoch is the first version");
            seen.push(version);
            assert!(change(&table, version, &set(&["1:a"])));
        }
        redis.command(&["FLUSHALL"]);
        assert_eq!(wait(table.version()).ok(), Some(0));
    }
}

#[test]
fn more_than_the_caller_accepts_is_counted_and_not_read() {
    let redis = redis();
    let table = store(&redis.url()).overrides();
    assert!(change(&table, 0, &set(&["1:a", "1:b"])));
    let read = |most| wait(table.read(most)).expect("the server answers");
    assert_eq!((read(2).count, read(2).each.map(|each| each.len())), (2, Some(2)));
    assert_eq!((read(1).count, read(1).each), (2, None));
}

#[test]
fn another_prefix_is_another_table_and_another_type_is_an_error() {
    let redis = redis();
    let table = store(&redis.url()).overrides();
    let other = open(options(&redis.url()).prefix("other:")).overrides();
    assert!(change(&table, 0, &set(&["1:a"])));
    assert_eq!(read(&other).count, 0);
    redis.command(&["SET", "other:overrides", "text"]);
    assert!(wait(other.read(100)).is_err() && wait(other.version()).is_err());
    assert!(wait(other.change(0, &set(&["1:a"]))).is_err());
    assert_eq!(redis.command(&["GET", "other:overrides"]).trim(), "text");
}

#[test]
fn a_server_without_memory_changes_nothing() {
    let redis = redis();
    let table = store(&redis.url()).overrides();
    assert!(change(&table, 0, &set(&["1:a"])));
    let known = read(&table);
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let removes = TableChange { removed: vec![b"1:a".to_vec()], ..set(&["1:b"]) };
    let error = wait(table.change(known.version, &removes)).expect_err("there is no memory");
    assert!(error.is_retryable(), "{error:?}");
    assert_eq!(read(&table), known);
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(change(&table, known.version, &removes));
}

#[test]
fn a_cluster_has_one_table_and_a_failover_keeps_it() {
    let cluster = Cluster::start(Flavour::Redis7);
    let [one, other] = [(); 2].map(|()| store(&cluster_url(&cluster)).overrides());
    assert!(change(&one, 0, &set(&["1:a", "1:b"])));
    assert_eq!(names(&read(&other)), ["1:a", "1:b"]);
    let sentinels = Sentinels::start(Flavour::Redis7);
    let table = store(&sentinel_url(&sentinels)).overrides();
    assert!(change(&table, 0, &set(&["1:a"])));
    let known = read(&table);
    sentinels.wait_until_whole();
    let old = sentinels.kill_primary();
    sentinels.wait_for_failover(old);
    // The replica has the change, or has lost it as any replica may lose the last writes.
    let after = eventually("the new primary answers", || wait(table.read(100)).ok());
    assert!(after == known || after.version == 0, "{after:?}");
}
