//! A server is killed again and again while clients use every algorithm in three zones of a store file.
//!
//! Four clients ask about a few hundred keys as fast as the server answers. Each key has a rule of its own algorithm, in
//! the first zone or in one of two named zones. After a random time the server is killed as by `kill -9`, and the next
//! one opens the same files. The drill counts what the clients were answered, and judges it by arithmetic of its own:
//!
//! - for every stretch of rounds, no key was admitted more than its limit allows in that time,
//! - no key that was denied is allowed before the end of the reported wait,
//! - every permit whose lease has not ended can be renewed and released, and no key has more of them than its limit.
//!
//! An answer that the kill cut off is counted as a denial, which only lowers the counts.

mod clients;
mod rules;

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use conformance::random::Random;
use harness::{Complaints, Folder, Options, Progress, Report, Server, Stopwatch, beside, pause, thousands};
use tidegate::{Clock as _, SystemClock};

use crate::Outcome;
use crate::stretches::{Judged, Round, fewest_and_most, span};
use clients::{Client, Ledger};
use rules::KEYS;

const ROUNDS: u64 = 100;
/// The milliseconds after which a server is killed.
const LIVES: (u64, u64) = (1, 300);
const CLIENTS: u64 = 4;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let scratch = Folder::new(report.name());
    let config = scratch.file("tidegate.toml");
    fs::write(&config, rules::config()).map_err(|error| error.to_string())?;
    let (mut random, clock) = (Random::new(options.seed), SystemClock::new());
    let count = options.scaled(ROUNDS);
    let progress = Progress::new(report.name(), count);
    let ledger = Ledger::new();
    let mut clients: Vec<_> = (0..CLIENTS).map(|number| Client::new(number, random.number())).collect();
    let (mut rounds, mut slowest) = (Vec::new(), Duration::ZERO);
    for number in 0..count {
        let life = Duration::from_millis(random.between(LIVES.0, LIVES.1));
        let start = clock.now();
        let stopwatch = Stopwatch::start();
        let mut command = Command::new(beside("tidegate", "tidegate-server")?);
        command.args(["serve", "--json", "--config"]).arg(&config);
        let mut server = Server::start(&mut command, Complaints::Read)?;
        slowest = slowest.max(stopwatch.elapsed());
        let address = server.address("resp")?;
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| -> Outcome {
            let (ledger, clock, is_over) = (&ledger, &clock, &is_over);
            for client in &mut clients {
                scope.spawn(move || client.work(address, ledger, clock, is_over));
            }
            pause(life);
            let stopped = server.process.kill().map_err(|error| error.to_string());
            is_over.store(true, Ordering::Relaxed);
            stopped
        })?;
        rounds.push(Round { counts: ledger.take_counts(), start, end: clock.now() });
        progress.at(number + 1, format!("{} answers", ledger.answers()));
    }
    say(&rounds, (&ledger, &clients), slowest, report);
    Ok(())
}

fn say(rounds: &[Round], (ledger, clients): (&Ledger, &[Client]), slowest: Duration, report: &mut Report) {
    let span = span(rounds);
    report.fact(format!(
        "{} rounds in {:.1} s; the slowest start until ready took {} ms; {} answers, {} denied",
        rounds.len(),
        span.as_secs_f64(),
        slowest.as_millis(),
        thousands(ledger.answers()),
        thousands(ledger.denials()),
    ));
    for (index, rule) in rules::all().iter().enumerate() {
        let (least, most) = fewest_and_most(rounds, index * KEYS..(index + 1) * KEYS);
        let zone = rule.zone.unwrap_or("the first zone");
        let bound = if rule.gives_permits() {
            String::new()
        } else {
            format!(", its bound for the whole run is {}", rule.worst_case(span))
        };
        report.fact(format!("{} in {zone}: each key between {least} and {most} times{bound}", rule.limit));
    }
    let all = rules::all();
    let name = |key: usize| {
        let rule = &all[key / KEYS];
        format!("key {} at {} in {}", key % KEYS, rule.limit, rule.zone.unwrap_or("the first zone"))
    };
    Judged::of(rounds, name, |key, span| all[key / KEYS].worst_case(span)).claim(report);
    let freed = ledger.freed();
    report.claim(
        freed.is_empty(),
        "no denied key is freed before its wait is over",
        match freed.first() {
            None => format!("{} denials", thousands(ledger.denials())),
            Some(first) => format!("{} are, the first: {first}", freed.len()),
        },
    );
    let sum = |count: fn(&Client) -> u64| clients.iter().map(count).sum::<u64>();
    let (granted, checked, unsure) =
        (sum(|client| client.granted), sum(|client| client.checked), sum(|client| client.unsure));
    let lost: Vec<_> = clients.iter().flat_map(|client| &client.lost).collect();
    report.fact(format!(
        "{} permits, {} of them after which the answer to their release was cut off",
        thousands(granted),
        thousands(unsure)
    ));
    report.claim(
        lost.is_empty() && checked > 0,
        "no lease is lost, and no key holds more permits than its limit",
        match lost.first() {
            None => format!("{} renewals and releases", thousands(checked)),
            Some(first) => format!("{} are, the first: {first}", lost.len()),
        },
    );
}
