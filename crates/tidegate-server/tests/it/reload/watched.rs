//! Tests of changes without a signal, in a process whose watcher runs on the system clock.
//!
//! `src/reload/tests/` tests every kind of change. There the test triggers each look.

use super::place::{FILE, Place, rule};
use super::traffic::Asker;
use crate::wire::http::Talk;

const WRONG: &str = "rules: ./tidegate.toml is invalid; the previous rules stay in force";
const MENDED: &str = "rules: ./tidegate.toml is valid again";

/// Returns a rule that allows a user once a day, and another rule that depends on `number`.
fn text(number: u64) -> String {
    rule("once", "1/d") + &rule("other", &format!("{number}/d"))
}

#[test]
fn a_file_that_appears_is_read() {
    let place = Place::prepared("appears", |_| {});
    let [mut resp, _] = Asker::each(&place);
    assert!(resp.admits("once", "ana") && resp.admits("once", "ana"));
    place.put(FILE, format!("[server]\nthreads = 7\n{}", rule("once", "1/d")));
    assert_eq!(place.process.says("rules: "), "rules: ./tidegate.toml is there now, and was read");
    assert_eq!(place.process.says("  "), "  + rule \"once\": 1/d");
    // Only a server that starts with a file keeps overrides beside it.
    assert_eq!(place.process.says("  "), "  ~ server.overrides_file: takes effect after a restart");
    assert_eq!(place.process.says("  "), "  ~ server.threads: takes effect after a restart");
    assert!(resp.admits("once", "ana") && !resp.admits("once", "ana"));
    place.stop();
}

#[test]
fn an_invalid_file_is_reported_until_it_is_fixed() {
    let place = Place::with("pages", &text(1));
    let mut talk = Talk::at(place.address("http"));
    let mut pages = || {
        let ready = talk.get("/readyz");
        let metrics = talk.get("/metrics").body;
        let value = |name: &str| {
            let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse::<u64>().ok()).expect(name)
        };
        let names = ["rules_rejected", "rules_replaced_total", "rules_rejected_total"];
        let numbers = names.map(|name| value(&format!("tidegate_{name}")));
        (ready.status, ready.json()["rules"].as_str().expect("a word").to_owned(), numbers)
    };
    assert_eq!(pages(), (200, "ok".to_owned(), [0, 0, 0]));
    place.put(FILE, "[[rule]]\nname = \"once\"\nlimit = \"1/day\"\n");
    assert!(place.process.says("rules: ").starts_with(WRONG));
    assert_eq!(pages(), (200, "rejected".to_owned(), [1, 0, 1]));
    place.put(FILE, text(2));
    assert!(place.process.says("rules: ").starts_with(MENDED));
    assert_eq!(pages(), (200, "ok".to_owned(), [0, 1, 1]));
    place.stop();
}
