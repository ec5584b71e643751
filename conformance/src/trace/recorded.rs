//! The traces in the folder `traces`, played on any arm.

use std::fs::{self, DirEntry};

use tidegate::Ticks;

use super::{Action, Batches, Trace, parse, play, play_in_batches};
use crate::arm::Arm;

/// Returns every recorded trace with the name of its file, in the order of the names.
///
/// # Panics
/// If one of them cannot be read.
pub fn recorded() -> Vec<(String, Trace)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/traces");
    let files = fs::read_dir(folder).expect("the traces are there").flatten();
    let read = |file: DirEntry| {
        let name = file.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(file.path()).expect("a trace is text");
        let trace = parse(&text).unwrap_or_else(|what| panic!("{name}, {what}"));
        (name, trace)
    };
    let mut traces: Vec<_> = files.map(read).collect();
    traces.sort_by(|one, other| one.0.cmp(&other.0));
    traces
}

/// Plays every recorded trace without these actions on an arm, up to the first need that it cannot meet. Returns the
/// number of steps.
///
/// # Panics
/// If an answer is not the written one, or a trace ends before such a need.
pub fn play_recorded(arm: &mut dyn Arm, without: &[&str], cannot: &[&str]) -> usize {
    let batches = |trace: &Trace, arm: &mut dyn Arm| {
        play(trace, arm).map(|steps| Batches { steps, ..Batches::default() })
    };
    let played = all(arm, without, cannot, batches).steps;
    println!("traces: {played} steps on {}", arm.name());
    played
}

/// Plays them with the takes of one instant in one call, while the clock advances by `tick` at every reading.
///
/// # Panics
/// As [`play_recorded`].
pub fn play_recorded_in_batches(
    arm: &mut dyn Arm,
    without: &[&str],
    cannot: &[&str],
    tick: Ticks,
) -> Batches {
    let played = all(arm, without, cannot, |trace, arm| play_in_batches(trace, arm, tick));
    println!("traces in batches: {played:?} on {}, {tick:?} at every reading", arm.name());
    played
}

fn all(
    arm: &mut dyn Arm,
    without: &[&str],
    cannot: &[&str],
    play: impl Fn(&Trace, &mut dyn Arm) -> Result<Batches, String>,
) -> Batches {
    let (mut wrong, mut all) = (Vec::new(), Batches::default());
    for (name, trace) in recorded() {
        let trace = trace.without(without);
        match play(&trace, arm) {
            Ok(played) => {
                assert_eq!(played.steps, steps_before(&trace, cannot), "{name} on {}", arm.name());
                all.steps += played.steps;
                all.calls += played.calls;
                all.largest = all.largest.max(played.largest);
            }
            Err(what) => wrong.push(format!("{name}, {what}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    all
}

/// Returns the number of steps before the first need that cannot be met.
fn steps_before(trace: &Trace, cannot: &[&str]) -> usize {
    let ends = |action: &Action| matches!(action, Action::Needs(need) if cannot.contains(&need.as_str()));
    trace.steps.iter().position(|step| ends(&step.action)).unwrap_or(trace.steps.len())
}
