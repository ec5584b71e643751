//! Several limits of one subject in one request, all or none.

use harness::Goal;
use testbed::Flavour;

use super::sides::{Side, Sides, Verdict, Who};
use super::{ALONE, PEER, PIPELINES};
use crate::server::host::Server;

const ONE: &str = "one limit";
const FIVE: &str = "five limits";

const SIDES: [Side; 4] = [
    side(ONE, &["100/h burst 1000"]),
    side("three limits", &["100/h burst 1000", "200/h burst 2000", "300/h burst 3000"]),
    side(FIVE, FIVE_ALLOWED),
    Side { verdict: Verdict::Refused, ..side("five limits, the last refuses", FIVE_REFUSED) },
];
const FIVE_ALLOWED: &[&str] =
    &["100/h burst 1000", "200/h burst 2000", "300/h burst 3000", "400/h burst 4000", "500/h burst 5000"];
/// The fifth lets each key pass once, before anything is measured.
const FIVE_REFUSED: &[&str] = &[
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
    let mut alone = f64::NAN;
    for depth in PIPELINES {
        eprintln!("redis several: pipeline {depth}");
        let measured = sides.measure("token buckets of one subject, 100,000 keys", depth)?;
        let ratio = measured.ratio(FIVE, ONE);
        println!("five limits \u{f7} one, pipeline {depth}: {ratio:.3}\n");
        if depth == ALONE {
            alone = ratio;
        }
    }
    // The deeper the pipeline, the less is left of a request but its keys, of which five limits have five.
    Ok(vec![Goal::at_most("redis/five limits, pipeline 1", alone, 2.5, 2.0)])
}

const fn side(name: &'static str, limits: &'static [&'static str]) -> Side {
    Side { name, base: ONE, who: Who::Ours, limits, ..PEER }
}
