//! Tests of the file of overrides.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::place::{Node, deny_at, in_folder, write_private};

const EVE: &str = r#"{"rule":"api","key":{"user":"eve"},"decision":"deny"}"#;

fn file_of(lines: &[&str]) -> String {
    format!("{{\"tidegate_overrides\":1,\"overrides\":[\n{}\n]}}\n", lines.join(",\n"))
}

#[test]
fn a_file_of_overrides_is_readable_by_its_owner_only_and_has_one_in_each_line() {
    let mut node = Node::start("mode", "");
    for (user, what) in [("eve", "deny"), ("ana", "9/h")] {
        assert_eq!(node.put(user, what).status, 200);
    }
    for name in ["tidegate.toml.overrides", "tidegate.toml.overrides.lock"] {
        let mode = fs::metadata(node.file(name)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let kept = node.kept();
    let lines: Vec<_> = kept.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "{\"tidegate_overrides\":1,\"overrides\":["), "{kept}");
    assert!(
        lines[1].starts_with(
            "{\"rule\":\"api\",\"key\":{\"user\":\"ana\"},\"limit\":\"9/h\",\"by\":\"127.0.0.1\""
        ),
        "{kept}"
    );
    let names: Vec<_> = fs::read_dir(node.call.folder())
        .expect("there is a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .filter(|name| name.ends_with(".new"))
        .collect();
    assert_eq!(names, [""; 0], "no temporary file stays");
}

#[test]
fn overrides_that_have_ended_are_dropped_at_the_next_change() {
    let call = in_folder("ended", "");
    let ended = EVE.replace("\"deny\"", "\"deny\",\"until\":\"2024-01-01T00:00:00Z\"");
    write_private(&call, "tidegate.toml.overrides", &file_of(&[&ended]));
    let mut node = Node::of(call);
    assert_eq!((node.users(), node.admit("eve").status), (vec![], 200));
    assert!(node.kept().contains("eve"), "a read writes nothing");
    assert_eq!(node.delete("bob").body, r#"{"removed":false}"#);
    assert!(node.kept().contains("eve"), "a change of nothing writes nothing");
    assert_eq!(node.put("ana", "9/h").status, 200);
    assert!(!node.kept().contains("eve"));
}

#[test]
fn a_calendar_of_an_unknown_zone_is_kept_without_effect_and_stops_nothing() {
    let call = in_folder("unknown_zone", "");
    let limit = "100/day calendar Mars/Olympus_Mons";
    let odd = EVE.replace("eve", "ana").replace("\"decision\":\"deny\"", &format!("\"limit\":\"{limit}\""));
    write_private(&call, "tidegate.toml.overrides", &file_of(&[&odd, EVE]));
    let mut node = Node::of(call);
    assert_eq!((node.users(), node.admit("eve").status), (vec!["ana".to_owned(), "eve".to_owned()], 403));
    assert_eq!(node.admit("ana").json()["limit"], 4, "the limit of the rule");
    let page = node.page();
    assert_eq!((&page["wrong"], &page["overrides"][0]["in_effect"]), (&json!(null), &json!(false)), "{page}");
    assert_eq!(page["overrides"][0]["limit"], limit);
    let said = node.process.says("warning: override of rule");
    assert!(said.contains("\"Mars/Olympus_Mons\" is no time zone on this machine"), "{said}");
    assert_eq!(node.put("bob", "deny").status, 200);
    assert!(node.kept().contains(limit), "another change keeps it");
    assert_eq!(node.put("ana", limit).status, 400, "it cannot be put here");
    assert_eq!(node.delete("ana").body, r#"{"removed":true}"#);
    assert!(!node.kept().contains("Mars"));
}

#[test]
fn every_change_fails_in_time_while_another_process_has_the_lock() {
    let mut node = Node::start("locked", "");
    assert_eq!(node.put("eve", "deny").status, 200);
    let lock = fs::File::open(node.file("tidegate.toml.overrides.lock")).expect("it is there");
    lock.lock().expect("it is free");
    let calls = std::thread::scope(|scope| {
        let call = |user: usize| {
            let http = node.http;
            scope.spawn(move || deny_at(http, &format!("u{user}")))
        };
        let calls: Vec<_> = (0..4).map(call).collect();
        calls.into_iter().map(|call| call.join().expect("it ends")).collect::<Vec<_>>()
    });
    // A change that waits for longer than the request timeout has no reply at all.
    for answer in &calls {
        assert_eq!(answer.status, 503, "{answer:?}");
    }
    assert!(calls.iter().any(|answer| answer.detail().contains("another server has had the lock")));
    drop(lock);
    assert_eq!(
        (node.put("bob", "deny").status, node.users()),
        (200, vec!["bob".to_owned(), "eve".to_owned()])
    );
}

#[test]
fn a_temporary_file_of_a_killed_server_is_removed() {
    let mut node = Node::start("temporary", "");
    let left = node.file("tidegate.toml.overrides.0123456789abcdef.new");
    let other = node.file("tidegate.toml.overrides.backup.new");
    for path in [&left, &other] {
        fs::write(path, "{").expect("a file can be written");
    }
    assert_eq!(node.put("eve", "deny").status, 200);
    assert!(!left.exists() && other.exists());
}

/// The text in place of the file, and the expected error.
const BROKEN: [(&str, &str); 8] = [
    (
        "",
        "EOF while parsing a value at line 1 column 0; repair the file, or move it away to begin without overrides",
    ),
    ("{\"tidegate_overrides\":1,\"overrides\":[\n", "EOF while parsing a list at line 2 column 0"),
    (
        "{\"tidegate_overrides\":1,\"overrides\":[\n{\"rule\":\"api\"}]}",
        "missing field `key` at line 2 column 14",
    ),
    (
        "{\"tidegate_overrides\":1,\"overrides\":[\n{\"rule\":\"api\",\"key\":{},\n\"limit\":\"60/min\"}]}",
        "limit \"60/min\": unknown unit \"min\"",
    ),
    (
        "{\"tidegate_overrides\":2,\"overrides\":[]}",
        "line 1: tidegate_overrides is 2, and this version reads 1",
    ),
    ("{\"overrides\":[]}", "missing field `tidegate_overrides`"),
    (
        "{\"tidegate_overrides\":1,\"overrides\":[{\"rule\":\"a\",\"key\":{}}]}",
        "has not exactly one of limit and decision; keep one of them at line 1 column 5",
    ),
    ("\u{0}\u{0}\u{0}\u{0}", "expected value at line 1 column 1"),
];

#[test]
fn a_broken_file_leaves_what_is_in_force_and_is_not_overwritten() {
    let mut node = Node::start("broken", "");
    assert_eq!(node.put("eve", "deny").status, 200);
    let whole = node.kept();
    for (broken, said) in BROKEN {
        node.keep(broken);
        node.wait_until_wrong(said);
        assert_eq!((node.admit("eve").status, node.users()), (403, vec!["eve".to_owned()]), "{broken}");
        let refused = node.put("ana", "9/h");
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(
            refused.detail().contains(said) && refused.detail().contains("tidegate.toml.overrides: "),
            "{refused:?}"
        );
        assert_eq!(node.delete("eve").status, 503);
        assert_eq!((node.kept(), node.admit("eve").status), (broken.to_owned(), 403));
        assert!(node.process.says("warning: ").contains("tidegate.toml.overrides: "), "{broken}");
        // A server does not start without the overrides that it cannot read.
        let ended =
            node.call.run(&["serve", "--config", "tidegate.toml", "--resp", "127.0.0.1:0", "--http", "off"]);
        assert!(ended.code == Some(1) && ended.err.contains(said), "{ended:?}");
        node.keep(&whole);
        node.wait_until_right();
    }
    assert_eq!(node.put("ana", "9/h").status, 200);
}

#[test]
fn a_file_that_is_edited_by_hand_is_read_and_one_that_is_gone_ends_nothing() {
    let mut node = Node::start("by_hand", "");
    node.keep(&file_of(&[EVE, &EVE.replace("eve", "bob")]));
    node.wait_for_users(&["bob", "eve"]);
    assert_eq!(node.admit("eve").status, 403);
    fs::remove_file(node.file("tidegate.toml.overrides")).expect("it is there");
    node.wait_until_wrong("is gone, while overrides of it are in force; put it back");
    assert_eq!((node.admit("eve").status, node.users()), (403, vec!["bob".to_owned(), "eve".to_owned()]));
    assert_eq!(node.put("ana", "9/h").status, 200, "the file is written again, with all");
    for user in ["ana", "bob", "eve"] {
        assert!(node.kept().contains(user), "{user}");
    }
    node.wait_until_right();
}

#[test]
fn a_file_that_others_may_write_is_rejected() {
    let mut node = Node::start("open", "");
    assert_eq!(node.put("eve", "deny").status, 200);
    let path = node.file("tidegate.toml.overrides");
    let beside = node.file("beside");
    fs::copy(&path, &beside).expect("it can be copied");
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o622)).expect("its mode can be set");
    fs::rename(&beside, &path).expect("it can be moved");
    node.wait_until_wrong("other users may write it; chmod 600");
    assert_eq!((node.put("ana", "9/h").status, node.admit("eve").status), (503, 403));
}

#[test]
fn more_overrides_than_the_bound_are_an_error_that_changes_nothing() {
    let mut node = Node::start("full", "");
    assert_eq!(node.put("eve", "deny").status, 200);
    let lines = |count: usize| {
        let each: Vec<_> = (0..count).map(|user| EVE.replace("eve", &format!("u{user}"))).collect();
        file_of(&each.iter().map(String::as_str).collect::<Vec<_>>())
    };
    node.keep(&lines(10_001));
    node.wait_until_wrong("there are 10000 overrides already; delete some, or write a rule");
    assert_eq!(node.users(), ["eve"]);
    node.keep(&lines(10_000));
    node.wait_until_right();
    assert_eq!(
        (node.users().len(), node.admit("u9999").status, node.admit("eve").status),
        (10_000, 403, 200)
    );
    assert_eq!(node.put("eve", "deny").status, 409);
    assert_eq!(
        (node.put("u7", "deny").status, node.delete("u8").status, node.put("eve", "deny").status),
        (200, 200, 200)
    );
}

#[test]
fn without_a_file_of_settings_or_with_off_overrides_are_in_memory() {
    let mut node = Node::start("off", "[server]\noverrides_file = \"off\"\n");
    assert_eq!((node.page()["kept_in"].clone(), node.put("eve", "deny").status), (json!("memory"), 200));
    assert_eq!(node.admit("eve").status, 403);
    assert!(!node.file("tidegate.toml.overrides").exists());
    let mut node = node.killed_and_started();
    assert_eq!((node.users(), node.admit("eve").status), (vec![], 200));
    let mut named = Node::start("named", "[server]\noverrides_file = \"named.json\"\n");
    assert_eq!(named.put("eve", "deny").status, 200);
    assert!(named.file("named.json").exists() && !named.file("tidegate.toml.overrides").exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_with_a_remedy() {
    let mut node = Node::start("folder", "[server]\noverrides_file = \"missing/overrides\"\n");
    let refused = node.put("eve", "deny");
    assert_eq!(refused.status, 503, "{refused:?}");
    let remedy =
        "let the server's user write it and its folder, or name another file with [server] overrides_file";
    assert!(
        refused.detail().contains("cannot be locked") && refused.detail().ends_with(remedy),
        "{refused:?}"
    );
    assert_eq!((node.admit("eve").status, node.users()), (200, vec![]));
}
