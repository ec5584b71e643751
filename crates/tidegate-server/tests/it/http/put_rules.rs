//! Tests of replacing rules over HTTP: in the file, and in force.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::command::call::{Call, address};
use crate::process::Process;
use crate::wire::Running;
use crate::wire::http::{Answer, Talk, by, get};

const MAX_FILE_BYTES: usize = 4 << 20;

pub(super) const OLD: &str = "# ours\n[[rule]]\nname = \"api\"\nkey = [\"user\"]\nlimit = \"2/h\"\n";
pub(super) const NEW: &str = "# theirs\n[[rule]]\nname = \"api\"\nkey = [\"user\"]\nlimit = \"3/h\"\n\
                   [[rule]]\nname = \"login\"\nlimit = \"9/h\"\n";

/// Starts a server with a rules file and a token.
pub(super) fn serving(call: Call) -> (Call, Process, Talk) {
    let call = call.file("tidegate.toml", OLD).variable("TIDEGATE_TOKEN", "sesame");
    let (process, ready) = call.serve(&["--config", "tidegate.toml"]);
    (call, process, Talk::at(address(&ready, "http")))
}

pub(super) fn message(text: &str) -> String {
    let length = text.len();
    let head = "PUT /v1/rules HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/toml";
    format!("{head}\r\ncontent-length: {length}\r\n\r\n{text}")
}

/// Puts rules with the tag of the text in force.
pub(super) fn put(talk: &mut Talk, text: &str) -> Answer {
    let tag = tag(talk);
    put_with(talk, &format!("if-match: {tag}"), text)
}

/// Returns the tag of the text in force.
pub(super) fn tag(talk: &mut Talk) -> String {
    look(talk, "/v1/rules").field("etag").unwrap_or("\"none\"").to_owned()
}

/// Puts rules with one more header field.
pub(super) fn put_with(talk: &mut Talk, field: &str, text: &str) -> Answer {
    talk.ask(by("sesame", &message(text)).replacen("\r\n", &format!("\r\n{field}\r\n"), 1))
}

fn look(talk: &mut Talk, path: &str) -> Answer {
    talk.ask(by("sesame", &get(path)))
}

