//! Several limits of one subject in one request, all or none.

use harness::Goal;
use testbed::Flavour;

use super::sides::{Side, Sides, Verdict, Who};
use super::{PEER, PIPELINES};
use crate::server::host::Server;

/// The goal for five limits divided by one, of each pipeline.
const GOALS: [(&str, f64); 3] = [
    ("redis/five limits, pipeline 1", 2.5),
    ("redis/five limits, pipeline 16", 3.0),
    ("redis/five limits, pipeline 64", 3.0),
];
const ONE: &str = "one limit";
const FIVE: &str = "five limits";

const SIDES: [Side; 4] = [
    side(ONE, &["100/h burst 1000"]),
    side("three limits", &["100/h burst 1000", "200/h burst 2000", "300/h burst 3000"]),
    side(FIVE, FIVE_ALLOWED),
    Side { verdict: Verdict::Denied, ..side("five limits, the last denies", FIVE_DENIED) },
];
const FIVE_ALLOWED: &[&str] =
    &["100/h burst 1000", "200/h burst 2000", "300/h burst 3000", "400/h burst 4000", "500/h burst 5000"];
/// The fifth lets each key pass once, before anything is measured.
const FIVE_DENIED: &[&str] = &[
    "100/h burst 1000",
    "200/h burst 2000",
    "300/h burst 3000",
    "400/h burst 4000",
    "1/h queue 0 leaky-bucket",
];

/// Prints a table for each pipeline.
pub(super) fn run(&flavour: &Flavour) -> Result<Vec<Goal>, String> {
    let server = Server::redis(flavour)?;
    let mut sides = Sides::meet(&SIDES, &server)?;
    let mut goals = Vec::new();
    for (depth, (name, target)) in PIPELINES.into_iter().zip(GOALS) {
        eprintln!("redis several: pipeline {depth}");
        let measured = sides.measure("token buckets of one subject, 100,000 keys", depth)?;
        let ratio = measured.ratio(FIVE, ONE);
        println!("five limits \u{f7} one, pipeline {depth}: {ratio:.3}\n");
        goals.push(Goal::at_most(name, ratio, target, 2.5));
    }
    Ok(goals)
}

const fn side(name: &'static str, limits: &'static [&'static str]) -> Side {
    Side { name, base: ONE, who: Who::Ours, limits, ..PEER }
}
