use super::*;
use crate::doctor::Gravity;

fn address() -> Address {
    Address { host: "h".into(), port: 1 }
}

fn options(url: &str) -> Options {
    Options::new(url.parse().unwrap())
}

#[test]
fn a_server_that_is_too_old_is_named_with_what_would_do() {
    for (redis, valkey, gravity) in [
        (Some("7.0.15"), None, Gravity::Good),
        (Some("6.2.0"), None, Gravity::Good),
        (Some("6.0.16"), None, Gravity::Bad),
        (Some("5.0.14"), None, Gravity::Bad),
        (Some("7.2.4"), Some("9.1.2"), Gravity::Good),
        (Some("255.255.255"), None, Gravity::Good),
        (Some("odd"), None, Gravity::Warning),
        (None, None, Gravity::Warning),
    ] {
        assert_eq!(version(&address(), redis, valkey).gravity, gravity, "{redis:?} {valkey:?}");
    }
    assert!(version(&address(), Some("5.0.14"), None).what.contains("run Redis 6.2 or later, or Valkey"));
}

#[test]
fn whatever_evicts_our_keys_is_bad() {
    for policy in
        ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-ttl", "volatile-random"]
    {
        let finding = eviction(&address(), Some(policy), Some("1000000"));
        assert_eq!(finding.gravity, Gravity::Bad, "{policy}");
        assert!(finding.what.contains("CONFIG SET maxmemory-policy noeviction"), "{finding}");
        assert_eq!(eviction(&address(), Some(policy), Some("0")).gravity, Gravity::Warning);
    }
    assert_eq!(eviction(&address(), Some("noeviction"), Some("1000000")).gravity, Gravity::Good);
    assert_eq!(eviction(&address(), None, None).gravity, Gravity::Warning);
}

#[test]
fn a_server_of_another_kind_is_reported_with_the_right_url() {
    let standalone = options("redis://h:1");
    assert!(role(&address(), Some("slave"), None, &standalone).what.contains("is a replica"));
    assert!(
        role(&address(), Some("master"), Some("cluster"), &standalone).what.contains("redis+cluster://h:1")
    );
    assert!(
        role(&address(), None, Some("sentinel"), &standalone).what.contains("redis+sentinel://h:1/SERVICE")
    );
    assert_eq!(role(&address(), Some("master"), Some("standalone"), &standalone).gravity, Gravity::Good);
    let cluster = options("redis+cluster://h:1");
    assert_eq!(role(&address(), Some("master"), Some("cluster"), &cluster).gravity, Gravity::Good);
}

#[test]
fn clocks_that_differ_are_reported() {
    let clock = |ahead| ServerClock { address: address(), ahead };
    let gravities = |clocks: &[ServerClock]| {
        let mut findings = Vec::new();
        compare(clocks, &mut findings);
        findings.iter().map(|finding| finding.gravity).collect::<Vec<_>>()
    };
    assert_eq!(gravities(&[clock(0), clock(500_000)]), [Gravity::Good, Gravity::Good]);
    assert_eq!(gravities(&[clock(3_600_000_000)]), [Gravity::Warning]);
    assert_eq!(gravities(&[clock(-900_000), clock(900_000)]), [Gravity::Good, Gravity::Good, Gravity::Bad]);
    assert!(gravities(&[]).is_empty());
}
