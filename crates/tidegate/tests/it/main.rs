//! The library from outside: the conformance kit over the pure functions, and what a user sees.

mod asking_nothing;
mod batches;
mod changing;
mod documents;
mod extremes;
mod failing;
mod figures;
mod hammer;
mod key;
mod laws;
mod limit_text;
mod map;
mod models;
mod oracle;
mod permits;
mod places;
mod rates;
mod refunds;
mod several_limits;
mod sketch;
mod small_world;
mod traces;
mod versions;
mod waiting;
mod zone;

/// How many random traces to run per kind: the environment's word, or enough for every commit.
fn traces(usual: u64) -> u64 {
    std::env::var("TIDEGATE_TRACES").ok().and_then(|traces| traces.parse().ok()).unwrap_or(usual)
}

/// Whether only a few traces were asked for, as when hundreds of mutants are to be tried.
fn is_quick() -> bool {
    traces(20_000) < 1000
}

/// How many cases of a property to try.
fn cases(usual: u32) -> u32 {
    if is_quick() { 200 } else { usual }
}
