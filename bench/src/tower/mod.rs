//! What a layer costs a request: axum bare, with `tower_governor`, and with ours.
//!
//! Instructions are those of a whole request inside the process, so what a layer adds is the difference to the bare
//! router. CPU time is that of real servers, asked over connections that stay open.

mod cpu;
mod instructions;
mod sides;

use std::process::ExitCode;

use crate::goal::Goal;
use crate::options::Options;
use crate::stopwatch::instant;

/// A part of the bench: its name, what it does, and how.
type Section = (&'static str, &'static str, fn() -> Result<Vec<Goal>, String>);

const SECTIONS: [Section; 2] = [
    ("instructions", "instructions of one request, by callgrind", instructions::run),
    ("cpu", "CPU of a server per request", cpu::run),
];

/// Runs the bench, or what a part of it needs in a process of its own.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match arguments {
        ["ask", side, times] => instructions::ask(side, times),
        ["serve", side] => cpu::serve(side),
        _ => {
            let names = SECTIONS.map(|(name, ..)| name);
            match Options::read(arguments, &names).filter(|options| !options.plot) {
                Some(options) => compare_all(&options),
                None => {
                    eprintln!("usage: tower [{}]...", names.join(" | "));
                    ExitCode::from(2)
                }
            }
        }
    }
}

fn compare_all(options: &Options) -> ExitCode {
    let start = instant();
    let (mut goals, mut failed) = (Vec::new(), false);
    for (name, what, section) in SECTIONS.into_iter().filter(|(name, ..)| options.asks_for(name)) {
        eprintln!("tower {name}: {what} ({} s)", start.elapsed().as_secs());
        match section() {
            Ok(reached) => goals.extend(reached),
            Err(problem) => {
                eprintln!("tower {name} failed: {problem}");
                failed = true;
            }
        }
    }
    eprintln!("tower: done ({} s)", start.elapsed().as_secs());
    let met: Vec<_> = goals.iter().map(Goal::print).collect();
    ExitCode::from(u8::from(failed || met.contains(&false)))
}
