//! A simulation in which the test controls a counter and the system's clock, and checks the times read from them.

use super::*;

const MICROSECOND: u64 = 16_000;
const MILLISECOND: u64 = 1000 * MICROSECOND;
const GIGAHERTZ: u64 = 1_000_000_000;

/// Two clocks that advance with real time, in ticks, and the last time read from them.
struct World {
    counter: u64,
    system: u64,
    /// Counts per second.
    frequency: u64,
    /// The remainder of a count, as a part of a tick's.
    rest: u128,
    calibration: Calibration,
    shown: u64,
}

impl World {
    fn new(frequency: u64) -> World {
        let (counter, system) = (123_456_789, 77);
        let calibration = Calibration::new(Pair { counter, time: Timestamp::from_ticks(system) });
        World { counter, system, frequency, rest: 0, calibration, shown: 0 }
    }

    /// Returns a world with a line.
    fn with_line(frequency: u64) -> World {
        let mut world = World::new(frequency);
        world.run(100 * MILLISECOND, MILLISECOND);
        world.assert_within(16);
        world
    }

    fn pass(&mut self, ticks: u64) {
        let counts = u128::from(self.frequency) * u128::from(ticks) + self.rest;
        self.rest = counts % u128::from(PER_SECOND);
        self.counter = self.counter.wrapping_add((counts / u128::from(PER_SECOND)) as u64);
        self.system = self.system.saturating_add(ticks);
    }

    /// Reads the time now, in the order of `CalibratedClock`, and asserts that it is never less than before.
    fn tell(&mut self) -> u64 {
        let time = Timestamp::from_ticks(self.system);
        let shown = (self.calibration.line().at(self.counter))
            .or_else(|| self.calibration.while_measuring(time))
            .unwrap_or_else(|| self.calibration.anchor(Pair { counter: self.counter, time }))
            .ticks();
        assert!(shown >= self.shown, "back by {} ticks", self.shown - shown);
        self.shown = shown;
        shown
    }

    /// Reads the time at every `step` for so long.
    fn run(&mut self, ticks: u64, step: u64) {
        for _ in 0..ticks / step {
            self.pass(step);
            self.tell();
        }
    }

    fn run_to_next_line(&mut self) {
        let line = self.calibration.line();
        let is_next = (0..100).any(|_| {
            self.run(MILLISECOND, MILLISECOND);
            self.calibration.line() != line
        });
        assert!(is_next);
    }

    fn has_line(&self) -> bool {
        self.calibration.line() != ClockSegment::NONE
    }

    fn error(&self) -> u64 {
        self.shown.abs_diff(self.system)
    }

    fn assert_within(&self, ticks: u64) {
        assert!(self.error() <= ticks, "reads {}, but it is {}", self.shown, self.system);
    }
}

#[test]
fn the_system_clock_is_read_for_ten_milliseconds_and_then_a_line() {
    let mut world = World::new(3 * GIGAHERTZ);
    world.tell();
    world.run(10 * MILLISECOND - 1, 1_599_999);
    world.assert_within(0);
    assert!(!world.has_line());
    world.pass(10 * MILLISECOND - (world.system - 77) - 1);
    world.tell();
    assert!(!world.has_line());
    world.pass(1);
    world.tell();
    world.assert_within(0);
    assert!(world.has_line());
}

#[test]
fn lines_are_exact_over_hours_at_any_frequency() {
    let spans = if cfg!(miri) { 20 } else { 50_000 };
    for frequency in [1_000_000, 24_000_000, 999_999_937, 2_600_000_001, 6 * GIGAHERTZ] {
        let count = PER_SECOND / frequency;
        let mut world = World::new(frequency);
        for _ in 0..spans {
            world.run(273 * MILLISECOND, 13 * MILLISECOND);
            world.assert_within(count + 16);
        }
        assert!(world.has_line());
    }
}

#[test]
fn a_counter_that_becomes_faster_or_slower_is_followed() {
    for frequency in [999_000_000, 1_001_000_000] {
        let mut world = World::with_line(GIGAHERTZ);
        world.frequency = frequency;
        for _ in 0..1000 {
            world.run(MILLISECOND, MILLISECOND);
            world.assert_within(51 * MICROSECOND);
            assert!(world.has_line());
        }
    }
}

#[test]
fn after_a_pause_even_a_small_drift_is_measured_anew() {
    for (pause, holds) in [(440 * MILLISECOND, true), (510 * MILLISECOND, false)] {
        let mut world = World::with_line(GIGAHERTZ);
        world.frequency = 999_000_000;
        world.pass(pause);
        world.tell();
        world.assert_within(0);
        assert_eq!(world.has_line(), holds);
        world.run(100 * MILLISECOND, MILLISECOND);
        assert!(world.has_line());
    }
}

