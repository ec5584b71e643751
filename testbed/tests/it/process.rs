//! Nothing is left behind, whatever becomes of the test.

use std::any::Any;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use testbed::{Flavour, Redis, pause, until};

/// Says the child of a test what it is.
const ROLE: &str = "TIDEGATE_TESTBED_CHILD";

/// How long the end may take.
const TIMEOUT: Duration = Duration::from_secs(30);

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
    let name = "process::a_server_is_gone_with_a_process_that_was_killed";
    server_of_a_killed_process(name, "redis", || {
        let redis = Redis::start(Flavour::Redis7);
        (vec![redis.pid().unwrap()], Box::new(redis))
    });
}

/// Runs the test of this name once more, kills it, and waits until its processes and its folders are gone.
pub(crate) fn server_of_a_killed_process(
    test: &str,
    folder: &str,
    start: impl Fn() -> (Vec<u32>, Box<dyn Any>),
) {
    if std::env::var_os(ROLE).is_some() {
        let (pids, _server) = start();
        println!("processes {pids:?}");
        pause(Duration::from_secs(600));
    }
    let mut child = Command::new(std::env::current_exe().expect("tests are a program"));
    child.args(["--exact", test, "--nocapture"]).env(ROLE, "1").stdout(Stdio::piped());
    let mut child = child.spawn().expect("tests can be run once more");
    let output = child.stdout.take().expect("it was asked for");
    // The harness writes the name of the test before it, on the same line.
    let list = |line: String| Some(line.split_once("processes [")?.1.strip_suffix(']')?.to_owned());
    let pids = BufReader::new(output).lines().map_while(Result::ok).find_map(list);
    let pids = pids.expect("the server has started");
    let pids: Vec<u32> = pids.split(", ").map(|pid| pid.parse().expect("it is a number")).collect();
    assert!(is_there(pids[0]));

    child.kill().expect("it still waits");
    child.wait().expect("it is ours");
    let is_any_there = || pids.iter().any(|pid| is_there(*pid));
    until("the end of the processes", TIMEOUT, || (!is_any_there()).then_some(()));
    until("the end of its folders", TIMEOUT, || (!is_any_left(folder, child.id())).then_some(()));
}

/// Whether a process has left a folder of such a name.
fn is_any_left(folder: &str, pid: u32) -> bool {
    let entries = std::fs::read_dir(std::env::temp_dir()).expect("there are temporary files");
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.any(|name| name.starts_with(&format!("tidegate-{folder}-")) && name.contains(&format!("-{pid}-")))
}

pub(crate) fn is_there(pid: u32) -> bool {
    // A process that has ended and was not waited for is a zombie, which does not count.
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}
