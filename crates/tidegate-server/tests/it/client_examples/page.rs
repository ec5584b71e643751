//! Tests of docs/clients.md: its code is that of the examples, and its output is what they print.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::caller::{Caller, REFILL};
use super::example::{EXAMPLES, PAGE, folder, shell, sources};
use super::place::{Place, SERVE, TOKEN};
use crate::documents::blocks::{Block, blocks, is_of_others};
use crate::process::Process;

const NAME: &str = "docs/clients.md";

/// The number of lines that a file of the examples has.
const LINES: std::ops::RangeInclusive<usize> = 15..=60;

/// Returns the text of each file below a folder, by its path.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("a name").path();
        if path.is_dir() {
            texts.extend(self::texts(&path));
        } else {
            let text = fs::read_to_string(&path).expect("examples are text");
            texts.insert(path.display().to_string(), text);
        }
    }
    texts
}

/// Returns the blocks of the page with the output that follows them, if any does.
fn shown() -> Vec<(Block<'static>, Option<&'static str>)> {
    let all: Vec<_> = blocks(PAGE).collect();
    let outputs: Vec<_> = all
        .iter()
        .skip(1)
        .map(|block| (block.language == "text").then_some(block.body))
        .chain([None])
        .collect();
    all.into_iter().zip(outputs).collect()
}

#[test]
fn the_code_of_the_page_is_a_part_of_an_example() {
    let texts = texts(&sources());
    let mut count = 0;
    for block in blocks(PAGE).filter(|block| !is_of_others(NAME, block)) {
        if matches!(block.language, "sh" | "text" | "toml") {
            continue;
        }
        count += 1;
        let is_there = texts.values().any(|text| text.contains(block.body));
        assert!(
            is_there,
            "no file of examples/clients contains this block of {}:\n{}",
            block.language, block.body
        );
    }
    assert!(count >= 8, "the page shows {count} examples");
}

#[test]
fn every_file_of_the_examples_is_short_and_on_the_page() {
    for (path, text) in texts(&sources()) {
        let lines = text.lines().count();
        assert!(LINES.contains(&lines), "{path}: {lines} lines");
        let (_, name) = path.rsplit_once("examples/clients/").expect("it is there");
        assert!(PAGE.contains(&format!("(../examples/clients/{name})")), "the page has no link to {name}");
    }
}

/// The tests of the examples run the blocks that start something, the next test those with output.
#[test]
fn every_command_of_the_page_is_run() {
    for (block, output) in shown().into_iter().filter(|(block, _)| block.language == "sh") {
        let last = block.body.lines().last().expect("a block has lines");
        let is_run = last == SERVE || output.is_some() || EXAMPLES.iter().any(|example| example.line == last);
        assert!(is_run, "no test runs this block:\n{}", block.body);
    }
}

/// Replaces the times of a response, which depend on the speed of the machine. The law of the examples checks them.
fn without_times(output: &str) -> String {
    let mut kept = String::new();
    for line in output.lines() {
        let time = ["t=", "Retry-After: ", "retry-after: "]
            .iter()
            .find_map(|before| line.rfind(before).map(|at| at + before.len()));
        kept += time.map_or(line, |at| &line[..at]).trim_end();
        kept += "\n";
    }
    kept
}

#[test]
fn the_commands_of_the_page_print_what_it_shows() {
    let name = "page";
    let folder = folder(name);
    let mut place = Place::new(name);
    let settings = [("TIDEGATE_TOKEN", TOKEN.to_owned()), ("TIDEGATE_TIMEOUT_MS", "60000".to_owned())];
    let variables: Vec<_> = place.addresses().into_iter().chain(settings).collect();
    let commands: Vec<_> = shown()
        .into_iter()
        .filter(|(block, _)| block.language == "sh")
        .filter_map(|(block, output)| Some((block.body, output?)))
        .collect();
    assert!(commands.len() >= 4, "{commands:?}");
    loop {
        place.start();
        let service = Caller::start(super::example("node_http"), &folder, variables.clone());
        let address = service.address().expect("it is a service").to_string();
        let begin = testbed::now();
        let printed = commands.iter().map(|(command, _)| {
            let lines = command.replace("127.0.0.1:8080", &address);
            Process::run(shell(&folder, &lines).envs(variables.clone()), b"")
        });
        let printed: Vec<_> = printed.collect();
        // Otherwise a unit may have refilled.
        if begin.elapsed() < REFILL {
            for ((command, output), ended) in commands.iter().zip(printed) {
                assert_eq!(without_times(&ended.out), without_times(output), "{command}: {}", ended.err);
            }
            return;
        }
    }
}
