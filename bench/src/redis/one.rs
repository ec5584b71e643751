//! One token bucket beside the least that a limiter can be, and beside three calls without a decision.

use testbed::Flavour;

use super::question::{Keys, Who};
use super::side::{Side, Verdict};
use super::start;
use super::table::Sides;
use crate::goal::Goal;

/// How many requests are in flight on each connection.
pub(super) const PIPELINES: [usize; 3] = [1, 16, 64];
/// Whoever asks waits for the answer before the next question, as callers of a limiter do.
pub(super) const ALONE: usize = 1;
/// Under it many keys are never refused here, and never at rest.
pub(super) const ROOMY: &[&str] = &["100/h burst 1000"];
/// The same for a key that everybody asks about.
const ROOMY_HOT: &[&str] = &["1000/s burst 100000000"];
/// Under it nobody passes twice.
pub(super) const TIGHT: &[&str] = &["1/h"];

const BARE: &str = "TIME, GET, SET only: 100,000 keys";
pub(super) const PLAIN: &str = "plain script: 100,000 keys, allowed";
const OURS: &str = "tidegate: 100,000 keys, allowed";
const PLAIN_REFUSED: &str = "plain script: 100,000 keys, refused";
const PLAIN_HOT: &str = "plain script: one hot key, allowed";
const PLAIN_HOT_REFUSED: &str = "plain script: one hot key, refused";

const MANY_ALLOWED: Side = Side {
    name: PLAIN,
    base: PLAIN,
    who: Who::Plain,
    limits: ROOMY,
    keys: Keys::Many,
    verdict: Verdict::Allowed,
};
const MANY_REFUSED: Side = Side {
    name: PLAIN_REFUSED,
    base: PLAIN_REFUSED,
    limits: TIGHT,
    verdict: Verdict::Refused,
    ..MANY_ALLOWED
};
const HOT_ALLOWED: Side =
    Side { name: PLAIN_HOT, base: PLAIN_HOT, limits: ROOMY_HOT, keys: Keys::Hot, ..MANY_ALLOWED };
const HOT_REFUSED: Side =
    Side { name: PLAIN_HOT_REFUSED, base: PLAIN_HOT_REFUSED, keys: Keys::Hot, ..MANY_REFUSED };

/// The peer, with whom others are compared.
pub(super) const PEER: Side = MANY_ALLOWED;

const SIDES: [Side; 9] = [
    Side { name: BARE, who: Who::Bare, ..MANY_ALLOWED },
    MANY_ALLOWED,
    ours(OURS, MANY_ALLOWED),
    MANY_REFUSED,
    ours("tidegate: 100,000 keys, refused", MANY_REFUSED),
    HOT_ALLOWED,
    ours("tidegate: one hot key, allowed", HOT_ALLOWED),
    HOT_REFUSED,
    ours("tidegate: one hot key, refused", HOT_REFUSED),
];

/// Prints a table for each pipeline.
pub(super) fn run(flavour: Flavour) -> Result<Vec<Goal>, String> {
    let server = start(flavour)?;
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
