//! One server of each flavour.

use std::process::Command;

use testbed::{Flavour, Redis, Reply, Settings};

/// Runs a claim with every flavour that is there.
pub(crate) fn each(claim: impl Fn(Flavour)) {
    let available = Flavour::available();
    assert!(available.contains(&Flavour::Redis7), "Debian's Redis is always there");
    available.into_iter().for_each(claim);
}

#[test]
fn every_flavour_starts_and_answers() {
    each(|flavour| {
        let redis = Redis::start(flavour);
        assert_eq!(redis.command(&["SET", "a", "b"]), "OK");
        assert_eq!(redis.command(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "a"]), "b");
        let information = redis.command(&["INFO", "SERVER"]);
        let version = match flavour {
            Flavour::Redis7 => "redis_version:7.",
            Flavour::Redis6 => "redis_version:6.2.",
            Flavour::Valkey => "valkey_version:9.",
        };
        assert!(information.contains(version), "{flavour}: {information}");
    });
}

#[test]
fn clients_are_counted_without_the_one_that_counts() {
    let redis = Redis::start(Flavour::Redis7);
    assert_eq!(redis.clients(), 0);
    let mut connection = redis.connection();
    connection.call(&["PING"]).unwrap();
    assert_eq!(redis.clients(), 1);
}

#[test]
fn a_server_that_was_killed_comes_back_on_its_port_and_knows_nothing() {
    each(|flavour| {
        let redis = Redis::start(flavour);
        let (address, pid) = (redis.address(), redis.pid());
        redis.command(&["SET", "a", "b"]);

        redis.kill();
        assert!(!redis.is_alive() && redis.pid().is_none());
        assert!(redis.try_command(&["PING"]).is_err());

        redis.restart();
        assert_eq!(redis.address(), address);
        assert_ne!(redis.pid(), pid);
        assert_eq!(redis.try_command(&["GET", "a"]).unwrap(), Reply::Nil);
    });
}

#[test]
fn a_stopped_server_sends_no_replies_until_it_goes_on() {
    let redis = Redis::start(Flavour::Redis7);
    redis.stop();
    assert!(redis.is_alive());
    assert!(redis.try_command(&["PING"]).is_err());
    redis.resume();
    redis.wait_until_ready();
}

#[test]
fn what_is_said_in_settings_holds() {
    each(|flavour| {
        let settings =
            Settings::new(flavour).option("maxmemory", "20mb").option("maxmemory-policy", "noeviction");
        let redis = Redis::with(&settings);
        assert_eq!(redis.command(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n20971520");
    });
}

#[test]
fn strangers_are_refused_where_there_is_a_password() {
    each(|flavour| {
        let redis = Redis::with(&Settings::new(flavour).password("a \"secret\""));
        assert_eq!(redis.command(&["SET", "tg:a", "1"]), "OK");
        let ask =
            |words: &[&str]| testbed::Connection::open(redis.address()).unwrap().call(words).unwrap().text();
        assert!(ask(&["PING"]).starts_with("-NOAUTH"));
        assert_eq!(ask(&["AUTH", "a \"secret\""]), "OK");
    });
}

#[test]
fn a_server_with_tls_shows_a_certificate_of_its_authority() {
    let redis = Redis::with(&Settings::new(Flavour::Redis7).tls());
    let (address, certificates) = (redis.tls_address().unwrap(), redis.certificates().unwrap());
    let ping = |authority: &std::path::Path| {
        let mut command = Command::new("redis-cli");
        command
            .args(["-h", "127.0.0.1", "-p", &address.port().to_string(), "--tls", "--cacert"])
            .arg(authority);
        let output = command.arg("PING").output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(ping(&certificates.authority()), "PONG");
    let stranger = testbed::Certificates::new();
    assert_ne!(ping(&stranger.authority()), "PONG");
}
