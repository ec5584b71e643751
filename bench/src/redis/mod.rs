//! What a decision costs a Redis or Valkey server, beside a plain script on the same server.
//!
//! A server is on one core; the load, or our own store, is on another. All that is compared is asked of one and the same
//! process, in turns, over connections of their own.
//! `redis SECTION...` measures only these, `--valkey` asks a Valkey instead.

mod served;
mod several;
mod sides;
mod size;
mod store;

use std::process::ExitCode;

use harness::{Goal, Section, Sections};
use testbed::Flavour;

use self::sides::{Keys, Side, Sides, Verdict, Who};
use crate::server::host::Server;

const SECTIONS: [Section<Flavour>; 6] = [
    ("one", "a token bucket beside a plain script", one),
    ("algorithms", "the other algorithms", algorithms),
    ("several", "one, three and five limits in one request", several::run),
    ("store", "our store, with denials that it remembers and without", store::run),
    ("served", "our server with its limits in the Redis", served::run),
    ("size", "bytes that a key takes", size::run),
];

/// Runs the bench.
pub(crate) fn run(arguments: &[&str]) -> ExitCode {
    match Sections::read("redis", arguments, &SECTIONS, &["--valkey"]) {
        Ok(sections) => {
            let flavour = if sections.has("--valkey") { Flavour::Valkey } else { Flavour::Redis7 };
            println!("{}", legend(flavour));
            sections.run("redis", &SECTIONS, &flavour)
        }
        Err(usage) => {
            eprintln!("{usage}");
            ExitCode::from(2)
        }
    }
}

/// The meaning of the columns of the tables.
fn legend(flavour: Flavour) -> String {
    format!(
        "{flavour}, one process for all that is compared, on one core; the load on another\n\
         medians of {} interleaved rounds of {} ms\n\
         CPU \u{b5}s: microseconds of processors, user and system, of all threads of the server, per decision\n\
         \u{f7} base: divided by that of the base in the same round, median of the rounds; spread: smallest and largest\n\
         busy: CPU time of the server divided by time; far below 100% the load was waited for, or another process\n\
         load \u{b5}s: CPU time of the load per decision\n",
        sides::ROUNDS,
        sides::TURN.as_millis(),
    )
}

/// How many requests are in flight on each connection.
const PIPELINES: [usize; 3] = [1, 16, 64];
/// A client waits for the reply before the next request, as callers of a limiter do.
const ALONE: usize = 1;
/// Under it many keys are never denied here, and never at rest.
const ROOMY: &[&str] = &["100/h burst 1000"];
/// The same for a key that everybody asks about.
const ROOMY_HOT: &[&str] = &["1000/s burst 100000000"];
/// Under it no key is admitted twice.
const TIGHT: &[&str] = &["1/h"];

const BARE: &str = "TIME, GET, SET only: 100,000 keys";
const PLAIN: &str = "plain script: 100,000 keys, allowed";
const OURS: &str = "tidegate: 100,000 keys, allowed";
const PLAIN_DENIED: &str = "plain script: 100,000 keys, denied";
const PLAIN_HOT: &str = "plain script: one hot key, allowed";
const PLAIN_HOT_DENIED: &str = "plain script: one hot key, denied";

const MANY_ALLOWED: Side = Side {
    name: PLAIN,
    base: PLAIN,
    who: Who::Plain,
    limits: ROOMY,
    keys: Keys::Many,
    verdict: Verdict::Allowed,
};
const MANY_DENIED: Side =
    Side { name: PLAIN_DENIED, base: PLAIN_DENIED, limits: TIGHT, verdict: Verdict::Denied, ..MANY_ALLOWED };
const HOT_ALLOWED: Side =
    Side { name: PLAIN_HOT, base: PLAIN_HOT, limits: ROOMY_HOT, keys: Keys::Hot, ..MANY_ALLOWED };
const HOT_DENIED: Side =
    Side { name: PLAIN_HOT_DENIED, base: PLAIN_HOT_DENIED, keys: Keys::Hot, ..MANY_DENIED };

