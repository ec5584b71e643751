//! Tests of store files: errors about files that do not match the settings, and a start while another process owns
//! them.

use std::fs;
use std::os::unix::fs::chown;

use rustix::process::{Signal, geteuid};
use serde_json::{Value, json};

use super::call::{Call, address};
use crate::wire::http::Talk;
use crate::wire::resp::{Client, Value as Reply};

/// Returns settings of a store in a file, with a named zone and rules whose states take more than one word.
fn settings(store: &str, zone: &str) -> String {
    format!(
        "[server]\nshutdown_timeout = '1s'\n[store]\nfile = 'zone.tg'\nsize = '{store}'\n[zone.logins]\nsize = '{zone}'\n\
         [[rule]]\nname = 'login'\nkey = ['user']\nlimit = '2/h sliding-log'\nzone = 'logins'\n\
         [[rule]]\nname = 'upload'\nkey = ['ip']\nlimit = '3/h sliding-log'\n"
    )
}

const RULES_OF_ONE_WORD: &str =
    "[store]\nfile = 'zone.tg'\nsize = '64KiB'\n[[rule]]\nname = 'api'\nlimit = '5/h'\n";

/// Returns a call whose files were created by a server that has ended.
fn after_a_server(name: &str) -> Call {
    let call = Call::from(name).file("tidegate.toml", &settings("64KiB", "64KiB"));
    let (process, _) = call.serve(&[]);
    process.signal(Signal::TERM);
    assert_eq!(process.end().code, Some(0));
    call
}

fn client(ready: &Value) -> Client {
    Client::connect(address(ready, "resp"))
}

#[test]
fn check_fails_where_files_do_not_fit_and_not_where_they_are_absent() {
    let call = Call::from("check_no_files").file("tidegate.toml", &settings("64KiB", "64KiB"));
    assert_eq!(call.run(&["check", "--strict"]).code, Some(0), "no file is there");
    let call = after_a_server("check_files");
    assert_eq!(call.run(&["check", "--strict"]).code, Some(0), "they fit");
    for (store, zone, wrong) in [
        ("128KiB", "64KiB", "error: store file \"zone.tg\": holds 64 KiB, but 128 KiB were asked for"),
        (
            "64KiB",
            "1MiB",
            "error: store file \"zone.tg.logins.zone\": holds 64 KiB, but 1 MiB were asked for",
        ),
    ] {
        let call = Call::beside(&call).file("tidegate.toml", &settings(store, zone));
        let ended = call.run(&["check"]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), "tidegate.toml: 1 error\n"), "{ended:?}");
        assert!(ended.err.starts_with(wrong), "{}", ended.err);
        let report: Value = serde_json::from_str(&call.run(&["check", "--json"]).out).expect("it is JSON");
        assert_eq!((&report["ok"], &report["errors"][0]["line"]), (&json!(false), &Value::Null));
        let message = report["errors"][0]["message"].as_str().expect("text");
        assert!(wrong.ends_with(message.split(';').next().expect("a part")), "{message}");
    }
}

#[test]
fn check_fails_where_another_file_is_in_the_place_of_the_state_file() {
    let call = after_a_server("check_foreign").file("zone.tg.states", "a shopping list");
    let ended = call.run(&["check"]);
    let said = "error: store file \"zone.tg.states\": ";
    assert!(ended.code == Some(2) && ended.err.starts_with(said), "{ended:?}");
}

#[test]
fn check_finds_the_files_from_the_folder_of_the_settings_as_a_server_does() {
    let text = settings("64KiB", "64KiB").replace("zone.tg", "../data/zone.tg");
    let call = Call::from("check_folder").file("etc/tidegate.toml", &text).file("data/zone.tg", "no zone");
    let ended = call.run(&["check", "etc/tidegate.toml"]);
    let said = "error: store file \"etc/../data/zone.tg\": ";
    assert!(ended.code == Some(2) && ended.err.starts_with(said), "{ended:?}");
}

