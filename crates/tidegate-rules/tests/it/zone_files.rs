//! Tests of policies on a zone in files, where one process owns the states of more than one word.

use std::path::{Path, PathBuf};
use std::{fs, process};

use tidegate::Zone;
use tidegate_rules::{Attributes, Gate, Instead, UnsupportedPolicy};

use crate::requests::{admit, policy};

const ZONE_BYTES: usize = 1 << 16;

/// Returns the file of a zone in a new folder of this name.
fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", process::id()));
    // The folder does not exist the first time.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder.join("zone.tg")
}

fn open(file: &Path) -> Zone {
    Zone::in_file(file, ZONE_BYTES).expect("the file of a zone")
}

fn rule(name: &str, limit: &str) -> String {
    format!("[[rule]]\nname = '{name}'\nkey = ['user']\nlimit = '{limit}'\n")
}

fn gate_on(text: &str, zone: &Zone) -> Result<Gate, UnsupportedPolicy> {
    Gate::new(policy(text), zone)
}

fn ana() -> Attributes<'static> {
    Attributes::new().set("user", "ana")
}

#[test]
fn a_policy_whose_states_another_handle_has_is_rejected_with_the_names_of_all_such_rules() {
    let file = file("not-owner");
    let (_owner, other) = (open(&file), open(&file));
    let window = "schedule = [{ from = '11-11T00:00', to = '11-12T00:00', limit = '9/s sliding-window' }]\n";
    let wrong = [rule("a", "5/m sliding-log"), rule("b", "5/s"), rule("c", "9/s sliding-window") + window];
    let states = fs::canonicalize(&file).expect("it is there").with_file_name("zone.tg.states");
    let reason = format!(
        "states of sliding-log that take more than one word belong to one process, and this one has {states:?} open \
         already; use that zone, or try again when it is closed"
    );
    let error = gate_on(&wrong.concat(), &other).expect_err("another handle has the states");
    assert!(matches!(&error, UnsupportedPolicy::NotOwner { rules, .. } if rules.len() == 2), "{error:?}");
    assert_eq!(error.to_string(), format!("rules \"a\", \"c\": {reason}"));
    let error = gate_on(&wrong[0], &other).expect_err("another handle has the states");
    assert_eq!(error.to_string(), format!("rule \"a\": {reason}"));
}

#[test]
fn a_policy_of_one_word_states_is_in_force_on_both_handles_and_goes_on_when_a_reload_is_rejected() {
    let file = file("one-word");
    let (owner, other) = (open(&file), open(&file));
    let gates = [&owner, &other].map(|zone| gate_on(&rule("a", "2/h"), zone).expect("it fits"));
    assert!(gates.iter().all(|gate| admit(gate, &ana()).is_allowed()));
    let log = rule("a", "2/h sliding-log");
    let error = gates[1].replace(policy(&log)).expect_err("another handle has the states");
    assert!(matches!(error, UnsupportedPolicy::NotOwner { .. }), "{error}");
    assert!(!admit(&gates[1], &ana()).is_allowed(), "the policy before it is in force");
    gates[0].replace(policy(&log)).expect("it is the owner");
    let log = Instead::Limit("5/h sliding-log".parse().expect("a limit"));
    let error = gates[1].put_override("a", &ana(), log, i64::MAX).expect_err("another handle has the states");
    assert!(
        error.to_string().starts_with("limit \"5/h sliding-log\": states of sliding-log that"),
        "{error}"
    );
}

#[test]
fn a_zone_whose_files_cannot_be_used_is_named_with_what_is_wrong_with_them() {
    let file = file("named-zone");
    let zoned = |size: &str| format!("[zone.logins]\nsize = '{size}'\n{}zone = 'logins'\n", rule("a", "5/s"));
    let zone = open(&file);
    drop(gate_on(&zoned("64KiB"), &zone).expect("it is made"));
    let error = gate_on(&zoned("128KiB"), &zone).expect_err("it has another size");
    let text = error.to_string();
    assert!(
        text.starts_with("zone \"logins\": \"") && text.contains("zone.tg.logins.zone\": holds 64 KiB"),
        "{text}"
    );
    let UnsupportedPolicy::NoMemory(error) = error else { panic!("{error:?}") };
    assert!(error.files().is_some_and(tidegate::ZoneError::is_wrong_size));
}

/// Regression: the zone that was opened meanwhile stayed without its states until the next start.
#[test]
fn a_zone_that_comes_back_while_the_old_one_is_in_use_gets_its_states_with_the_next_policy() {
    let file = file("comes-back");
    let zone = open(&file);
    let with = |limit: &str| format!("[zone.z]\nsize = '64KiB'\n{}zone = 'z'\n", rule("a", limit));
    let gate = gate_on(&with("2/h"), &zone).expect("it fits");
    let in_use = gate.zones();
    gate.replace(policy(&rule("a", "2/h"))).expect("it fits");
    gate.replace(policy(&with("2/h"))).expect("states of one word are shared");
    let error = gate.replace(policy(&with("2/h sliding-log"))).expect_err("the old zone is in use");
    assert!(
        error.to_string().ends_with("open already; use that zone, or try again when it is closed"),
        "{error}"
    );
    drop(in_use);
    gate.replace(policy(&with("2/h sliding-log"))).expect("the old zone is closed");
    assert_eq!((0..3).filter(|_| admit(&gate, &ana()).is_allowed()).count(), 2);
}
