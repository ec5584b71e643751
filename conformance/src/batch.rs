//! A batch is a sequence: random batches in lock-step with the same takes one by one.
//!
//! Two arms that start alike are asked the same. One decides several takes in one call, while its clock advances at
//! every reading; the other decides them one by one at one instant. Every answer has to be the same: for keys never
//! seen, for known ones, for keys that occur several times in a batch, and, if both arms are on twins of a small zone,
//! for keys that share a cell.

use tidegate::{Ask, Cost, PermitId, Ticks, Timestamp, Verdict};

use crate::arm::{Answer, Arm, Take};
use crate::promise::Promise;
use crate::random::Random;

/// Keys that come again and again.
const REGULARS: u64 = 5;
/// Of the keys that were seen, one of so many last ones comes again.
const REMEMBERED: u64 = 40;
/// The most takes in one call.
const MOST: u64 = 32;

/// In ticks.
const NANOSECOND: u64 = 16;

/// The operations of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    /// Takes that were compared.
    pub takes: u64,
    /// Those of keys that had never been seen.
    pub new: u64,
    /// Those of keys that had occurred in the same call before.
    pub repeated: u64,
    /// Those that were denied.
    pub denied: u64,
}

impl Compared {
    /// Adds another run's.
    pub fn add(&mut self, other: Compared) {
        self.takes += other.takes;
        self.new += other.new;
        self.repeated += other.repeated;
        self.denied += other.denied;
    }
}

/// Asks both arms so many random batches under a limit that both have taken up; an error names the first difference.
pub fn is_a_sequence(
    batched: &mut dyn Arm,
    single: &mut dyn Arm,
    promise: &Promise,
    (seed, batches): (u64, u64),
    tick: Ticks,
) -> Result<Compared, String> {
    let grain = batched.resolution().max(single.resolution()).get();
    let mut run = Run { random: Random::new(seed), grain, names: 0, wait: Ticks::ZERO, held: Vec::new() };
    let mut compared = Compared::default();
    let mut now = run.random.between(0, 1 << 40) / grain * grain;
    for _ in 0..batches {
        now += run.pause(promise);
        batched.set_time(Timestamp::from_ticks(now));
        single.set_time(Timestamp::from_ticks(now));
        run.release(batched, single)?;
        let asks = run.asks(promise, &mut compared);
        let takes: Vec<_> = asks.iter().map(|(key, ask)| Take { key, ask: *ask, name: None }).collect();
        if !batched.tick(tick) {
            return Err(format!("the clock of {} cannot advance at every reading", batched.name()));
        }
        let got = batched.take_each(&takes);
        batched.tick(Ticks::ZERO);
        for (place, (take, got)) in takes.iter().zip(&got).enumerate() {
            let expected = single.take(take.key, take.ask, None);
            if without_permit(got) != without_permit(&expected) {
                return Err(format!(
                    "{}: take {place} of {} at {now}t, {} of key {} under {}:\n  in a batch {got:?}\n  alone {expected:?}",
                    batched.name(),
                    takes.len(),
                    take.ask.cost.get(),
                    take.key,
                    promise.limit(),
                ));
            }
            run.note(take.key, (got, &expected), &mut compared);
        }
        if got.len() != takes.len() {
            return Err(format!("{} answered {} of {} takes", batched.name(), got.len(), takes.len()));
        }
    }
    Ok(compared)
}

struct Run {
    random: Random,
    /// All times are multiples of this.
    grain: u64,
    /// The number of keys seen so far.
    names: u64,
    /// The wait of a take that was denied.
    wait: Ticks,
    /// Permits of both arms.
    held: Vec<(String, [PermitId; 2])>,
}

impl Run {
    /// The time until the next batch: none, any, or until a take that was denied would pass.
    fn pause(&mut self, promise: &Promise) -> u64 {
        let pause = match self.random.between(0, 9) {
            0 => 0,
            1..=3 => self.wait.get().next_multiple_of(self.grain),
            _ => self.random.sized(0, 2 * promise.period()),
        };
        pause / self.grain * self.grain
    }

    fn asks(&mut self, promise: &Promise, compared: &mut Compared) -> Vec<(String, Ask)> {
        let mut asks: Vec<(String, Ask)> = Vec::new();
        for _ in 0..self.random.between(1, MOST) {
            let name = match self.random.between(0, 9) {
                0..4 => self.random.between(0, REGULARS.min(self.names)),
                4..7 => self.random.between(self.names.saturating_sub(REMEMBERED), self.names),
                _ => self.names,
            };
            compared.new += u64::from(name == self.names);
            self.names += u64::from(name == self.names);
            let key = format!("k{name}");
            compared.repeated += u64::from(asks.iter().any(|(other, _)| *other == key));
            let cost = self.random.sized(1, promise.most_at_once() + 1);
            let max_wait = if self.random.percent(20) { self.wait } else { Ticks::ZERO };
            // A limiter takes its max wait in nanoseconds.
            let max_wait = crate::ticks(max_wait.get().next_multiple_of(self.grain.max(NANOSECOND)));
            asks.push((key, Ask::new(Cost::of(cost)).max_wait_in_ticks(max_wait)));
        }
        asks
    }

    fn note(&mut self, key: &str, (got, expected): (&Answer, &Answer), compared: &mut Compared) {
        compared.takes += 1;
        match got.verdict {
            Verdict::Allowed { .. } => {}
            Verdict::Denied { retry_after } => {
                compared.denied += 1;
                self.wait = retry_after;
            }
            Verdict::Impossible => compared.denied += 1,
        }
        if let (Some(got), Some(expected)) = (got.permit, expected.permit) {
            self.held.push((key.to_owned(), [got, expected]));
        }
    }

    /// Gives some of the permits back, on both.
    fn release(&mut self, batched: &mut dyn Arm, single: &mut dyn Arm) -> Result<(), String> {
        while !self.held.is_empty() && self.random.percent(60) {
            let last = self.held.len() as u64 - 1;
            let (key, [one, other]) = self.held.swap_remove(self.random.between(0, last) as usize);
            let released = (batched.release(&key, one), single.release(&key, other));
            if released.0 != released.1 {
                return Err(format!("a permit of {key} was given back: {released:?}"));
            }
        }
        Ok(())
    }
}

/// Permits of different stores differ; that there is one does not.
fn without_permit(answer: &Answer) -> (Answer, bool) {
    (Answer { permit: None, ..*answer }, answer.permit.is_some())
}