#[test]
fn a_line_may_miss_by_one_in_a_hundred_and_not_a_tick_more() {
    for (missed, holds) in [(MISSED, true), (MISSED + 1, false)] {
        for late in [true, false] {
            let mut world = World::with_line(GIGAHERTZ);
            world.run_to_next_line();
            world.pass(SPAN);
            world.system = if late { world.system + missed } else { world.system - missed };
            world.tell();
            assert_eq!(world.has_line(), holds, "{missed} {late}");
        }
    }
}

#[test]
fn a_pause_of_hours_changes_nothing() {
    let mut world = World::with_line(2_600_000_000);
    world.pass(5 * 3600 * PER_SECOND);
    world.tell();
    world.assert_within(0);
    assert!(world.has_line());
}

#[test]
fn a_jump_of_the_system_forwards_is_taken_when_the_line_ends() {
    for jump in [MILLISECOND, PER_SECOND, u64::MAX / 2] {
        let mut world = World::with_line(GIGAHERTZ);
        world.system += jump;
        world.run(51 * MILLISECOND, MILLISECOND);
        world.assert_within(0);
        world.run(100 * MILLISECOND, MILLISECOND);
        world.assert_within(16);
        assert!(world.has_line());
    }
}

#[test]
fn a_counter_that_jumps_off_its_line_is_noticed_at_once() {
    for counter in [0, 150_000_000, 300_000_000, u64::MAX / 2, u64::MAX] {
        let mut world = World::with_line(GIGAHERTZ);
        world.counter = counter;
        world.tell();
        world.assert_within(50 * MILLISECOND);
        assert!(!world.has_line());
        world.run(200 * MILLISECOND, MILLISECOND);
        world.assert_within(16);
        assert!(world.has_line());
    }
}

#[test]
fn a_counter_that_goes_through_its_end_is_measured_anew() {
    let mut world = World::with_line(GIGAHERTZ);
    world.counter = u64::MAX - GIGAHERTZ;
    world.run(2 * PER_SECOND, MILLISECOND);
    world.assert_within(16);
    assert!(world.has_line());
}

#[test]
fn a_line_that_was_ahead_falls_in_again_with_the_next() {
    let mut world = World::with_line(GIGAHERTZ);
    world.run(100 * PER_SECOND, 40 * MILLISECOND);
    world.run_to_next_line();
    world.counter += 400_000;
    world.run(49 * MILLISECOND, MILLISECOND);
    world.assert_within(400 * MICROSECOND + 16);
    assert!(world.error() > 399 * MICROSECOND);
    world.run(50 * MILLISECOND, MILLISECOND);
    world.assert_within(10 * MICROSECOND);
    world.run(50 * MILLISECOND, MILLISECOND);
    world.assert_within(MICROSECOND);
    assert!(world.has_line());
}

#[test]
fn a_jump_while_measuring_lays_no_line_of_hours() {
    let mut world = World::new(GIGAHERTZ);
    world.run(5 * MILLISECOND, MILLISECOND);
    world.counter += 3600 * GIGAHERTZ;
    world.run(10 * MILLISECOND, MILLISECOND);
    assert!(!world.has_line());
    world.assert_within(0);
    world.run(100 * MILLISECOND, MILLISECOND);
    world.assert_within(16);
    assert!(world.has_line());
}

#[test]
fn a_counter_that_stands_still_tells_nothing() {
    let mut world = World::new(0);
    for _ in 0..100 {
        world.run(MILLISECOND, MILLISECOND);
        world.assert_within(0);
    }
    assert!(!world.has_line());
}

#[test]
fn the_end_of_time_is_returned_for_ever() {
    let mut world = World::with_line(GIGAHERTZ);
    world.system = u64::MAX - 100 * MILLISECOND;
    world.run(500 * MILLISECOND, MILLISECOND);
    assert_eq!(world.shown, u64::MAX);
}

/// A pseudo-random number generator, deterministic for a seed.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn time_never_goes_back_whatever_happens_and_comes_right_afterwards() {
    let (seeds, events) = if cfg!(miri) { (3, 50) } else { (300, 2000) };
    for seed in 1..=seeds {
        println!("seed {seed}");
        let mut random = Xorshift(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let mut world = World::new(1_000_000 + random.below(6 * GIGAHERTZ));
        for _ in 0..events {
            happen(&mut world, &mut random);
            world.tell();
        }
        world.run(1000 * MILLISECOND, MILLISECOND);
        world.assert_within(60 * MICROSECOND);
    }
}

/// Applies a random event to the clocks; most often, time passes.
fn happen(world: &mut World, random: &mut Xorshift) {
    match random.below(100) {
        0 => world.system += random.below(PER_SECOND),
        1 => world.counter += random.below(world.frequency / 5),
        2..4 => {
            let counter = random.below(world.counter + 1);
            // A step back to a value that the line covers is undetectable.
            if world.calibration.line().at(counter).is_none() {
                world.counter = counter;
            }
        }
        4 => world.frequency = world.frequency / 1000 * (999 + random.below(3)),
        5..10 => world.pass(random.below(PER_SECOND)),
        10..50 => world.pass(random.below(10 * MILLISECOND)),
        _ => world.pass(random.below(MICROSECOND)),
    }
}