fn left(talk: &mut Talk) -> Value {
    let message = crate::wire::http::post("/v1/admit", r#"{"attributes":{"user":"ana"}}"#);
    talk.ask(by("sesame", &message)).json()["remaining"].clone()
}

pub(super) fn text_in_force(talk: &mut Talk) -> Answer {
    talk.ask(
        by("sesame", &get("/v1/rules"))
            .replace("host: localhost", "host: localhost\r\naccept: application/toml"),
    )
}

#[test]
fn rules_are_written_and_in_force_and_counts_stay() {
    let (call, _process, mut talk) = serving(Call::from("put_rules"));
    assert_eq!(left(&mut talk), 1);
    let answer = put(&mut talk, NEW);
    assert_eq!(answer.status, 200, "{answer:?}");
    let report = answer.json();
    assert_eq!(report["warnings"], json!([]));
    let differences: Vec<_> =
        report["differences"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(differences[0], "~ rule \"api\": 2/h -> 3/h");
    assert!(differences[1].starts_with("+ rule \"login\": "), "{differences:?}");

    assert_eq!(fs::read_to_string(call.folder().join("tidegate.toml")).unwrap(), NEW);
    let text = text_in_force(&mut talk);
    assert_eq!((&*text.body, text.field("content-type")), (NEW, Some("application/toml")));
    let rules = look(&mut talk, "/v1/rules").json();
    assert_eq!(rules["file"], "tidegate.toml");
    assert_eq!(rules["status"], json!({"replaced": 1, "rejected": 0, "wrong": null}));
    assert_eq!(rules["rules"][0]["counts"]["allowed"], 1);
    // One of three units was spent before; a new key would have two left.
    assert_eq!(left(&mut talk), 1);
}

#[test]
fn an_invalid_text_changes_nothing_and_every_error_has_its_place() {
    let (call, _process, mut talk) = serving(Call::from("put_wrong_rules"));
    let wrong = "[[rule]]\nname = \"api\"\nlimit = \"2/min\"\nmood = 1\n";
    let answer = put(&mut talk, wrong);
    assert_eq!(answer.status, 422, "{answer:?}");
    assert_eq!(answer.detail(), "2 errors in these rules; the previous rules stay in force");
    let errors = answer.json()["errors"].clone();
    assert_eq!((&errors[0]["line"], &errors[0]["column"]), (&json!(3), &json!(12)));
    let what = errors[0]["message"].as_str().unwrap();
    assert!(what.contains("unknown unit \"min\""), "{what}");
    let shown = errors[0]["shown"].as_str().unwrap();
    assert!(shown.starts_with(&format!("tidegate.toml:3:12: {what}\n  3 | limit = \"2/min\"\n")), "{shown}");
    assert!(shown.ends_with('^'), "{shown}");
    assert_eq!((&errors[1]["line"], &errors[1]["column"]), (&json!(4), &json!(1)));

    assert_eq!(fs::read_to_string(call.folder().join("tidegate.toml")).unwrap(), OLD);
    assert_eq!(text_in_force(&mut talk).body, OLD);
    assert_eq!(left(&mut talk), 1);
    assert_eq!(look(&mut talk, "/readyz").json(), json!({"ready": true, "rules": "ok"}));
    assert_eq!(put(&mut talk, "[server\n").status, 422);
    let mut no_text = by("sesame", &message("x")).into_bytes();
    no_text.pop();
    no_text.push(0xff);
    let answer = talk.ask(no_text);
    answer.is_problem(400, "no UTF-8 text from byte 1 on");
}

#[test]
fn at_most_100_errors_are_reported() {
    let (_call, _process, mut talk) = serving(Call::from("put_many_wrong_rules"));
    let answer = put(
        &mut talk,
        &(0..150).map(|nth| format!("[[rule]]\nname = \"r{nth}\"\nlimit = 1\n")).collect::<String>(),
    );
    assert_eq!(answer.status, 422);
    assert!(answer.detail().starts_with("more than 100 errors"), "{}", answer.detail());
    assert_eq!(answer.json()["errors"].as_array().unwrap().len(), 100);
}

#[test]
fn warnings_come_with_the_answer() {
    let (_call, _process, mut talk) = serving(Call::from("put_odd_rules"));
    let odd = "[[rule]]\nname = \"api\"\nkey = [\"header.x-user\"]\nlimit = \"2/h\"\n";
    let answer = put(&mut talk, odd);
    assert_eq!(answer.status, 200, "{answer:?}");
    let warning = answer.json()["warnings"][0].as_str().unwrap().to_owned();
    assert!(warning.contains("which anybody can choose"), "{warning}");
}

#[test]
fn the_longest_file_is_taken_and_the_next_is_not() {
    let (_call, _process, mut talk) = serving(Call::from("put_long_rules"));
    let long = |bytes: usize| format!("{NEW}#{}", "x".repeat(bytes - NEW.len() - 1));
    assert_eq!(put(&mut talk, &long(MAX_FILE_BYTES)).status, 200);
    // The head contains the length, so the server does not wait for the body.
    let message = by("sesame", &message(&long(MAX_FILE_BYTES + 1)));
    let answer = talk.ask(&message[..1000]);
    assert_eq!((answer.status, answer.field("connection")), (413, Some("close")));
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_and_the_rules_stay() {
    let (call, _process, mut talk) = serving(Call::from("put_unwritable_rules"));
    // Even root cannot write a file that was moved away.
    let folder = call.folder();
    fs::create_dir(folder.join("moved")).unwrap();
    fs::rename(folder.join("tidegate.toml"), folder.join("moved/tidegate.toml")).unwrap();
    let answer = put(&mut talk, NEW);
    assert_eq!(answer.status, 500, "{answer:?}");
    assert!(answer.detail().starts_with("tidegate.toml: cannot be written: "), "{}", answer.detail());
    assert!(answer.detail().contains("let the server's user write it and its folder"), "{}", answer.detail());
    assert_eq!(text_in_force(&mut talk).body, OLD);
}

#[test]
fn a_link_stays_a_link_and_a_file_keeps_its_permissions() {
    let call = Call::from("put_linked_rules").file("real.toml", OLD).variable("TIDEGATE_TOKEN", "sesame");
    let real = call.folder().join("real.toml");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.toml", call.folder().join("link.toml")).unwrap();
    let (_process, ready) = call.serve(&["--config", "link.toml"]);
    let mut talk = Talk::at(ready["http"].as_str().unwrap().parse().unwrap());
    assert_eq!(put(&mut talk, NEW).status, 200);
    assert!(fs::symlink_metadata(call.folder().join("link.toml")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), NEW);
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_server_without_a_file_says_how_to_have_one() {
    let running = Running::guarded();
    let answer = put(&mut Talk::to(&running), NEW);
    assert_eq!(answer.status, 409);
    assert!(answer.detail().ends_with("start it with --config FILE"), "{}", answer.detail());
}

#[test]
fn the_body_needs_the_content_type_of_toml() {
    let running = Running::guarded();
    for kind in ["application/json", "text/plain", "application/x-toml"] {
        let message = message(NEW).replace("application/toml", kind);
        let answer = Talk::to(&running).ask(by("sesame", &message));
        answer.is_problem_of(kind, 415, "send content-type: application/toml");
    }
}

#[test]
fn changes_of_rules_and_overrides_need_a_token_even_on_this_machine() {
    let running = Running::start();
    let json = |method: &str| crate::wire::http::with_json(method, "/v1/overrides", "{}");
    for message in [message(NEW), json("PUT"), json("DELETE")] {
        let answer = Talk::to(&running).ask(&message);
        assert_eq!(answer.status, 403);
        assert!(
            answer.detail().ends_with("start it with TIDEGATE_TOKEN or --token-file"),
            "{}",
            answer.detail()
        );
        assert_eq!(Talk::to(&running).ask(by("sesame", &message)).status, 403);
    }
    let guarded = Running::guarded();
    for message in [message(NEW), json("PUT"), json("DELETE")] {
        assert_eq!(Talk::to(&guarded).ask(&message).status, 401);
        assert!(![401, 403].contains(&Talk::to(&guarded).ask(by("sesame", &message)).status));
    }
}

#[test]
fn an_invalid_edit_by_hand_is_reported_and_the_rules_before_stay_in_force() {
    let (call, process, mut talk) = serving(Call::from("spoiled_rules"));
    fs::write(call.folder().join("tidegate.toml"), "[[rule]]\nname = \"api\"\nlimit = \"2/min\"\n").unwrap();
    process.signal(rustix::process::Signal::HUP);
    let ready = loop {
        let ready = look(&mut talk, "/readyz");
        assert_eq!(ready.status, 200);
        if ready.json()["rules"] == "rejected" {
            break ready.json();
        }
    };
    let detail = ready["detail"].as_str().unwrap();
    assert!(detail.starts_with("tidegate.toml:3:12: ") && detail.contains("unknown unit"), "{detail}");
    assert!(!detail.contains('\n'));
    assert_eq!(left(&mut talk), 1);
    let status = look(&mut talk, "/v1/rules").json()["status"].clone();
    assert_eq!((&status["rejected"], status["wrong"].is_string()), (&json!(1), true));
    let page = look(&mut talk, "/metrics").body;
    for line in
        ["tidegate_rules_rejected 1", "tidegate_rules_rejected_total 1", "tidegate_rules_replaced_total 0"]
    {
        assert!(page.lines().any(|known| known == line), "{line}");
    }

    let anybody = talk.get("/readyz").json();
    assert_eq!(
        anybody,
        json!({"ready": true, "rules": "rejected"}),
        "lines of the file are not for everybody"
    );
    assert_eq!(put(&mut talk, NEW).status, 409);
    assert_eq!(put_with(&mut talk, "if-match: *", NEW).status, 200);
    assert_eq!(look(&mut talk, "/readyz").json(), json!({"ready": true, "rules": "ok"}));
    assert!(look(&mut talk, "/metrics").body.contains("\ntidegate_rules_rejected 0\n"));
}

#[test]
fn a_concurrent_edit_of_the_file_is_overwritten_only_by_if_match_any() {
    let (call, _process, mut talk) = serving(Call::from("put_over_rules"));
    let file = call.folder().join("tidegate.toml");
    // An invalid text is never in force, however soon it is read.
    let edited = format!("{OLD}# a line that is not done ye");
    let edited = edited.replace("2/h", "2/");
    fs::write(&file, &edited).unwrap();
    let answer = put(&mut talk, NEW);
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.detail().starts_with("tidegate.toml: differs from the rules in force"));
    assert!(answer.detail().ends_with("or send If-Match: * to overwrite it"), "{}", answer.detail());
    assert_eq!(fs::read_to_string(&file).unwrap(), edited);
    assert_eq!(text_in_force(&mut talk).body, OLD);
    assert_eq!(put_with(&mut talk, "If-Match: *", NEW).status, 200);
    assert_eq!(fs::read_to_string(&file).unwrap(), NEW);
}

#[test]
fn a_zone_keeps_its_first_size_and_both_sizes_are_reported() {
    let (_call, _process, mut talk) = serving(Call::from("put_zones"));
    for (size, in_use) in [(128, 128), (256, 128)] {
        let zone = format!(
            "[zone.z]\nsize = \"{size}KiB\"\n[[rule]]\nname = \"api\"\nlimit = \"2/h\"\nzone = \"z\"\n"
        );
        assert_eq!(put(&mut talk, &zone).status, 200);
        let zones = look(&mut talk, "/v1/rules").json()["zones"].clone();
        assert_eq!(zones, json!([{"name": "z", "bytes": size << 10, "bytes_in_use": in_use << 10}]));
    }
}
