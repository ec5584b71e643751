//! Places that adapt, before a service whose capacity falls to a fifth and comes back.
//!
//! First a simulated service, on which the algorithms' constants were chosen: five seeds, three scenarios. Then a real
//! HTTP server with other numbers, which was not looked at when choosing them. What is judged:
//!
//! - **Goodput.** Answers within the deadline, in each phase with the change at its beginning: at least 85 % of what the
//!   best fixed limit for that phase gives on the same arrivals and the same work; in the last phase, also of what it
//!   gives in the first.
//! - **Latency**, from letting in to the end of the work, also where the caller has given up. While capacity stands or
//!   rises half of the calls take at most 0.6 deadlines, 99 % at most 1.5, and 3 % are too late. In the phase of
//!   the drop: 0.7, 6 and 10 %, because what was let in before is worked off by a fifth of the workers.

mod contest;
mod counted;
mod picture;
mod real;
mod simulation;

use std::time::Duration;

use crate::Outcome;
use contest::{ALGORITHMS, Contest, SCENARIOS, Scenario};
use counted::{Entry, HEADING};
use harness::{Options, Report};

const SEEDS: u64 = 5;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let seeds: Vec<_> = (0..SEEDS).map(|number| options.seed.wrapping_add(number)).collect();
    for scenario in &SCENARIOS {
        report.fact(format!("simulated: {}", scenario.name));
        report.fact(HEADING);
        for contest in scenario.contests(&seeds) {
            judge(scenario, &contest, report);
        }
    }
    if options.plot {
        let contest = SCENARIOS[0].contest(seeds[0]);
        picture::draw(&SCENARIOS[0], &contest)?;
    }
    real::run(options, report)
}

fn judge(scenario: &Scenario, contest: &Contest, report: &mut Report) {
    for (algorithm, run) in ALGORITHMS.iter().zip(&contest.runs) {
        let entry = Entry {
            algorithm,
            seed: contest.seed,
            best: &contest.best,
            phases: &run.phases,
            deadline: scenario.deadline(),
            phase_length: Duration::from_nanos(scenario.world.phase_length),
        };
        entry.lines(report);
        entry.claims(scenario.name, report);
    }
}
