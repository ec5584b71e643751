//! Every command in the documents is run, and prints what stands below it.

use std::fs;
use std::path::Path;
use std::process::Command;

use tidegate_server::Settings;
use tidegate_server::settings::Token;

use crate::wire::{Running, settings};

/// A command of a document, and what it has to print.
#[derive(Debug)]
struct Shown {
    command: String,
    output: String,
}

/// The commands for clients in a document, in their order.
fn shown(name: &str) -> Vec<Shown> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = fs::read_to_string(path).expect("the document is there");
    let mut blocks = text.split("```").collect::<Vec<_>>().into_iter();
    let mut all = Vec::new();
    let mut last = None;
    // What is outside of a block and what is within come by turns.
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        let (language, body) = block.split_once('\n').expect("a block has lines");
        match (language, last.take()) {
            ("sh", _) if body.starts_with("redis-cli") || body.starts_with("curl") => {
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

/// The command as it reaches the server under test, and prints as on a terminal.
fn on_free_ports(command: &str, running: &Running) -> String {
    let resp = running.server.resp().expect("it speaks RESP").port();
    let http = running.server.http().expect("it speaks HTTP").to_string();
    command
        .replace("redis-cli -p 6380", &format!("redis-cli --no-raw -p {resp}"))
        .replace("redis-cli -3 -p 6380", &format!("redis-cli -3 --no-raw -p {resp}"))
        .replace("127.0.0.1:8380", &http)
        .replace("curl ", "curl --silent --show-error ")
}

fn run(command: &str) -> String {
    let output = Command::new("sh").args(["-c", command]).output().expect("there is a shell");
    let printed = String::from_utf8(output.stdout).expect("text");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let missing = "it is missing; `cargo xtask clients` installs redis-cli and curl";
    assert_ne!(output.status.code(), Some(127), "{command}: {missing}");
    assert!(output.status.success(), "`{command}` failed: {complaint}\n{printed}");
    // The date of an answer is not for a document.
    let lines = printed.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
    lines.map(|line| line.trim_end().to_owned() + "\n").collect::<String>().trim_end().to_owned() + "\n"
}

/// Whether a line is as shown, where `…` stands for anything.
fn is_as_shown(printed: &str, shown: &str) -> bool {
    match shown.split_once('…') {
        Some((begins, ends)) => printed.starts_with(begins) && printed.ends_with(ends),
        None => printed == shown,
    }
}

fn all_commands_of(name: &str, at_least: usize) {
    let open = Running::start();
    let guarded = Running::with(Settings { token: Token::new("sesame"), ..settings() });
    let commands = shown(name);
    assert!(commands.len() >= at_least, "only {} commands in {name}", commands.len());
    for Shown { command, output } in commands {
        let running = if command.contains("# with a token") { &guarded } else { &open };
        let printed = run(&on_free_ports(&command, running));
        let is_same = printed.lines().count() == output.lines().count()
            && printed.lines().zip(output.lines()).all(|(printed, shown)| is_as_shown(printed, shown));
        assert!(is_same, "{name}: {command}\nis shown to print\n{output}\nand prints\n{printed}");
    }
}

#[test]
fn commands_of_the_readme_print_what_it_shows() {
    all_commands_of("README.md", 3);
}

#[test]
fn commands_about_resp_print_what_is_shown() {
    all_commands_of("docs/resp.md", 7);
}

#[test]
fn commands_about_http_print_what_is_shown() {
    all_commands_of("docs/http.md", 20);
}
