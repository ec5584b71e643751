//! What a layer costs a request: axum bare, with `tower_governor`, and with ours.
//!
//! Instructions are those of a whole request inside the process, so what a layer adds is the difference to the bare
//! router. CPU time is that of real servers, asked over connections that stay open.

mod cpu;
mod instructions;
mod sides;

use std::process::ExitCode;

use harness::{Section, Sections};

const SECTIONS: [Section<()>; 2] = [
    ("instructions", "instructions of one request, by callgrind", |()| instructions::run()),
    ("cpu", "CPU of a server per request", |()| cpu::run()),
];

/// Runs the bench, or what a part of it needs in a process of its own.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match arguments {
        ["ask", side, times] => instructions::ask(side, times),
        ["serve", side] => cpu::serve(side),
        _ => match Sections::read("tower", arguments, &SECTIONS, &[]) {
            Ok(sections) => sections.run("tower", &SECTIONS, &()),
            Err(usage) => {
                eprintln!("{usage}");
                ExitCode::from(2)
            }
        },
    }
}
