//! Tests of `tidegate take` against a server, another protocol, and a closed port.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::call::Call;
use crate::process::{Ended, Process};

/// A server, and the environment of its callers.
struct Asked {
    call: Call,
    server: Process,
}

impl Asked {
    fn new(name: &str) -> Asked {
        Asked::with(Call::from(name), &[])
    }

    fn with(call: Call, arguments: &[&str]) -> Asked {
        let (server, ready) = call.serve(arguments);
        let resp = ready["resp"].as_str().expect("it speaks RESP").to_owned();
        Asked { call: call.variable("TIDEGATE_RESP", &resp), server }
    }

    fn take(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let Ended { code, out, err } = self.call.run(&[&["take"], arguments].concat());
        (code, if out.is_empty() { err } else { out })
    }
}

fn ended(code: i32, line: &str) -> (Option<i32>, String) {
    (Some(code), format!("{line}\n"))
}

#[test]
fn the_remaining_quota_is_printed_until_a_take_is_denied() {
    let asked = Asked::new("take");
    let take = ["ana", "--limit", "2/h burst 2"];
    assert_eq!(asked.take(&take), ended(0, "allowed, 1 of 2 left"));
    assert_eq!(asked.take(&take), ended(0, "allowed, 0 of 2 left"));
    let (code, line) = asked.take(&take);
    assert_eq!(code, Some(3));
    assert!(line.starts_with("denied, try again in ") && line.contains(" min "), "{line}");
}

#[test]
fn a_cost_that_can_never_pass_is_denied_for_good() {
    let asked = Asked::new("impossible");
    let refused = ended(3, "denied, and no wait would help: at most 2 can pass at once");
    assert_eq!(asked.take(&["ana", "--limit", "2/h", "--cost", "3"]), refused);
    assert_eq!(asked.take(&["ana", "--limit", "2/h", "--cost", "2"]), ended(0, "allowed, 0 of 2 left"));
}

#[test]
fn max_wait_takes_a_delay() {
    let asked = Asked::new("max_wait");
    let take = ["ana", "--limit", "1/h leaky-bucket queue 1"];
    assert_eq!(asked.take(&take).0, Some(0));
    assert_eq!(asked.take(&take).0, Some(3));
    let (code, line) = asked.take(&[&take[..], &["--max-wait", "2h"]].concat());
    assert_eq!(code, Some(0));
    assert!(line.starts_with("allowed after a wait of "), "{line}");
}

#[test]
fn programs_get_the_same_fields_as_over_http() {
    let asked = Asked::new("take_json");
    let (code, line) = asked.take(&["ana", "--limit", "1/h", "--json"]);
    let mut reply: Value = serde_json::from_str(&line).unwrap();
    assert!(reply["reset_after_ms"].take().as_u64().unwrap() <= 3_600_000);
    let expected = json!({
        "allowed": true, "limit": 1, "remaining": 0, "retry_after_ms": null, "reset_after_ms": null, "delay_ms": 0,
        "rule": null, "decided_by": "memory",
    });
    assert_eq!((code, reply), (Some(0), expected));
}

#[test]
fn a_token_is_asked_for_and_taken_from_variable_or_file() {
    let with_token = Call::from("take_token").variable("TIDEGATE_TOKEN", "secret");
    let knowing = Asked::with(with_token, &[]);
    let take = ["ana", "--limit", "9/h"];
    assert_eq!(knowing.take(&take).0, Some(0));

    let server = knowing.call.value("TIDEGATE_RESP").to_owned();
    let stranger = Call::from("take_no_token").file("right", "secret\n").file("wrong", "guess\n");
    let ask = |more: &[&str]| {
        stranger.run(&[&["take", "ana", "--limit", "9/h", "--server", &server], more].concat())
    };
    let refused = ask(&[]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""));
    assert_eq!(refused.err, format!("error: {server} wants a token; set TIDEGATE_TOKEN or --token-file\n"));
    assert_eq!(ask(&["--token-file", "right"]).code, Some(0));
    let wrong = ask(&["--token-file", "wrong"]);
    assert!(wrong.code == Some(1) && wrong.err.contains(" says: WRONGPASS"), "{wrong:?}");
}

#[test]
fn counts_in_a_file_survive_a_restart() {
    let file = ["--store-file", "zone.tg", "--store-size", "1MiB"];
    let first = Asked::with(Call::from("survive"), &file);
    assert_eq!(first.take(&["ana", "--limit", "1/h"]).0, Some(0));
    let Asked { call, server } = first;
    server.signal(Signal::TERM);
    assert_eq!(server.end().code, Some(0));

    let again = Asked::with(call.without("TIDEGATE_RESP"), &file);
    assert_eq!(again.take(&["ana", "--limit", "1/h"]).0, Some(3));
}

#[test]
fn another_protocol_is_named() {
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stranger.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut stream, _) = stranger.accept().unwrap();
        let _ = stream.read(&mut [0; 64]);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let ended = Call::from("stranger").run(&["take", "ana", "--limit", "1/s", "--server", &address]);
    let said = "it does not speak RESP; name the RESP port of a tidegate server with --server";
    assert_eq!((ended.code, ended.err), (Some(1), format!("error: no answer from {address}: {said}\n")));
}
