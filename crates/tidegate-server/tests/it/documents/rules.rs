//! Tests of docs/rules.md. Its blocks are one growing file, and its commands run with the file as it is at that point.
//!
//! A rule or a zone that occurs again replaces the previous one. Commands of `tidegate` run in a folder with the file.
//! Commands of `curl` call a server with these rules, whose clock stands still.

use std::fs;
use std::path::Path;
use std::process::Command;

use tidegate_rules::Policy;
use tidegate_server::Settings;

use super::{Place, is_as_shown, on_free_ports, run, text_of};
use crate::command::call::Call;
use crate::wire::{Running, settings};

const PAGE: &str = "docs/rules.md";

/// A block of the page: its language and its text.
struct Block {
    language: String,
    body: String,
}

fn blocks() -> Vec<Block> {
    let text = text_of(PAGE);
    let within = text.split("```").skip(1).step_by(2);
    within
        .map(|block| block.split_once('\n').expect("a block has lines"))
        .map(|(language, body)| Block { language: language.to_owned(), body: body.to_owned() })
        .collect()
}

/// The growing file: its tables by header and name, in order of first occurrence.
#[derive(Default)]
struct Growing(Vec<(String, String)>);

impl Growing {
    fn add(&mut self, block: &str) {
        for table in tables(block) {
            let header = table.lines().find(|line| line.starts_with('[')).expect("a table has a header");
            let name = table.lines().find(|line| line.starts_with("name = ")).unwrap_or_default();
            let of = format!("{header} {name}");
            match self.0.iter_mut().find(|(known, _)| *known == of) {
                Some((_, known)) => *known = table,
                None => self.0.push((of, table)),
            }
        }
    }

    fn text(&self) -> String {
        self.0.iter().map(|(_, table)| table.as_str()).collect()
    }
}

/// Splits a block into tables, each with the comments before it.
fn tables(block: &str) -> Vec<String> {
    let mut tables: Vec<String> = vec![String::new()];
    let mut has_header = false;
    for line in block.lines() {
        let begins = line.starts_with('[') || line.starts_with('#');
        if begins && has_header {
            tables.push(String::new());
            has_header = false;
        }
        has_header |= line.starts_with('[');
        let last = tables.last_mut().expect("there is one");
        *last += line;
        last.push('\n');
    }
    tables
}

/// Runs a command of `tidegate`, and returns its output, standard error included.
fn run_tidegate(command: &str, folder: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_tidegate")).parent().expect("it is in a folder");
    let path = format!("{}:/usr/bin:/bin", binary.display());
    let script = format!("exec 2>&1; {command}");
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(folder).env_clear().env("PATH", path).output();
    String::from_utf8(output.expect("there is a shell").stdout).expect("text")
}

#[test]
fn the_file_of_the_page_holds_at_every_step_and_its_commands_print_what_is_shown() {
    let (call, mut file) = (Call::from("documents_rules"), Growing::default());
    let folder = call.folder();
    let mut server: Option<Running> = None;
    let mut last: Option<(String, String)> = None;
    let (mut files, mut commands, mut wrong) = (0, 0, Vec::new());
    for Block { language, body } in blocks() {
        if let Some((command, printed)) = last.take() {
            let is_same = printed.lines().count() == body.lines().count()
                && printed.lines().zip(body.lines()).all(|(printed, shown)| is_as_shown(printed, shown));
            if !is_same || !["text", "json", "http"].contains(&language.as_str()) {
                wrong.push(format!("{command}is shown to print\n{body}and prints\n{printed}"));
            }
            continue;
        }
        match language.as_str() {
            "toml" => {
                file.add(&body);
                fs::write(folder.join("tidegate.toml"), file.text()).expect("it can be written");
                let policy = Policy::from_toml(&file.text()).unwrap_or_else(|error| panic!("{body}{error}"));
                server = Some(Running::with(Settings { policy, ..settings() }));
                files += 1;
            }
            "sh" => {
                let printed = match body.starts_with("curl ") {
                    true => {
                        let place = Place::of(server.as_ref().expect("rules come first"));
                        run(&on_free_ports(&body, &place), &place)
                    }
                    false => run_tidegate(&body, folder),
                };
                last = Some((body, printed));
                commands += 1;
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{PAGE}:\n{}", wrong.join("\n"));
    assert!(files >= 12 && commands >= 10, "{files} files, {commands} commands");
}

#[test]
fn every_field_of_a_rule_is_on_the_page() {
    let text: String = blocks().into_iter().map(|block| block.body).collect();
    let page = text_of(PAGE);
    let error = Policy::from_toml("[[rule]]\nnonsense-that-is-like-nothing = 1\n").unwrap_err().to_string();
    let known = error.split("known are ").nth(1).and_then(|rest| rest.lines().next()).expect("a list");
    for field in known.split(", ") {
        assert!(page.contains(&format!("`{field}`")), "{field} is not among the fields");
    }
    for field in ["when", "key", "limit", "decision", "mode", "candidate_for", "cost", "schedule", "zone"] {
        assert!(text.contains(&format!("\n{field} = ")), "{field} is not shown");
    }
}
