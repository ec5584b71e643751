//! Nothing is left behind, whatever becomes of the test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use testbed::{Flavour, Redis, pause, until};

/// Says the child of this test what it is.
const ROLE: &str = "TIDEGATE_TESTBED_CHILD";

#[test]
fn a_server_is_gone_with_its_value() {
    let redis = Redis::start(Flavour::Redis7);
    let pid = redis.pid().unwrap();
    assert!(is_there(pid));
    drop(redis);
    assert!(!is_there(pid));
}

#[test]
fn a_server_is_gone_with_a_process_that_was_killed() {
    if std::env::var_os(ROLE).is_some() {
        let redis = Redis::start(Flavour::Redis7);
        println!("server {}", redis.pid().unwrap());
        pause(Duration::from_secs(600));
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "process::a_server_is_gone_with_a_process_that_was_killed", "--nocapture"]);
    let mut child = child.env(ROLE, "1").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The harness writes the name of the test before it, on the same line.
    let pid =
        lines.filter_map(|line| Some(line.split_once("server ")?.1.trim().parse().unwrap())).next().unwrap();
    assert!(is_there(pid));

    child.kill().unwrap();
    child.wait().unwrap();
    let is_left = || {
        std::fs::read_dir(std::env::temp_dir()).unwrap().any(|entry| {
            let name = entry.unwrap().file_name();
            name.to_string_lossy().starts_with(&format!("tidegate-redis-{}-", child.id()))
        })
    };
    until("the end of the server", Duration::from_secs(30), || (!is_there(pid)).then_some(()));
    until("the end of its folder", Duration::from_secs(30), || (!is_left()).then_some(()));
}

fn is_there(pid: u32) -> bool {
    // Whoever has ended and was not waited for is not there any more.
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}
