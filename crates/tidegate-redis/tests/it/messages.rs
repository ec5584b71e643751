//! Tests of the messages about invalid deployments: clear, and with a remedy.

use testbed::{Cluster, Flavour, Proxy, Redis, Sentinels, Settings};
use tidegate_redis::doctor::{Finding, Gravity, examine};
use tidegate_redis::{Options, RedisStore};

use crate::setup::{Someone, cluster_url, options, reason, redis, sentinel_url, store, wait};

/// Returns the reason why a store cannot decide.
fn said(url: &str) -> String {
    said_with(options(url))
}

fn said_with(options: Options) -> String {
    let store = RedisStore::open(options).unwrap_or_else(|error| panic!("{error}"));
    reason(&wait(store.ready()).expect_err("it cannot decide"))
}

fn findings(url: &str) -> Vec<Finding> {
    wait(examine(options(url))).unwrap_or_else(|error| panic!("{error}"))
}

fn worst(findings: &[Finding]) -> Gravity {
    findings.iter().map(|finding| finding.gravity).max().expect("something was found")
}

#[track_caller]
fn contains(said: &str, part: &str) {
    assert!(said.contains(part), "{part:?} is not in: {said}");
}

#[test]
fn an_address_without_a_server() {
    let redis = redis();
    redis.kill();
    contains(&said(&redis.url()), "connection refused; start the server there, or correct the URL");
    contains(
        &said("redis://no-such-host.invalid:6379"),
        "this name is not known; correct the host in the URL",
    );
}

#[test]
fn a_wrong_password_and_a_missing_one() {
    let redis = Redis::with(&Settings::new(Flavour::Redis7).password("right"));
    let address = redis.address();
    contains(&said(&format!("redis://:wrong@{address}")), "correct the user or the password in the URL");
    contains(&said(&format!("redis://{address}")), "wants a password");
    let right = store(&format!("redis://:right@{address}"));
    wait(right.ready()).unwrap_or_else(|error| panic!("{}", reason(&error)));
}

#[test]
fn a_replica_a_sentinel_and_a_node_of_a_cluster() {
    let sentinels = Sentinels::start(Flavour::Redis7);
    let primary = sentinels.primary().address();
    let replica = sentinels.nodes().iter().map(Redis::address).find(|address| *address != primary).unwrap();
    contains(
        &said(&format!("redis://{replica}")),
        "this server is a replica; name its primary, or the Sentinels",
    );
    contains(
        &said(&format!("redis://{}", sentinels.addresses()[0])),
        "this is a Sentinel; write redis+sentinel://",
    );
    let wrong = sentinel_url(&sentinels).replace(sentinels.name(), "unknown");
    contains(&said(&wrong), "watches no service \"unknown\"; correct its name in the URL");
    contains(
        &said(&format!("redis+cluster://{primary}")),
        "this server is in no cluster; write redis:// in the URL",
    );
    assert!(
        worst(&findings(&sentinel_url(&sentinels))) < Gravity::Bad,
        "{:?}",
        findings(&sentinel_url(&sentinels))
    );

    let cluster = Cluster::start(Flavour::Redis7);
    let node = format!("redis://{}", cluster.addresses()[0]);
    let store = store(&node);
    let people = (0..50).map(|nth| Someone::new(&format!("{nth}"), "5/h").take(&store));
    let error = people.filter_map(Result::err).next().expect("some slots are on other nodes");
    contains(&reason(&error), "write redis+cluster:// in the URL");
    assert!(
        findings(&cluster_url(&cluster)).iter().all(|finding| finding.gravity == Gravity::Good),
        "{:?}",
        findings(&cluster_url(&cluster))
    );
}

/// A server without the HELLO command, as old servers are.
#[test]
fn a_server_that_is_too_old() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    proxy.only_for(&["HELLO"]);
    proxy.answer(1000, "-ERR unknown command `HELLO`, with args beginning with: `3`, ");
    contains(
        &said(&proxy.url()),
        "this server is too old, or does not know HELLO; run Redis 6.2 or later, or Valkey",
    );
}

/// Servers repeat commands that they do not know, including the password.
#[test]
fn a_server_that_repeats_the_password() {
    let redis = redis();
    let proxy = Proxy::start(redis.address());
    proxy.only_for(&["HELLO"]);
    proxy.answer(
        1000,
        "-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 'hunter2' ",
    );
    let url = proxy.url().replace("://", "://:hunter2@");
    let found = format!("{} {:?}", said(&url), findings(&url));
    contains(&found, "does not know HELLO");
    assert!(!found.contains("hunter2"), "{found}");
}

#[test]
fn evictions() {
    let redis = Redis::with(
        &Settings::new(Flavour::Redis7).option("maxmemory", "50mb").option("maxmemory-policy", "allkeys-lru"),
    );
    let found = findings(&redis.url());
    let eviction = found.iter().find(|finding| finding.about == "eviction").expect("it was looked at");
    assert_eq!(eviction.gravity, Gravity::Bad);
    contains(&eviction.what, "allkeys-lru");
    contains(&eviction.what, "CONFIG SET maxmemory-policy noeviction");
}

#[test]
fn all_is_well() {
    for flavour in Flavour::available() {
        let redis = Redis::start(flavour);
        let found = findings(&redis.url());
        assert!(found.iter().all(|finding| finding.gravity == Gravity::Good), "{flavour}: {found:?}");
        assert_eq!(redis.command(&["DBSIZE"]), "0", "the doctor leaves nothing behind");
    }
}

#[test]
fn an_encrypted_server() {
    let redis = Redis::with(&Settings::new(Flavour::Redis7).tls());
    let (address, certificates) = (redis.tls_address().unwrap(), redis.certificates().unwrap());
    let read = |path| std::fs::read(path).expect("a certificate");
    let url = format!("rediss://localhost:{}", address.port());
    let encrypted = options(&url).root_certificate(read(certificates.authority()));
    let (certificate, key) = certificates.client();
    let encrypted = encrypted.client_certificate(read(certificate), read(key));
    let store = crate::setup::open(encrypted);
    assert!(Someone::new("ana", "5/h").is_allowed(&store));
    contains(&said(&url), "no encrypted connection");
    contains(&said(&format!("rediss://{}", redis.address())), "rediss:// only where the server speaks TLS");
}