/// The peer, with whom others are compared.
const PEER: Side = MANY_ALLOWED;

const SIDES: [Side; 9] = [
    Side { name: BARE, who: Who::Bare, ..MANY_ALLOWED },
    MANY_ALLOWED,
    ours(OURS, MANY_ALLOWED),
    MANY_DENIED,
    ours("tidegate: 100,000 keys, denied", MANY_DENIED),
    HOT_ALLOWED,
    ours("tidegate: one hot key, allowed", HOT_ALLOWED),
    HOT_DENIED,
    ours("tidegate: one hot key, denied", HOT_DENIED),
];

/// One token bucket beside the least that a limiter can be, and beside three calls without a decision.
fn one(&flavour: &Flavour) -> Result<Vec<Goal>, String> {
    let server = Server::redis(flavour)?;
    let mut sides = Sides::meet(&SIDES, &server)?;
    let (mut worst, mut alone) = (f64::NAN, f64::NAN);
    for depth in PIPELINES {
        eprintln!("redis one: pipeline {depth}");
        let measured = sides.measure("one token bucket", depth)?;
        let bare = measured.ratio(OURS, BARE);
        println!("tidegate \u{f7} TIME, GET, SET only, pipeline {depth}: {bare:.3}\n");
        worst = measured.ratio(OURS, PLAIN).max(worst);
        if depth == ALONE {
            alone = bare;
        }
    }
    Ok(vec![
        Goal::at_most("redis/one, any pipeline", worst, 1.25, 1.1),
        Goal::at_most("redis/one beside TIME, GET, SET only, pipeline 1", alone, 1.25, 1.1),
    ])
}

/// Ours beside that.
const fn ours(name: &'static str, peer: Side) -> Side {
    Side { name, who: Who::Ours, ..peer }
}

const DEPTH: usize = 16;

/// A decision by each algorithm, for information: there is no goal.
fn algorithms(&flavour: &Flavour) -> Result<Vec<Goal>, String> {
    let server = Server::redis(flavour)?;
    let allowed = [
        PEER,
        passing("token-bucket", &["100/h burst 1000"]),
        passing("token-bucket, ticks left over", &["7/h burst 1000"]),
        passing("leaky-bucket", &["100/h queue 1000 delay-after all leaky-bucket"]),
        passing("fixed-window", &["1000/h fixed-window"]),
        passing("sliding-log", &["100/60s sliding-log"]),
        passing("sliding-window, 16 slots", &["1000/h sliding-window"]),
        passing("sliding-window, estimate", &["1000/h sliding-window mode estimate"]),
        passing("pacer", &["1000/s pacer"]),
        passing("pacer, warm-up", &["1000/s warm-up 10s pacer"]),
        passing("concurrency, leases end between takes", &["5/100ms concurrency"]),
    ];
    Sides::meet(&allowed, &server)?.measure("each algorithm, 100,000 keys, allowed", DEPTH)?;
    drop(server);
    let server = Server::redis(flavour)?;
    let denied = [
        PEER,
        denying("token-bucket", &["1/h"]),
        denying("leaky-bucket", &["1/h queue 0 leaky-bucket"]),
        denying("fixed-window", &["1/d fixed-window"]),
        denying("sliding-log", &["1/h sliding-log"]),
        denying("sliding-window, 16 slots", &["1/h sliding-window"]),
        denying("sliding-window, estimate", &["1/d sliding-window mode estimate"]),
        denying("pacer", &["1/h pacer"]),
        denying("concurrency", &["1/h concurrency"]),
    ];
    Sides::meet(&denied, &server)?.measure("each algorithm, 100,000 keys, denied", DEPTH)?;
    Ok(Vec::new())
}

fn passing(name: &'static str, limits: &'static [&'static str]) -> Side {
    Side { name, base: PLAIN, who: Who::Ours, limits, ..PEER }
}

fn denying(name: &'static str, limits: &'static [&'static str]) -> Side {
    Side { verdict: Verdict::Denied, ..passing(name, limits) }
}
