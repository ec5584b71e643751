//! A whole answer beside limitador's: the same rules, the same request, in turn.
//!
//! limitador is a library with many dependencies of its own, which nothing else here needs. So it is in a program that
//! is built when it is compared, does a number of requests on command, and reports what they took.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tidegate::Zone;
use tidegate_rules::{Attributes, Gate};

use super::admit::passes;
use super::sets::{SETS, Set};
use super::table::{Candidate, Table};
use crate::building::{build, cargo, target_folder};
use harness::Goal;

/// The set that both are asked about: a tenant for each rule.
const TENANTS: &str = "tenants";
/// Rules, and how many requests a round of each has.
const COUNTS: [(u32, u64, u64); 2] = [(10, 5_000, 1_000), (1000, 5_000, 20)];

/// Prints a table. There is no goal.
pub(super) fn run() -> Vec<Goal> {
    let program = build_peer().map_err(|problem| eprintln!("rules: limitador is left out: {problem}")).ok();
    let set = SETS.iter().find(|set| set.name == TENANTS).expect("it is there");
    let ours: Vec<_> = COUNTS.iter().map(|(count, ..)| Ours::new(set, *count)).collect();
    let mut peers: Vec<_> =
        COUNTS.iter().filter_map(|(count, ..)| Peer::start(program.as_ref()?, *count)).collect();
    let mut candidates: Vec<_> =
        COUNTS.iter().zip(&ours).map(|(count, ours)| ours.candidate(*count)).collect();
    let of_peers = COUNTS.iter().zip(&mut peers);
    candidates.extend(of_peers.map(|(count, peer)| peer.candidate(*count)));
    let has_peers = candidates.len() == 2 * COUNTS.len();
    let table = Table::measure(candidates);
    table.print(
        "a tenant for each rule, two rules apply and allow, on stores in memory",
        "making what is known of the request; keys that are not in the cache.\n  limitador counts fixed windows, ours \
         are token buckets",
    );
    for (row, (count, ..)) in COUNTS.iter().enumerate().filter(|_| has_peers) {
        println!("limitador \u{f7} tidegate, {count} rules: {:.1}", table.ratio(COUNTS.len() + row, row));
    }
    println!();
    Vec::new()
}

struct Ours {
    gate: Gate,
    request: Attributes<'static>,
}

impl Ours {
    fn new(set: &Set, count: u32) -> Ours {
        Ours {
            gate: Gate::new(set.policy(count), Zone::new(1 << 20)).expect("the store supports the policy"),
            request: set.request(1, count),
        }
    }

    fn candidate(&self, (count, times, _): (u32, u64, u64)) -> Candidate<'_> {
        let name = format!("tidegate Gate, {count} rules");
        Candidate::new(name, times, 1, || u64::from(passes(&self.gate, &self.request)))
    }
}

/// limitador in a process of its own, which ends when its input does.
struct Peer {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// None, and a complaint, if it does not start.
    fn start(program: &PathBuf, rules: u32) -> Option<Peer> {
        let mut command = Command::new(program);
        let child = command.arg(rules.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| eprintln!("rules: limitador does not start: {error}")).ok()?;
        let (orders, answers) = (child.stdin.take(), BufReader::new(child.stdout.take()?));
        Some(Peer { child, orders, answers })
    }

    fn candidate(&mut self, (count, _, times): (u32, u64, u64)) -> Candidate<'_> {
        Candidate::remote(format!("limitador RateLimiter, {count} limits"), move || {
            self.turn(times).unwrap_or(f64::NAN)
        })
    }

    /// Nanoseconds of CPU for each of so many requests; none if it does not answer.
    fn turn(&mut self, times: u64) -> Option<f64> {
        writeln!(self.orders.as_mut()?, "{times}").ok()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).ok()?;
        let nanoseconds: f64 = answer.trim().parse().ok()?;
        Some(nanoseconds / times as f64)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

fn build_peer() -> Result<PathBuf, String> {
    let target = target_folder()?;
    let mut cargo = cargo(&target);
    cargo.args(["build", "--release", "--locked", "--manifest-path", "bench/peers/limitador/Cargo.toml"]);
    build("limitador", &mut cargo)?;
    Ok(target.join("release/limitador-peer"))
}
