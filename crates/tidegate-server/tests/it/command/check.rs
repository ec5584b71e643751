//! Tests of `tidegate check` on valid files: its output and its exit code.

use serde_json::json;

use super::call::Call;

const GOOD: &str = "[zone.logins]\nsize = '1MiB'\n[[rule]]\nname = 'a'\nlimit = '5/s'\nzone = 'logins'\n";
const DUBIOUS: &str = "[[rule]]\nname = 'a'\nkey = ['header.x']\nlimit = '5/s'\n";

#[test]
fn a_valid_file_is_reported_in_one_line() {
    let call = Call::from("check_good").file("tidegate.toml", GOOD).file("none.toml", "# no rules\n");
    for (arguments, out) in [
        (&["check"][..], "tidegate.toml: 1 rule, 1 zone: ok\n"),
        (&["check", "--strict"], "tidegate.toml: 1 rule, 1 zone: ok\n"),
        (&["check", "./tidegate.toml"], "./tidegate.toml: 1 rule, 1 zone: ok\n"),
        (&["check", "none.toml"], "none.toml: no rules: ok\n"),
    ] {
        let ended = call.run(arguments);
        assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), out, ""), "{arguments:?}");
    }
}

#[test]
fn warnings_fail_a_check_only_with_strict() {
    let call = Call::from("check_strict").file("tidegate.toml", DUBIOUS);
    assert_eq!(call.run(&["check"]).code, Some(0));
    let strict = call.run(&["check", "--strict"]);
    assert_eq!((strict.code, strict.out.as_str()), (Some(1), "tidegate.toml: 1 rule: ok, with 1 warning\n"));
    assert!(
        strict.err.starts_with("warning: tidegate.toml:2:8: rule \"a\": counts by header.x,"),
        "{}",
        strict.err
    );
    let report = call.run(&["check", "--strict", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&report.out).expect("it is JSON");
    assert_eq!((report.code, report.err.as_str()), (Some(1), ""));
    assert_eq!((&json["ok"], &json["rules"], &json["errors"]), (&json!(true), &json!(1), &json!([])));
    assert_eq!((&json["warnings"][0]["line"], &json["warnings"][0]["column"]), (&json!(2), &json!(8)));
}

#[test]
fn an_empty_file_is_warned_of() {
    for (name, text) in [("empty.toml", ""), ("blank.toml", "\n \n")] {
        let call = Call::from("check_empty").file(name, text);
        let ended = call.run(&["check", "--strict", name]);
        assert_eq!((ended.code, ended.out), (Some(1), format!("{name}: no rules: ok, with 1 warning\n")));
        let what = format!("warning: {name}:1:1: is empty: nothing is limited; write a rule, or a comment ");
        assert!(ended.err.starts_with(&what), "{}", ended.err);
    }
}

#[test]
fn of_very_many_errors_and_warnings_the_first_are_printed() {
    let many =
        |rule: &str| (0..150).map(|n| format!("[[rule]]\nname = 'r{n}'\n{rule}\n")).collect::<String>();
    let dubious = many("key = ['header.x']\nlimit = '1/s'\ncost = 2");
    let call = Call::from("check_many").file("wrong.toml", &many("limit = 1")).file("dubious.toml", &dubious);
    let wrong = call.run(&["check", "wrong.toml"]);
    assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), "wrong.toml: more than 100 errors\n"));
    assert_eq!(wrong.err.matches("error: wrong.toml:").count(), 100);
    assert!(wrong.err.ends_with("error: and 50 more; these come first\n"), "{}", wrong.err);
    let dubious = call.run(&["check", "dubious.toml"]);
    assert_eq!(dubious.out, "dubious.toml: 150 rules: ok, with more than 100 warnings\n");
    assert_eq!(dubious.err.matches("warning: dubious.toml:").count(), 100);
}

#[test]
fn a_server_does_not_start_with_more_memory_than_the_machine_has() {
    let text = format!("[store]\nsize = '4000000GiB'\n{GOOD}");
    let call = Call::from("check_memory").file("tidegate.toml", &text);
    assert_eq!(call.run(&["check"]).code, Some(0), "another machine may have it");
    let ended = call.run(&["serve", "--resp", "127.0.0.1:0", "--http", "off"]);
    let said = "error: a store of 4000000 GiB and zones of 1 MiB: this machine has ";
    assert!(ended.code == Some(2) && ended.err.contains(said), "{:?} {}", ended.code, ended.err);
}

#[test]
fn a_file_that_is_not_there_can_be_had() {
    let call = Call::from("check_missing");
    let ended = call.run(&["check"]);
    let said =
        "error: tidegate.toml: there is no such file; name another, or write one with `tidegate init`\n";
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(2), "", said));
    let folder = call.run(&["check", "."]);
    assert_eq!(
        (folder.code, folder.err.as_str()),
        (Some(2), "error: .: is a folder; name a file of settings\n")
    );
}

#[test]
fn variables_do_not_count_but_for_the_token() {
    let open = "[server]\nresp = '0.0.0.0:0'\n";
    let call = Call::from("check_token").file("tidegate.toml", open).variable("TIDEGATE_HTTP", "nonsense");
    let without = call.run(&["check"]);
    assert_eq!(without.code, Some(2));
    assert!(without.err.contains("resp \"0.0.0.0:0\": would be open to other machines"), "{}", without.err);
    assert!(!without.err.contains("nonsense"), "{}", without.err);
    assert_eq!(call.variable("TIDEGATE_TOKEN", "sesame").run(&["check"]).code, Some(0));
}
