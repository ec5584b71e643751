//! A clock that jumps an hour forwards or back at any moment, and stands still for a while.

use std::sync::Arc;

use conformance::random::Random;
use conformance::ticks;
use tidegate::{Clock, HOUR, Limiter, ManualClock, Ticks, Timestamp, Verdict, Zone};

use super::judge::Judged;
use super::limits::ALL;
use super::member::{Member, Moment};

/// Where a clock begins, so that it never reaches zero.
const BEGIN: u32 = 10_000;
/// Most advances of the clock are shorter by far.
const LONGEST_ADVANCE: u64 = 1 << 37;
/// A clock may count in nanoseconds, milliseconds or seconds, of which a state may not take advantage.
const GRAINS: [u64; 3] = [16, 16_000_000, 16_000_000_000];

/// A zone, its clock and its subjects.
struct World {
    clock: Arc<ManualClock>,
    passed: Timestamp,
    members: Vec<Member>,
    random: Random,
    /// What most advances are a multiple of, in ticks.
    grain: u64,
    /// Steps for which the clock stands still.
    still: u64,
}

/// One round: so many steps of a new zone of this size.
pub(super) fn round(seed: u64, size: usize, steps: u64, judged: &mut Judged) {
    let mut random = Random::new(seed);
    let clock = Arc::new(ManualClock::new());
    clock.advance(HOUR * BEGIN);
    let zone = Zone::with_clock(size, clock.clone());
    let few = random.between(1, ALL.len() as u64) as usize;
    let first = random.between(0, (ALL.len() - few) as u64) as usize;
    let limits = &ALL[first..first + few];
    let limiters = limits.iter().map(|terms| Limiter::on(&zone, &terms.limit().to_string(), terms.limit()));
    let limiters: Vec<_> = limiters.collect();
    let count = random.between(10, super::most_subjects(size));
    let member = |key: u64| {
        let which = random.between(0, few as u64 - 1) as usize;
        Member::new(limits[which], &limiters[which], key)
    };
    let members = (0..count).map(member).collect();
    let grain = GRAINS[(seed % 3) as usize];
    let mut world = World { clock, passed: Timestamp::EPOCH, members, random, grain, still: 0 };
    (0..steps).for_each(|_| world.step(judged));
    let subjects = world.members.iter().filter(|member| member.was_admitted).count();
    judged.end_round(&zone.counts(), subjects as u64);
}

impl World {
    fn step(&mut self, judged: &mut Judged) {
        self.still = self.still.saturating_sub(1);
        match self.random.between(0, 99) {
            0..80 => self.ask(judged),
            80..97 => {
                let ticks = self.random.sized(0, LONGEST_ADVANCE);
                self.advance(conformance::ticks(ticks.next_multiple_of(self.grain)));
            }
            97 => self.still = self.random.between(10, 100),
            _ => self.jump(judged),
        }
    }

    fn ask(&mut self, judged: &mut Judged) {
        let chosen = self.random.between(0, self.members.len() as u64 - 1) as usize;
        let terms = self.members[chosen].terms;
        let cost = self.random.between(1, 3).min(terms.burst());
        let is_patient = terms.has_queue() && self.random.percent(50);
        let max_wait = ticks(if is_patient { 16 * self.random.sized(0, 1 << 36) } else { 0 });
        let times = self.random.sized(1, 16);
        for _ in 0..times {
            let at = self.moment();
            let decision = self.members[chosen].ask(cost, max_wait, at, judged);
            if let Verdict::Denied { retry_after } = decision.verdict_in_ticks() {
                if self.still == 0 && self.random.percent(10) {
                    self.wait_as_reported(chosen, (cost, max_wait), retry_after, judged);
                }
                return;
            }
        }
    }

    /// Asks again a nanosecond too early, and in time.
    fn wait_as_reported(
        &mut self,
        chosen: usize,
        (cost, max_wait): (u64, Ticks),
        wait: Ticks,
        judged: &mut Judged,
    ) {
        let nanosecond = ticks(16);
        self.advance(Ticks::saturating_from(wait.to_duration()).saturating_sub(nanosecond));
        let at = self.moment();
        let early = self.members[chosen].ask(cost, max_wait, at, judged);
        self.advance(nanosecond);
        let at = self.moment();
        let in_time = self.members[chosen].ask(cost, max_wait, at, judged);
        let is_exact = !early.is_allowed() && in_time.is_allowed();
        judged.waited(is_exact, || format!("at {at:?} after {wait:?}: {early:?}, then {in_time:?}"));
    }

    fn advance(&mut self, by: Ticks) {
        if self.still > 0 {
            return;
        }
        let by = by.to_duration();
        self.clock.advance(by);
        self.passed = self.passed.saturating_add(Ticks::saturating_from(by));
        let now = self.clock.now();
        self.members.iter_mut().for_each(|member| member.may_be_forgotten(now));
    }

    fn jump(&mut self, judged: &mut Judged) {
        judged.jumped();
        if self.random.percent(50) {
            self.clock.advance(HOUR);
            let now = self.clock.now();
            self.members.iter_mut().for_each(|member| {
                member.jumped();
                member.may_be_forgotten(now);
            });
        } else {
            self.clock.step_back(HOUR);
            let now = self.clock.now();
            self.members.iter_mut().for_each(|member| member.may_be_cut(now));
        }
    }

    fn moment(&self) -> Moment {
        Moment { reading: self.clock.now(), passed: Some(self.passed) }
    }
}
