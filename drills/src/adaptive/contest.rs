//! Each algorithm against the best fixed limit of each phase, on the same arrivals and the same work.

use std::thread;
use std::time::Duration;

use tidegate::{AdaptiveLimit, ConcurrencyLimiter, ConcurrencyLimiterBuilder};

use super::counted::{Best, strict};
use super::simulation::{MILLISECOND, Phase, Run, SECOND, Simulation, World};

pub(super) const ALGORITHMS: [&str; 3] = ["aimd", "vegas", "gradient2"];

/// Fixed limits that are tried: around 8 workers and around 40, and far above.
const FIXED: [u64; 12] = [6, 8, 10, 12, 16, 24, 36, 44, 52, 64, 100, 160];

const FULL: Phase = Phase { workers: 40, slowness: 1 };
const FEWER: Phase = Phase { workers: 8, slowness: 1 };
const SLOWER: Phase = Phase { workers: 40, slowness: 5 };
/// What 40 workers do in a second, as found by trying.
const CAPACITY: u64 = 2260;

/// A world and what is special about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) world: World,
}

pub(super) const SCENARIOS: [Scenario; 3] = [
    Scenario { name: "130 % load, a fifth of the workers", world: world(130, FEWER, 100) },
    Scenario { name: "80 % load, a fifth of the workers", world: world(80, FEWER, 100) },
    // A service that takes 90 ms for one call cannot meet 100 ms under load.
    Scenario { name: "130 % load, five times slower", world: world(130, SLOWER, 250) },
];

const fn world(load_percent: u64, low: Phase, deadline: u64) -> World {
    World {
        offered: CAPACITY * load_percent / 100,
        phases: [FULL, low, FULL],
        phase_length: 30 * SECOND,
        deadline: deadline * MILLISECOND,
    }
}

/// How an algorithm is set up; AIMD needs a threshold for slow calls.
pub(super) fn adapt(algorithm: &str, deadline: Duration) -> AdaptiveLimit {
    match algorithm {
        "aimd" => AdaptiveLimit::aimd(1..=1000).slow_after(deadline / 2),
        "vegas" => AdaptiveLimit::vegas(1..=1000),
        _ => AdaptiveLimit::gradient2(1..=1000),
    }
}

/// The runs of one seed.
pub(super) struct Contest {
    pub(super) seed: u64,
    pub(super) best: [Best; 3],
    /// In the order of [`ALGORITHMS`].
    pub(super) runs: Vec<Run>,
}

impl Scenario {
    pub(super) fn deadline(&self) -> Duration {
        Duration::from_nanos(self.world.deadline)
    }

    /// Runs everything once per seed, on as many threads as there are seeds.
    pub(super) fn contests(&self, seeds: &[u64]) -> Vec<Contest> {
        thread::scope(|scope| {
            let runs: Vec<_> = seeds.iter().map(|seed| scope.spawn(|| self.contest(*seed))).collect();
            runs.into_iter().filter_map(|run| run.join().ok()).collect()
        })
    }

    pub(super) fn contest(&self, seed: u64) -> Contest {
        let mut best = [Best::default(); 3];
        for limit in FIXED {
            let run = self.run(ConcurrencyLimiter::builder(limit), seed);
            for (best, phase) in best.iter_mut().zip(&run.phases) {
                *best = best.or(limit, phase.good);
            }
        }
        let adaptive =
            |name: &&str| self.run(ConcurrencyLimiter::adaptive_builder(adapt(name, self.deadline())), seed);
        Contest { seed, best: strict(best), runs: ALGORITHMS.iter().map(adaptive).collect() }
    }

    pub(super) fn run(&self, places: ConcurrencyLimiterBuilder, seed: u64) -> Run {
        Simulation::new(self.world, places, seed).run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptive::counted::{Bound, LEAST_PERCENT};

    fn holds_for_every_algorithm_seed_and_phase(scenario: &Scenario) {
        let contests = scenario.contests(&[1, 2, 3, 4, 5]);
        assert_eq!(contests.len(), 5);
        for Contest { seed, best, runs } in contests {
            for (algorithm, run) in ALGORITHMS.iter().zip(runs) {
                for (phase, counted) in run.phases.iter().enumerate() {
                    let percent = best[phase].percent(counted.good);
                    assert!(
                        percent >= LEAST_PERCENT,
                        "{algorithm} seed {seed} phase {phase}: {percent:.1} %"
                    );
                    let is_bounded = Bound::of(phase).holds(counted, scenario.deadline());
                    assert!(is_bounded, "{algorithm} seed {seed} phase {phase}: too late");
                }
            }
        }
    }

    #[test]
    fn under_overload_every_algorithm_is_near_the_best_fixed_limit_of_each_phase() {
        holds_for_every_algorithm_seed_and_phase(&SCENARIOS[0]);
    }

    #[test]
    fn below_capacity_every_algorithm_is_near_the_best_fixed_limit_of_each_phase() {
        holds_for_every_algorithm_seed_and_phase(&SCENARIOS[1]);
    }

    #[test]
    fn in_a_slower_service_every_algorithm_is_near_the_best_fixed_limit_of_each_phase() {
        holds_for_every_algorithm_seed_and_phase(&SCENARIOS[2]);
    }

    #[test]
    fn no_fixed_limit_is_good_in_all_phases() {
        let scenario = &SCENARIOS[0];
        let runs = FIXED.map(|limit| (limit, scenario.run(ConcurrencyLimiter::builder(limit), 1)));
        let best = [0, 1, 2].map(|phase| {
            runs.iter().fold(Best::default(), |best, (limit, run)| best.or(*limit, run.phases[phase].good))
        });
        for (limit, run) in &runs {
            let is_good = |phase: usize| {
                let counted = &run.phases[phase];
                best[phase].percent(counted.good) >= LEAST_PERCENT
                    && Bound::of(phase).holds(counted, scenario.deadline())
            };
            assert!(!(0..3).all(is_good), "{limit}");
        }
    }
}
