//! Sides measured in turns on one server.

use std::time::Duration;

use super::question::MANY;
use super::side::Side;
use crate::server::CONNECTIONS;
use crate::server::candidate::{Candidate, Sample, Turn};
use crate::server::host::Server;
use crate::server::table::Table;

/// How many rounds are measured; one before them warms up.
pub(super) const ROUNDS: usize = 11;
/// For how long each is asked in a round.
pub(super) const TURN: Duration = Duration::from_millis(250);

/// Sides with connections to a server that knows their keys.
pub(super) struct Sides<'a> {
    sides: &'a [Side],
    candidates: Vec<Candidate<'a>>,
    server: &'a Server,
}

impl<'a> Sides<'a> {
    /// All of them ready to be measured, and doing what they are measured for.
    pub(super) fn meet(sides: &'a [Side], server: &'a Server) -> Result<Sides<'a>, String> {
        let marked = sides.iter().zip('a'..);
        let candidates: Result<Vec<_>, _> = marked.map(|(side, mark)| side.candidate(server, mark)).collect();
        let mut candidates = candidates?;
        // A table of keys that has grown is moved step by step, by whoever asks: not by who is measured.
        for candidate in &mut candidates {
            candidate.ask(u64::from(MANY))?;
        }
        Ok(Sides { sides, candidates, server })
    }

    /// Measures with so many requests in flight on each connection, and prints.
    pub(super) fn measure(&mut self, title: &str, depth: usize) -> Result<Measured, String> {
        let table = Table::measure_rounds(&mut self.candidates, Turn::Closed(depth, TURN), ROUNDS)?;
        for (side, candidate) in self.sides.iter().zip(&mut self.candidates) {
            side.judge(candidate, self.server)?;
        }
        let measured = Measured(table);
        measured.print(&format!("{title}, pipeline {depth}, {CONNECTIONS} connections"), self.sides);
        Ok(measured)
    }
}

/// What was measured.
pub(super) struct Measured(Table);

impl Measured {
    /// CPU time of one side divided by that of another, in the middle of the rounds.
    pub(super) fn ratio(&self, name: &str, base: &str) -> f64 {
        self.0.ratio(name, base, |sample| sample.cpu)
    }

    fn print(&self, title: &str, sides: &[Side]) {
        println!("{title}");
        println!(
            "{:<46} {:>7} {:>7} {:>13} {:>10} {:>5} {:>7}",
            "", "CPU \u{b5}s", "\u{f7} base", "spread", "replies/s", "busy", "load \u{b5}s"
        );
        for side in sides {
            let of = |of: fn(&Sample) -> f64| self.0.middle(side.name, of);
            let (cpu, load) = (of(|sample| sample.cpu), of(|sample| sample.load));
            let (rate, busy) = (of(|sample| sample.rate), of(|sample| sample.busy * 100.0));
            let ratio = self.ratio(side.name, side.base);
            let (least, most) = self.0.spread(side.name, side.base, |sample| sample.cpu);
            let spread = format!("{least:.2} to {most:.2}");
            println!(
                "{:<46} {cpu:>7.2} {ratio:>7.3} {spread:>13} {rate:>10.0} {busy:>4.0}% {load:>7.2}",
                side.name
            );
        }
        println!();
    }
}
