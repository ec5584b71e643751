//! Runs every command in the documents, and compares its output with the text below it.

pub(crate) mod blocks;
mod programs;
mod quickstart;
mod rules;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tidegate_rules::Policy;
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use crate::command::call::{Call, address};
use crate::process::Process;
use crate::wire::{Running, settings};

/// The page of commands of `tidegate` against a running server.
const SUPPORT: &str = "docs/support.md";

/// A command in a document, and its expected output.
#[derive(Debug)]
struct Shown {
    command: String,
    output: String,
}

fn text_of(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    fs::read_to_string(path).expect("the document is there")
}

/// Returns the first rules in a document. They are in force for its commands.
fn rules_of(text: &str) -> &str {
    let mut blocks = text.split("```").filter_map(|block| block.strip_prefix("toml\n"));
    blocks.find(|block| block.contains("[[rule]]")).unwrap_or_default()
}

/// Returns the client commands in a document, in order.
fn shown(name: &str, text: &str) -> Vec<Shown> {
    let mut blocks = text.split("```").collect::<Vec<_>>().into_iter();
    let mut all = Vec::new();
    let mut last = None;
    // Text outside and inside of blocks alternates.
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        let (language, body) = block.split_once('\n').expect("a block has lines");
        match (language, last.take()) {
            ("sh", _) if body.starts_with("redis-cli") || body.starts_with("curl") || name == SUPPORT => {
                last = Some(body.to_owned());
            }
            ("text" | "json" | "http", Some(command)) => {
                all.push(Shown { command, output: body.to_owned() });
            }
            (_, None) => {}
            (_, Some(command)) => panic!("{name} does not show what this prints: {command}"),
        }
    }
    all
}

/// The addresses and the folder for commands.
struct Place {
    resp: SocketAddr,
    http: SocketAddr,
    folder: PathBuf,
}

impl Place {
    fn of(running: &Running) -> Place {
        Place {
            resp: running.server.resp().expect("it speaks RESP"),
            http: running.server.http().expect("it speaks HTTP"),
            folder: env::temp_dir(),
        }
    }
}

/// Starts a process with the rules in a file, and a token.
fn with_a_file(name: &str, rules: &str) -> (Process, Place) {
    let folder = format!("document_{}", name.replace('/', "_"));
    let call = Call::from(&folder).file("tidegate.toml", rules).variable("TIDEGATE_TOKEN", "sesame");
    let (process, ready) = call.serve(&["--config", "tidegate.toml"]);
    let (resp, http) = (address(&ready, "resp"), address(&ready, "http"));
    (process, Place { resp, http, folder: call.folder().to_owned() })
}

/// Rewrites a command for the server under test and for terminal output.
fn on_free_ports(command: &str, place: &Place) -> String {
    let (resp, http) = (place.resp.port(), place.http.to_string());
    command
        .replace("redis-cli -p 6380", &format!("redis-cli --no-raw -p {resp}"))
        .replace("redis-cli -3 -p 6380", &format!("redis-cli -3 --no-raw -p {resp}"))
        .replace("127.0.0.1:8380", &http)
        .replace("curl ", "curl --silent --show-error ")
}

fn run(command: &str, place: &Place) -> String {
    let mut shell = Command::new("sh");
    let program = Path::new(env!("CARGO_BIN_EXE_tidegate")).parent().expect("it is in a folder");
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap_or_default());
    shell.env("PATH", path).env("TIDEGATE_HTTP", place.http.to_string());
    if command.contains("# with a token") {
        shell.env("TIDEGATE_TOKEN", "sesame");
    }
    let output = shell.args(["-c", command]).current_dir(&place.folder).output().expect("there is a shell");
    let printed = String::from_utf8(output.stdout).expect("text");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let missing = "it is missing; `cargo xtask clients` installs redis-cli and curl";
    assert_ne!(output.status.code(), Some(127), "{command}: {missing}");
    assert!(output.status.success(), "`{command}` failed: {complaint}\n{printed}");
    // The date of a reply is not in the document.
    let lines = printed.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
    lines.map(|line| line.trim_end().to_owned() + "\n").collect::<String>().trim_end().to_owned() + "\n"
}

/// Compares a line with a pattern in which each `…` matches anything.
fn is_as_shown(printed: &str, shown: &str) -> bool {
    let Some((begins, rest)) = shown.split_once('…') else { return printed == shown };
    let Some(mut left) = printed.strip_prefix(begins) else { return false };
    let mut parts: Vec<_> = rest.split('…').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = left.split_once(part) else { return false };
        left = behind;
    }
    left.ends_with(last)
}

/// Returns the permit in a reply.
fn permit_in(answer: &str) -> Option<String> {
    let (_, behind) = answer.split_once("\"permit\":\"")?;
    behind.split_once('"').map(|(permit, _)| permit.to_owned())
}

fn all_commands_of(name: &str, at_least: usize) {
    let text = text_of(name);
    let rules = rules_of(&text);
    let policy = Policy::from_toml(rules).unwrap_or_else(|error| panic!("{name}: {error}"));
    let open = Running::with(Settings { policy: policy.clone(), ..settings() });
    let guarded = Running::with(Settings { policy, token: Token::new("sesame"), ..settings() });
    let commands = shown(name, &text);
    assert!(commands.len() >= at_least, "only {} commands in {name}", commands.len());
    let filed = commands.iter().any(|shown| shown.command.contains("# with a file"));
    let filed = filed.then(|| with_a_file(name, rules));
    let mut permits: Vec<(String, String)> = Vec::new();
    for Shown { command, output } in commands {
        let place = match &filed {
            Some((_, place)) if command.contains("# with a file") => place,
            _ if command.contains("# with a token") => &Place::of(&guarded),
            _ => &Place::of(&open),
        };
        let command = permits.iter().fold(command, |command, (shown, real)| command.replace(shown, real));
        let mut printed = run(&on_free_ports(&command, place), place);
        // A permit is random. The permit in the document is replaced by the actual one, here and in later commands.
        if let Some((shown, real)) = permit_in(&output).zip(permit_in(&printed)) {
            printed = printed.replace(&real, &shown);
            permits.push((shown, real));
        }
        let is_same = printed.lines().count() == output.lines().count()
            && printed.lines().zip(output.lines()).all(|(printed, shown)| is_as_shown(printed, shown));
        assert!(is_same, "{name}: {command}\nis shown to print\n{output}\nand prints\n{printed}");
    }
}

#[test]
fn commands_of_the_pages_print_what_is_shown() {
    for (page, at_least) in blocks::COMMANDS {
        all_commands_of(page, at_least);
    }
}
