//! Tests of the file of a zone against access by other users of the machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::time::Duration;

use rustix::process::{Signal, geteuid};
use testbed::until;

use super::call::{Call, address};
use crate::wire::resp::Client;

/// Timeout of every wait in these tests.
const TIMEOUT: Duration = Duration::from_secs(120);
const FILE: [&str; 4] = ["--store-file", "zone.tg", "--store-size", "64KiB"];

/// Returns the messages of a server from its start to its end.
fn said(call: &Call) -> String {
    let (process, _) = call.serve(&FILE);
    process.signal(Signal::TERM);
    process.end().err
}

/// Only root can change the owner of a file, so without root the test is skipped.
#[test]
fn a_server_does_not_start_on_the_file_of_another_user_which_root_can_try() {
    const OTHER_USER: u32 = 65_534;
    if !geteuid().is_root() {
        println!(
            "skipped: a_server_does_not_start_on_the_file_of_another_user_which_root_can_try needs root"
        );
        return;
    }
    let call = Call::from("file_of_another_user");
    said(&call);
    let file = call.folder().join("zone.tg");
    chown(&file, Some(OTHER_USER), None).expect("root may");
    let ended = call.run(&[&["serve", "--resp", "127.0.0.1:0", "--http", "off"], &FILE[..]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(
        ended.err,
        "error: store file \"zone.tg\": belongs to user 65534, who can change its counts at any time, and this process runs as \
         user 0; run it as user 65534, or stop what uses it and move it and \"zone.tg.*\" away to begin with all counts anew\n"
    );
    chown(&file, Some(0), None).expect("root may");
    said(&call);
}

#[test]
fn a_folder_that_anyone_can_write_to_is_warned_about_unless_it_is_sticky() {
    let call = Call::from("open_folder");
    for (mode, is_open) in [(0o755, false), (0o775, false), (0o1777, false), (0o777, true), (0o757, true)] {
        fs::set_permissions(call.folder(), fs::Permissions::from_mode(mode)).expect("it is ours");
        let said = said(&call);
        let warning = format!("warning: anyone can write to the folder of zone.tg (mode {mode:o})");
        assert_eq!(said.contains(&warning), is_open, "{mode:o}: {said}");
    }
}

#[test]
fn the_time_is_written_into_the_file_while_no_request_comes() {
    let call = Call::from("idle_zone_file");
    let (_process, _) = call.serve(&FILE);
    let read = || fs::read(call.folder().join("zone.tg")).expect("the file of a zone");
    for _ in 0..2 {
        let before = read();
        // Only the time can be written.
        until("the time is written", TIMEOUT, || (read() != before).then_some(()));
    }
}

#[test]
fn two_servers_with_old_and_new_numbers_on_one_file_keep_both_limits() {
    let text = |limit: &str| {
        let store = "[store]\nfile = \"zone.tg\"\nsize = \"1MiB\"\n";
        format!("{store}[[rule]]\nname = \"quota\"\nkey = [\"user\"]\nlimit = \"{limit}\"\n")
    };
    for (name, old, new) in [("buckets", "1000/d", "100/h"), ("near", "1000/d", "900/d")] {
        let call = Call::from(&format!("old_and_new_{name}"));
        let call = call.file("old.toml", &text(old)).file("new.toml", &text(new));
        let start = |config: &str| {
            let (process, ready) = call.serve(&["--config", config]);
            (process, Client::connect(address(&ready, "resp")))
        };
        let (_old_server, mut by_old) = start("old.toml");
        let (_new_server, mut by_new) = start("new.toml");
        let mut admitted = [0, 0];
        for _ in 0..3000 {
            admitted[0] += by_old.say("TG.ADMIT user ana").number("allowed");
            admitted[1] += by_new.say("TG.ADMIT user ana").number("allowed");
        }
        let most = [old, new]
            .map(|limit| limit.split('/').next().and_then(|amount| amount.parse().ok()).unwrap_or(0));
        // A few units refill while this runs.
        assert!(admitted[0] <= most[0] + 5 && admitted[1] <= most[1] + 5, "{old} {new}: {admitted:?}");
        assert!(admitted[0] >= most[0] - most[1], "{old} {new}: {admitted:?}");
    }
}
