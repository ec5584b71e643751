//! Tidegate and its peers side by side, in one run.
//!
//! `cargo xtask bench NAME` runs one of these. Each prints a table and ends with a line per goal, and exits
//! with 1 if a goal is missed.

mod building;
mod callgrind;
mod core;
mod decide;
mod phase;
mod promise;
mod redis;
mod rounds;
mod rules;
mod server;
mod tower;
mod zone;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.split_first() {
        Some((&"core", rest)) => core::run(rest),
        Some((&"decide", _)) => decide::run(),
        Some((&"redis", rest)) => redis::run(rest),
        Some((&"rules", rest)) => rules::run(rest),
        Some((&"server", rest)) => server::run(rest),
        Some((&"tower", rest)) => tower::run(rest),
        Some((&"zone", rest)) => zone::run(rest),
        other => {
            let name = other.map_or("(none)", |(name, _)| name);
            eprintln!("unknown bench {name}; there are: core, decide, redis, rules, server, tower, zone");
            ExitCode::from(2)
        }
    }
}
