//! Tests of a server process from its start to its end.

use std::collections::HashSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::call::{Call, address};

#[test]
fn the_first_line_for_programs_names_every_front() {
    let (process, ready) = Call::from("first_line").serve(&[]);
    assert_eq!(ready["event"], "ready");
    for front in ["resp", "http"] {
        TcpStream::connect(address(&ready, front)).unwrap();
    }
    process.signal(Signal::TERM);
    let ended = process.end();
    assert_eq!(ended.out, "", "talk belongs on standard error");
}

#[test]
fn people_get_a_line_to_copy_for_each_front() {
    let (process, ready) = Call::from("lines_to_copy").serve(&[]);
    let [resp, http] = ["resp", "http"].map(|front| address(&ready, front).port());
    process.signal(Signal::TERM);
    let said = process.end().err;
    for line in [
        concat!("tidegate ", env!("CARGO_PKG_VERSION")).to_owned(),
        "settings  built-in defaults, --resp, --http".to_owned(),
        "store     64 MiB in memory; --store-file FILE survives restarts".to_owned(),
        format!("            redis-cli -p {resp} CL.THROTTLE user123 15 30 60"),
        format!(
            "            curl -i -d '{{\"key\":\"user123\",\"limit\":\"30/60s burst 16\"}}' \
             -H 'content-type: application/json' http://127.0.0.1:{http}/v1/take"
        ),
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\nis not in\n{said}");
    }
    assert!(said.contains("\nready in "), "{said}");
}

#[test]
fn a_line_to_copy_refers_to_the_token_and_does_not_print_it() {
    let said = |call: Call, more: &[&str]| {
        let (process, _) = call.serve(more);
        process.signal(Signal::TERM);
        process.end().err
    };
    let variable = said(Call::from("token_in_variable").variable("TIDEGATE_TOKEN", "open-sesame"), &[]);
    assert!(variable.contains(" REDISCLI_AUTH=\"$TIDEGATE_TOKEN\" redis-cli -p "), "{variable}");
    assert!(variable.contains(" -H \"authorization: Bearer $TIDEGATE_TOKEN\" http://"), "{variable}");
    let file = said(Call::from("token_in_file").file("it's", "open-sesame\n"), &["--token-file", "it's"]);
    assert!(file.contains(" REDISCLI_AUTH=\"$(cat 'it'\\''s')\" redis-cli -p "), "{file}");
    assert!(![variable, file].concat().contains("open-sesame"));
}

#[test]
fn without_settings_only_this_machine_can_ask() {
    let process = Call::from("default").start(&["serve", "--json"]);
    let line = process.says_one_of(&["ready in ", "error: "]);
    if line.starts_with("error: ") {
        // If another process uses the port, the error names the same address.
        assert!(
            line.contains("127.0.0.1:6380: address already in use")
                || line.contains("127.0.0.1:8380: address already in use"),
            "{line}"
        );
        return;
    }
    let listening = listening(process.id());
    assert_eq!(listening.len(), 2, "{listening:?}");
    assert!(
        listening.iter().all(|address| address.parse::<IpAddr>().unwrap().is_loopback()),
        "{listening:?}"
    );
}

/// Returns the addresses on which a process listens, from `/proc`.
fn listening(process: u32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).expect("the process runs");
    let links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    let sockets: HashSet<_> = links.map(|link| link.display().to_string()).collect();
    let tables =
        ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default());
    let rows =
        tables.iter().flat_map(|table| table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()));
    rows.filter(|row| row[3] == "0A" && sockets.contains(&format!("socket:[{}]", row[9])))
        .map(|row| {
            let word = u32::from_str_radix(&row[1][..row[1].len() - 5], 16).expect("an IPv4 address");
            IpAddr::from(word.to_ne_bytes()).to_string()
        })
        .collect()
}

fn stopped_by(name: &str, signal: Signal) {
    let (process, _) = Call::from(name).serve(&[]);
    process.signal(signal);
    let ended = process.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.err.contains("\nstopping: ") && ended.err.ends_with("\nstopped\n"), "{ended:?}");
}

#[test]
fn sigterm_stops_it_and_ends_well() {
    stopped_by("sigterm", Signal::TERM);
}

#[test]
fn ctrl_c_stops_it_and_ends_well() {
    stopped_by("sigint", Signal::INT);
}

#[test]
fn sighup_ends_nothing() {
    let (process, ready) = Call::from("sighup").serve(&[]);
    process.signal(Signal::HUP);
    assert_eq!(process.says("rules: "), "rules: there is no ./tidegate.toml to be read");
    TcpStream::connect(address(&ready, "resp")).unwrap();
    process.signal(Signal::TERM);
    assert_eq!(process.end().code, Some(0));
}

#[test]
fn a_second_signal_ends_at_once() {
    let (process, ready) =
        Call::from("twice").serve(&["--shutdown-timeout", "1h", "--request-timeout", "1h"]);
    let _unfinished = begin_a_request(&ready);
    process.signal(Signal::TERM);
    process.says("stopping: ");
    process.signal(Signal::TERM);
    let ended = process.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(1), "ended at once\n"));
}

/// Sends half a request. The reply to the command before it proves that the server has read it.
fn begin_a_request(ready: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(address(ready, "resp")).expect("it listens");
    stream.write_all(b"PING\r\n*2\r\n$4\r\nECHO\r\n").expect("it reads");
    let mut pong = [0; 7];
    stream.read_exact(&mut pong).expect("it answers");
    assert_eq!(&pong, b"+PONG\r\n");
    stream
}

#[test]
fn a_service_manager_hears_of_the_start_and_of_the_end() {
    let call = Call::from("notify");
    let manager = UnixDatagram::bind(call.folder().join("socket")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let hears = |expected: &str| {
        let mut heard = [0; 64];
        let bytes = manager.recv(&mut heard).unwrap();
        assert_eq!(std::str::from_utf8(&heard[..bytes]).unwrap(), expected);
    };
    let (process, _) = call.variable("NOTIFY_SOCKET", "socket").serve(&[]);
    hears("READY=1");
    process.signal(Signal::TERM);
    hears("STOPPING=1");
    assert_eq!(process.end().code, Some(0));
}
