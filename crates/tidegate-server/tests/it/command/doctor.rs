//! Tests of the findings and exit codes of `tidegate doctor`.

use testbed::{Flavour, Redis, Settings};

use super::call::Call;

/// A deadline that a busy machine meets, so that latency is not a finding.
const CALM: [&str; 2] = ["--store-deadline", "2s"];

fn look(name: &str, url: &str, more: &[&str]) -> crate::process::Ended {
    let mut arguments = vec!["doctor", "--store-url", url];
    arguments.extend(CALM);
    arguments.extend(more);
    Call::from(name).run(&arguments)
}

#[test]
fn a_valid_set_up_is_reported_line_by_line() {
    let redis = Redis::start(Flavour::Redis7);
    let ended = look("doctor_good", &redis.url(), &["--strict"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert!(ended.out.lines().all(|line| line.starts_with("good ")), "{}", ended.out);
    for about in ["reach", "version", "role", "eviction", "distance", "clock", "scripts", "rules"] {
        assert!(ended.out.contains(&format!(" {about}: ")), "{about}: {}", ended.out);
    }
    assert_eq!(ended.err, "no problem found\n");
}

#[test]
fn a_bad_finding_is_reported_with_its_remedy() {
    let settings =
        Settings::new(Flavour::Redis7).option("maxmemory", "50mb").option("maxmemory-policy", "allkeys-lru");
    let redis = Redis::with(&settings);
    let ended = look("doctor_bad", &redis.url(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&ended.out).expect("it is JSON");
    assert_eq!((ended.code, &json["ok"]), (Some(1), &serde_json::json!(false)));
    let findings = json["findings"].as_array().expect("a list");
    let bad: Vec<_> = findings.iter().filter(|finding| finding["gravity"] == "bad").collect();
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert_eq!(bad[0]["about"], "eviction");
    let what = bad[0]["what"].as_str().expect("text");
    assert!(
        what.contains("allkeys-lru") && what.contains("CONFIG SET maxmemory-policy noeviction"),
        "{what}"
    );
}

#[test]
fn an_unreachable_redis_is_reported_at_once() {
    let redis = Redis::start(Flavour::Redis7);
    redis.kill();
    let ended = look("doctor_unreachable", &redis.url(), &[]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.out.contains("connection refused; start the server there, or correct the URL"),
        "{}",
        ended.out
    );
}

#[test]
fn an_invalid_url_is_reported_before_any_connection() {
    let ended = look("doctor_url", "http://127.0.0.1", &[]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("\"http\" is not known; write redis://"), "{}", ended.err);
}

#[test]
fn counts_in_memory_need_no_other_server() {
    let ended = Call::from("doctor_memory").run(&["doctor"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("good     store: counts are in this server's own memory"), "{}", ended.out);
}

/// The settings in the docs about shared limits are valid as published, except for the address.
#[test]
fn the_settings_that_are_published_hold() {
    let page = include_str!("../../../../../docs/distributed.md");
    let (_, rest) = page.split_once("```toml\n").expect("the page has settings");
    let (text, _) = rest.split_once("```").expect("they end");
    let redis = Redis::start(Flavour::Redis7);
    let text = text.replace("10.0.0.5:6379", &redis.address().to_string());
    redis.command(&["ACL", "SETUSER", "tidegate", "on", ">secret", "~*", "+@all"]);
    let call = Call::from("doctor_page").file("tidegate.toml", &text).file("redis.password", "secret\n");
    let ended = call.run(&["doctor", "--store-deadline", "2s", "--strict"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
}