/// Only root can change the owner of a file, so without root the test is skipped.
#[test]
fn check_only_warns_of_the_files_of_another_user_which_root_can_try() {
    if !geteuid().is_root() {
        println!("skipped: check_only_warns_of_the_files_of_another_user_which_root_can_try needs root");
        return;
    }
    let call = after_a_server("check_other_user");
    chown(call.folder().join("zone.tg"), Some(65_534), None).expect("root may");
    let ended = call.run(&["check"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.starts_with("warning: store file \"zone.tg\": belongs to user 65534"), "{}", ended.err);
    assert_eq!(call.run(&["check", "--strict"]).code, Some(1));
    let doctor = call.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    assert!(
        doctor.out.contains("warning  store file: \"./zone.tg\": belongs to user 65534"),
        "{}",
        doctor.out
    );
}

#[test]
fn a_name_with_a_slash_is_no_name_of_a_zone_in_a_file() {
    let text =
        settings("64KiB", "64KiB").replace("[zone.logins]", "[zone.'a/b']").replace("'logins'", "'a/b'");
    let call = Call::from("zone_with_slash").file("tidegate.toml", &text);
    let ended = call.run(&["check"]);
    let said = "zone \"a/b\": a zone in a file has no \"/\" in its name; write [zone.\"a-b\"]";
    assert!(ended.code == Some(2) && ended.err.contains(said), "{ended:?}");
}

#[test]
fn counts_of_more_than_one_word_survive_a_kill_in_every_zone() {
    let call = Call::from("states_survive").file("tidegate.toml", &settings("64KiB", "64KiB"));
    let (process, ready) = call.serve(&[]);
    let mut asked = client(&ready);
    assert_eq!([(); 2].map(|()| asked.say("TG.ADMIT user ana").number("allowed")), [1, 1]);
    let in_the_first = ["TG.TAKE", "ana", "LIMIT", "1/h sliding-log"];
    assert_eq!(asked.ask(&in_the_first).number("allowed"), 1);
    process.signal(Signal::KILL);
    process.end();
    let (_process, ready) = call.serve(&[]);
    let mut asked = client(&ready);
    assert_eq!(asked.say("TG.ADMIT user ana").number("allowed"), 0);
    assert_eq!(asked.ask(&in_the_first).number("allowed"), 0);
}

#[test]
fn a_server_waits_for_the_process_that_has_the_states_and_starts_when_it_ends() {
    let call = Call::from("waits_for_owner").file("tidegate.toml", &settings("64KiB", "64KiB"));
    let (first, _) = call.serve(&[]);
    let free = ["serve", "--json", "--resp", "127.0.0.1:0", "--http", "off", "--shutdown-timeout", "60s"];
    let mut second = call.start(&free);
    let waiting = second.says("waiting up to 65 s for process ");
    assert!(waiting.contains(&format!("process {}, which has the states", first.id())), "{waiting}");
    first.signal(Signal::TERM);
    assert!(second.line().contains("\"ready\""));
}

#[test]
fn a_server_that_waits_in_vain_names_the_rules_and_a_signal_ends_the_wait() {
    let call = Call::from("waits_in_vain").file("tidegate.toml", &settings("64KiB", "64KiB"));
    let (first, _) = call.serve(&[]);
    let second = call.run(&["serve", "--resp", "127.0.0.1:0", "--http", "off"]);
    let said = format!(
        "error: rules \"login\", \"upload\": states of sliding-log that take more than one word belong to one process, and \
         process {} has",
        first.id()
    );
    assert!(second.code == Some(1) && second.err.contains(&said), "{second:?}");
    assert_eq!(second.err.matches("waiting up to 6 s").count(), 1, "{}", second.err);
    let third = call.start(&["serve", "--resp", "127.0.0.1:0", "--http", "off", "--shutdown-timeout", "60s"]);
    third.says("waiting up to 65 s");
    third.signal(Signal::TERM);
    assert_eq!(third.end().code, Some(0));
}

#[test]
fn a_server_without_such_rules_starts_at_once_and_shares_counts_of_one_word() {
    let call = Call::from("shares_one_word").file("tidegate.toml", RULES_OF_ONE_WORD);
    let [(first, one), (second, other)] = [(); 2].map(|()| call.serve(&[]));
    let warning = second.says("warning: process ");
    assert!(
        warning.contains(&format!("process {} serves from the same store file", first.id())),
        "{warning}"
    );
    let port = one["resp"].as_str().expect("an address").to_owned();
    let third = call.run(&["serve", "--resp", &port, "--http", "off"]);
    let said = format!("process {} already serves from this store file", first.id());
    assert!(third.code == Some(1) && third.err.contains(&said), "{third:?}");
    let [mut one, mut other] = [one, other].map(|ready| client(&ready));
    let admitted = [&mut one, &mut other].map(|asked| asked.say("TG.ADMIT user ana").number("remaining"));
    assert_eq!(admitted, [4, 3]);
}

#[test]
fn a_permit_of_the_process_that_has_the_states_is_an_error_of_another_and_not_unknown_to_it() {
    let call = Call::from("permit_of_owner").file("tidegate.toml", RULES_OF_ONE_WORD);
    let [(_first, owner), (_second, other)] = [(); 2].map(|()| call.serve(&[]));
    let [mut owner, mut other] = [owner, other].map(|ready| client(&ready));
    let permit = owner.ask(&["TG.TAKE", "ana", "LIMIT", "1/30s concurrency"]).text("permit");
    for command in ["TG.RENEW", "TG.RELEASE"] {
        let reply = other.ask(&[command, &permit]);
        let said = "ERR limit \"1/30s concurrency\": states of concurrency that take more than one word belong to one process";
        assert!(reply.error().starts_with(said), "{reply:?}");
        assert_eq!(owner.ask(&[command, &permit]), Reply::Integer(1));
    }
}

#[test]
fn doctor_looks_at_each_file_and_names_the_process_that_has_it() {
    let call = Call::from("doctor_files").file("tidegate.toml", &settings("64KiB", "64KiB"));
    let absent = call.run(&["doctor", "--strict"]);
    assert_eq!(absent.code, Some(0), "{absent:?}");
    assert_eq!(
        absent.out.matches(": is not there yet; a server makes it for 64 KiB\n").count(),
        4,
        "{}",
        absent.out
    );
    let (process, _) = call.serve(&[]);
    let held = call.run(&["doctor", "--strict"]);
    assert_eq!(held.code, Some(0), "{held:?}");
    let said = format!(
        "; tidegate (process {}) has it open; a second server waits for it to end, as rules \"login\", \"upload\" need the \
         file\n",
        process.id()
    );
    assert_eq!(
        (held.out.matches(": present, ").count(), held.out.matches(&said).count()),
        (4, 2),
        "{}",
        held.out
    );
    drop(process);
    let wrong = Call::beside(&call).file("tidegate.toml", &settings("128KiB", "64KiB")).run(&["doctor"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.out.contains("bad      store file: \"./zone.tg\": holds 64 KiB"), "{}", wrong.out);
}

#[test]
fn doctor_names_files_of_other_zones_and_damaged_states() {
    let call = after_a_server("doctor_more");
    let without = Call::beside(&call).file("tidegate.toml", RULES_OF_ONE_WORD).run(&["doctor", "--strict"]);
    assert_eq!(without.code, Some(0), "{without:?}");
    let said =
        "belongs to a zone that the rules do not name; it goes on if the zone comes back, or delete it\n";
    assert_eq!(without.out.matches(said).count(), 2, "{}", without.out);

    let call = Call::beside(&call).file("tidegate.toml", &settings("64KiB", "64KiB"));
    let states = call.folder().join("zone.tg.states");
    let whole = fs::read(&states).expect("a state file");
    let mut torn = whole.clone();
    torn[4096 + 8] = 0xf0;
    fs::write(&states, &torn).expect("it can be written");
    let damaged = call.run(&["doctor"]);
    let said = "bad      store file: \"./zone.tg.states\": was damaged: its blocks contradict each other at byte 0; ";
    assert!(damaged.code == Some(1) && damaged.out.contains(said), "{damaged:?}");
    fs::write(&states, &whole).expect("it can be written");
}

/// A server that created a new first file would lose the counts in the others.
#[test]
fn check_doctor_and_start_agree_that_the_first_file_is_missing() {
    let call = after_a_server("first_file_missing");
    fs::remove_file(call.folder().join("zone.tg")).expect("it was there");
    let said = "zone.tg\": is missing, and other files of its store are there: ";
    for command in [&["check"][..], &["doctor"], &["serve", "--resp", "127.0.0.1:0", "--http", "off"]] {
        let ended = call.run(command);
        let all = ended.out.clone() + &ended.err;
        assert!(ended.code != Some(0) && all.contains(said), "{command:?}: {ended:?}");
        assert_eq!(all.matches("zone.tg.logins.zone.states").count(), 1, "{command:?}: {all}");
    }
    assert!(!call.folder().join("zone.tg").exists(), "nothing was made");
}

#[test]
fn a_start_says_that_a_state_file_was_missing() {
    let call = after_a_server("state_file_missing");
    fs::remove_file(call.folder().join("zone.tg.logins.zone.states")).expect("it was there");
    let (process, _) = call.serve(&[]);
    let said = process.says("warning: zone \"logins\": its state file was missing");
    assert!(
        said.contains("counts of sliding logs, sliding windows, pacers and permits begin anew"),
        "{said}"
    );
}

#[test]
fn explain_says_the_bytes_on_disk_if_there_is_a_store_file() {
    let call = Call::from("explain_disk").file("tidegate.toml", &settings("64KiB", "64KiB"));
    let explained = call.run(&["explain", "user=ana"]).out;
    assert_eq!(explained.matches("\n    disk    256 bytes per key").count(), 2, "{explained}");
    let json: Value =
        serde_json::from_str(&call.run(&["explain", "user=ana", "--json"]).out).expect("it is JSON");
    assert_eq!(json["rules"][0]["worst_case"]["disk_bytes_per_key"], 256);
    let text = settings("64KiB", "64KiB").replace("file = 'zone.tg'\n", "");
    let explained = call.file("tidegate.toml", &text).run(&["explain", "user=ana"]).out;
    assert!(explained.contains("    memory  ") && !explained.contains("    disk  "), "{explained}");
}

#[test]
fn metrics_say_how_many_states_each_zone_has_and_the_bytes_of_their_file() {
    let call = Call::from("state_metrics").file("tidegate.toml", &settings("64KiB", "128KiB"));
    let (_process, ready) = call.serve(&[]);
    assert_eq!(client(&ready).say("TG.ADMIT user ana").number("allowed"), 1);
    let page = Talk::at(address(&ready, "http")).get("/metrics").body;
    let number = |series: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
        line.and_then(|number| number.parse::<u64>().ok()).unwrap_or_else(|| panic!("{series} in\n{page}"))
    };
    for label in ["", r#"{zone="logins"}"#] {
        assert_eq!(number(&format!("tidegate_zone_states{label}")), 1);
        assert!(number(&format!("tidegate_zone_states_memory_bytes{label}")) > 0);
        assert!(number(&format!("tidegate_zone_states_file_used_bytes{label}")) >= 64);
    }
    assert_eq!(number("tidegate_zone_states_file_bytes"), 64 << 10);
    assert_eq!(number(r#"tidegate_zone_states_file_bytes{zone="logins"}"#), 128 << 10);
}

#[test]
fn a_file_of_settings_that_the_files_of_the_store_do_not_fit_is_rejected_and_the_rules_before_it_stay() {
    let call = Call::from("reload_files").file("tidegate.toml", &settings("64KiB", "64KiB"));
    let (process, ready) = call.serve(&[]);
    for (store, zone, wrong) in [
        ("64KiB", "1MiB", "zone.tg.logins.zone\": holds 64 KiB"),
        ("128KiB", "64KiB", "zone.tg\": holds 64 KiB"),
    ] {
        fs::write(call.folder().join("tidegate.toml"), settings(store, zone)).expect("it can be written");
        process.signal(Signal::HUP);
        let said = process.says("error: ");
        assert!(said.contains("store file ") && said.contains(wrong), "{said}");
    }
    assert_eq!(client(&ready).say("TG.ADMIT user ana").number("allowed"), 1);
}
