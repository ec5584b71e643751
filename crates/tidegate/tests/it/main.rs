//! The library from outside: the conformance kit over the pure functions, and what a user sees.

mod laws;
mod oracle;

/// How many random traces to run per kind: the environment's word, or enough for every commit.
fn traces(usual: u64) -> u64 {
    std::env::var("TIDEGATE_TRACES").ok().and_then(|traces| traces.parse().ok()).unwrap_or(usual)
}
