//! Bytes that a state takes in a server, for sizing.

use harness::Goal;
use testbed::Flavour;
use tidegate::{Ask, Key, PreparedLimit, Store as _};

use super::sides::{Keys, MANY, Question, Who, ask};
use super::store::open;
use crate::server::candidate::Candidate;
use crate::server::host::Server;

/// How often a key is asked about until its state is as large as it gets.
const FULL: usize = 100;

const LIMITS: [(&str, &str); 9] = [
    ("token-bucket", "100/h"),
    ("token-bucket, ticks left over", "7/h burst 100"),
    ("leaky-bucket", "100/h queue 100 delay-after all leaky-bucket"),
    ("fixed-window", "100/h fixed-window"),
    ("sliding-log", "100/h sliding-log"),
    ("sliding-window, 16 slots", "100/h sliding-window"),
    ("sliding-window, estimate", "100/h sliding-window mode estimate"),
    ("pacer", "1/h pacer"),
    ("concurrency", "100/h concurrency"),
];

/// Prints a table. There is no goal.
pub(super) fn run(&flavour: &Flavour) -> Result<Vec<Goal>, String> {
    println!(
        "bytes in {flavour} for a key like user:000000000; all: growth of its memory with {MANY} keys, per key"
    );
    println!("{:<32} {:>6} {:>12} {:>6} {:>14}", "", "name", "after 1 take", "all", "after 100");
    for (name, limit) in LIMITS {
        let server = Server::redis(flavour)?;
        let full = full(&server, limit)?;
        ask(&server, &["FLUSHALL"])?;
        let question = Question::new(Who::Ours, 'a', &[limit], &server)?;
        let mut candidate = Candidate::with_requests(name, &server, question.requests(Keys::Many), 1, false)?;
        let before = used(&server)?;
        candidate.ask(u64::from(MANY))?;
        let all = used(&server)?.saturating_sub(before) as f64 / f64::from(MANY);
        let (key, one) = one(&server)?;
        println!("{name:<32} {:>6} {one:>12} {all:>6.0} {full:>14}", key.len());
    }
    println!();
    Ok(Vec::new())
}

/// The size of one state after many takes.
fn full(server: &Server, limit: &str) -> Result<u64, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let (store, key) = (open(server, false)?, Key::new("user:000000000"));
    let limit = PreparedLimit::dynamic("login", limit.parse().map_err(|error| format!("{error}"))?);
    runtime.block_on(async {
        store.ready().await.map_err(|error| error.to_string())?;
        for _ in 0..FULL {
            let asks = [(limit.subject(&key), Ask::ONE)];
            store.take(&asks).await.map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(())
    })?;
    Ok(one(server)?.1)
}

/// The key of any state, and its size as the server tells it. The table of limits is no state.
fn one(server: &Server) -> Result<(String, u64), String> {
    let key = loop {
        let key = ask(server, &["RANDOMKEY"])?;
        if !key.starts_with("tg:limits:") {
            break key;
        }
    };
    let bytes = ask(server, &["MEMORY", "USAGE", &key, "SAMPLES", "0"])?;
    Ok((key.clone(), bytes.parse().map_err(|_| format!("no size of {key:?}: {bytes}"))?))
}

/// All the memory that the server uses for what it keeps.
fn used(server: &Server) -> Result<u64, String> {
    let text = ask(server, &["INFO", "memory"])?;
    let number = text.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok());
    number.ok_or_else(|| format!("no used_memory in {text}"))
}
