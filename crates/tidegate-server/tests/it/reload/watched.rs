//! Changes that nobody announces.

use std::fs;
use std::os::unix::fs::symlink;

use super::place::{FILE, Place, rule};
use super::traffic::Asker;
use crate::wire::http::Talk;

const READ: &str = "rules: ./tidegate.toml was read again";
const WRONG: &str = "rules: ./tidegate.toml does not hold; the rules before it stay in force";
const MENDED: &str = "rules: ./tidegate.toml holds again";

/// Rules by which ana may come once a day, and others of a number that changes.
fn text(number: u64) -> String {
    rule("once", "1/d") + &rule("other", &format!("{number}/d"))
}

/// Each way to change what the file is, and what is told then.
type Change = (fn(&Place), &'static str);

const CHANGES: [Change; 23] = [
    (|place| place.write(FILE, text(2)), READ),
    (|place| place.put(FILE, text(3)), READ),
    (|place| place.link(FILE, "elsewhere/one"), READ),
    (|place| place.write("elsewhere/one", text(5)), READ),
    (|place| place.put("elsewhere/one", text(6)), READ),
    (|place| place.link(FILE, "elsewhere/two"), READ),
    (|place| place.link("elsewhere", "folder-2"), READ),
    (|place| place.write(FILE, "no rules, no comment"), WRONG),
    (|place| place.write(FILE, text(9)), MENDED),
    (|place| place.remove("folder-2/two"), WRONG),
    (|place| place.put("folder-2/two", text(10)), MENDED),
    (|place| place.rename("folder-2", "away"), WRONG),
    (|place| place.rename("away", "folder-2"), MENDED),
    (|place| place.replace_by("mkdir", FILE), WRONG),
    (|place| place.rename(FILE, "directory"), WRONG),
    (|place| place.put(FILE, text(11)), MENDED),
    (|place| place.replace_by("mkfifo", FILE), WRONG),
    (|place| place.put(FILE, text(12)), MENDED),
    (|place| place.write(FILE, ""), WRONG),
    (|place| place.put(FILE, text(12) + &"#".repeat(5 << 20)), WRONG),
    (|place| place.write(FILE, b"\xff"), WRONG),
    (|place| place.put(FILE, text(12)), MENDED),
    (|place| place.put(FILE, rule("new", "1/h") + &text(13)), READ),
];

#[test]
fn every_kind_of_change_is_seen_and_nobody_is_decided_about_wrongly() {
    let place = Place::prepared("watched", |folder| {
        for name in ["folder-1", "folder-2"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        fs::write(folder.join("folder-1/one"), text(4)).unwrap();
        fs::write(folder.join("folder-1/two"), text(7)).unwrap();
        fs::write(folder.join("folder-2/two"), text(8)).unwrap();
        symlink("folder-1", folder.join("elsewhere")).unwrap();
        fs::write(folder.join(FILE), text(1)).unwrap();
    });
    let mut askers = Asker::each(&place);
    assert!(askers[0].admits("once", "ana"));
    for (number, (change, told)) in CHANGES.iter().enumerate() {
        change(&place);
        let line = place.process.says("rules: ");
        assert!(line.starts_with(told), "change {number}: {line}");
        let [resp, http] = &mut askers;
        assert!(!resp.admits("once", "ana") && !http.admits("once", "ana"), "after change {number}");
        let new = format!("somebody-{number}");
        assert!(resp.admits("once", &new) && !http.admits("once", &new), "after change {number}");
    }
    place.stop();
}

#[test]
fn a_file_that_appears_is_read() {
    let place = Place::prepared("appears", |_| {});
    let [mut resp, _] = Asker::each(&place);
    assert!(resp.admits("once", "ana") && resp.admits("once", "ana"));
    place.put(FILE, format!("[server]\nthreads = 7\n{}", rule("once", "1/d")));
    assert_eq!(place.process.says("rules: "), "rules: ./tidegate.toml is there now, and was read");
    assert_eq!(place.process.says("  "), "  + rule \"once\": 1/d");
    assert_eq!(place.process.says("  "), "  ~ server.threads: holds after the next start only");
    assert!(resp.admits("once", "ana") && !resp.admits("once", "ana"));
    place.stop();
}

#[test]
fn a_file_that_does_not_hold_is_to_be_seen_until_it_is_mended() {
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

#[test]
fn a_writer_that_pauses_after_a_rule_switches_nobody_off() {
    let whole = rule("other", "9/d") + &rule("once", "1/d");
    let place = Place::with("pauses", &whole);
    let [mut asker, _] = Asker::each(&place);
    assert!(asker.admits("once", "ana"));
    place.put(FILE, rule("other", "9/d"));
    // What rests for as long as an empty file is meant so; until then the whole is in force.
    pause();
    assert!(!asker.admits("once", "ana"));
    place.put(FILE, &whole);
    pause();
    assert!(!asker.admits("once", "ana"));
    place.put(FILE, rule("other", "9/d"));
    let told = place.process.says("rules: ");
    assert_eq!(told, READ, "{}", place.process.says(""));
    assert!(asker.admits("once", "ana"), "the rule was taken away");
    place.stop();
}

/// As long as whoever is held up between two rules.
#[expect(clippy::disallowed_methods, reason = "the server looks at a file by the time of the system")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(800));
}
