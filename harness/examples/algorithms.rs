//! The picture of docs/algorithms.md: the same traffic through every algorithm.
//!
//! `cargo run -p harness --example algorithms > docs/algorithms.svg`

use harness::plot::{Axis, Chart, Color, Mark, Panels, Reference, Series};
use tidegate::{Ask, Limit, State, Ticks, Timestamp, Verdict};

/// Ticks per second.
const SECOND: u64 = 16_000_000_000;
/// The end of the picture, in seconds.
const END: u64 = 9;

fn main() {
    print!("{}", picture());
}

/// A trickle, a burst, an overload, a pause, and two bursts around a whole second; in milliseconds.
fn traffic() -> Vec<u64> {
    let trickle = (0..5).map(|step| step * 200);
    let burst = (0..25).map(|step| 1300 + step);
    let overload = (0..75).map(|step| 2500 + step * 20);
    let before = (0..12).map(|step| 6940 + step * 4);
    let after = (0..12).map(|step| 7005 + step * 4);
    trickle.chain(burst).chain(overload).chain(before).chain(after).collect()
}

/// What a limit did with the traffic: instants in ticks.
#[derive(Default)]
struct Outcomes {
    passed: Vec<u64>,
    delayed: Vec<u64>,
    denied: Vec<u64>,
}

fn run(limit: Limit, max_wait: Ticks) -> Outcomes {
    let mut state = State::default();
    let mut outcomes = Outcomes::default();
    for millisecond in traffic() {
        let at = millisecond * (SECOND / 1000);
        // The epoch lies a minute back: everybody comes rested.
        let now = Timestamp::from_ticks(60 * SECOND + at);
        match limit.decide(&mut state, now, Ask::ONE.max_wait_in_ticks(max_wait)).verdict_in_ticks() {
            Verdict::Allowed { delay } if delay == Ticks::ZERO => outcomes.passed.push(at),
            Verdict::Allowed { delay } => outcomes.delayed.push(at + delay.get()),
            Verdict::Denied { .. } | Verdict::Impossible => outcomes.denied.push(at),
        }
    }
    outcomes
}

impl Outcomes {
    /// How many happened within the second before, as steps.
    fn per_second(&self) -> Vec<(u64, usize)> {
        let happened: Vec<u64> = self.passed.iter().chain(&self.delayed).copied().collect();
        let mut instants: Vec<u64> = happened.iter().flat_map(|at| [*at, at + SECOND]).collect();
        instants.extend([0, END * SECOND]);
        instants.sort_unstable();
        let within = |now: u64| happened.iter().filter(|at| **at <= now && **at + SECOND > now).count();
        instants.into_iter().filter(|at| *at <= END * SECOND).map(|at| (at, within(at))).collect()
    }
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / SECOND as f64
}

fn panel(name: &str, text: &str, max_wait: Ticks) -> Chart {
    let limit: Limit = text.parse().expect("the texts below are limits");
    let outcomes = run(limit, max_wait);
    let steps = outcomes.per_second();
    let most = steps.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let at = |instants: &[u64], height: f64| -> Vec<(f64, f64)> {
        instants.iter().map(|at| (seconds(*at), height)).collect()
    };
    Chart::new(name)
        .subtitle(text)
        .y(Axis::number("per second").range(0.0, 30.0))
        .series(
            Series::area(
                "within the last second",
                steps.into_iter().map(|(at, count)| (seconds(at), count as f64)),
            )
            .color(Color::Allowed),
        )
        .series(Series::marks("denied", Mark::Tick, at(&outcomes.denied, 27.5)).color(Color::Denied))
        .series(Series::marks("happens later", Mark::Ring, at(&outcomes.delayed, 23.5)).color(Color::Delayed))
        .reference(Reference::horizontal(10.0, "10"))
        .note(format!("{} passed at once", outcomes.passed.len()))
        .note(format!("{} later", outcomes.delayed.len()))
        .note(format!("{} denied", outcomes.denied.len()))
        .note(format!("most in a second: {most}"))
}

/// The whole picture.
fn picture() -> String {
    let (none, second) = (Ticks::ZERO, Ticks::saturating_from(tidegate::SECOND));
    Panels::new("The same traffic through every algorithm")
        .subtitle("129 asks: a trickle, a burst at 1.3 s, 50 a second from 2.5 s to 4 s, two bursts around 7 s")
        .description("One panel per algorithm: how many actions happened within the last second, which asks were denied and which happen later.")
        .x(Axis::seconds("time").range(0.0, END as f64))
        .panel(panel("token-bucket", "10/s", none))
        .panel(panel("leaky-bucket, asked with a max wait", "10/s queue 9 leaky-bucket", second))
        .panel(panel("fixed-window", "10/s fixed-window", none))
        .panel(panel("sliding-log", "10/s sliding-log", none))
        .panel(panel("sliding-window", "10/s sliding-window", none))
        .panel(panel("sliding-window, estimate", "10/s mode estimate sliding-window", none))
        .panel(panel("pacer, asked with a max wait", "10/s pacer", second))
        .panel(panel("concurrency, each busy for a second", "10/s concurrency", none))
        .render()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_picture_of_the_algorithms_is_the_one_that_this_program_draws() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/algorithms.svg");
        let committed = std::fs::read_to_string(file).expect("docs/algorithms.svg is there");
        assert!(
            committed == super::picture(),
            "draw it anew: cargo run -p harness --example algorithms > docs/algorithms.svg"
        );
    }
}
